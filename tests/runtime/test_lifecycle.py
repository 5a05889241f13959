"""An application from its opening to its end: what it leaves behind, and what it shares with others."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from toolyard.errors import ApplicationClosed
from toolyard.plugins.contract import tool
from toolyard.runtime.environment_overrides import EnvironmentOverrides
from yard import Yard, named

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


@pytest.mark.parametrize("values", [("1", "2"), ("1", "1")])
@pytest.mark.parametrize("first_to_end", [0, 1])
def test_two_that_override_a_variable_may_end_in_any_order(monkeypatch, values, first_to_end):
    monkeypatch.setenv("OVERRIDDEN", "before")
    both = [EnvironmentOverrides({"OVERRIDDEN": value}) for value in values]
    for one in both:
        one.install()
    assert os.environ["OVERRIDDEN"] == values[1]
    both[first_to_end].restore()
    assert os.environ["OVERRIDDEN"] == values[1 - first_to_end]
    both[1 - first_to_end].restore()
    assert os.environ["OVERRIDDEN"] == "before"


def test_what_somebody_else_sets_meanwhile_stays(monkeypatch):
    monkeypatch.delenv("OVERRIDDEN", raising=False)
    first, second = EnvironmentOverrides({"OVERRIDDEN": "1"}), EnvironmentOverrides({"OVERRIDDEN": "2"})
    first.install()
    monkeypatch.setenv("OVERRIDDEN", "theirs")
    second.install()
    first.restore()
    second.restore()
    assert os.environ["OVERRIDDEN"] == "theirs"


async def test_one_that_cannot_be_opened_leaves_the_environment_as_it_was(yard, monkeypatch):
    monkeypatch.delenv("OVERRIDDEN", raising=False)

    class Interrupted(BaseException):
        pass

    async def interrupted(*_):
        raise Interrupted

    app = yard.open(yard.config(), env_overrides={"OVERRIDDEN": "1"})
    monkeypatch.setattr(app._lifecycle, "_load", interrupted)
    with pytest.raises(Interrupted):
        await app.__aenter__()
    assert "OVERRIDDEN" not in os.environ


async def test_a_call_that_waits_while_the_application_closes_is_refused_by_name(yard):
    yard.manifest(named())
    app = yard.app("manifest:tools.json")
    async with app:
        await app._lifecycle._reloading.acquire()
        yard.config("manifest:tools.json", added=1)
        call = asyncio.create_task(app.call_tool("probe", {}))
        await asyncio.sleep(0)
    app._lifecycle._reloading.release()
    with pytest.raises(ApplicationClosed):
        await call


async def test_what_was_begun_without_a_loop_is_what_is_opened(yard, monkeypatch):
    monkeypatch.delenv("OVERRIDDEN", raising=False)
    yard.manifest(named())
    app = yard.open(yard.config("manifest:tools.json"), env_overrides={"OVERRIDDEN": "1"})
    app.begin()
    begun = app._lifecycle._begun
    async with app:
        assert app._lifecycle.loaded.configuration is begun.configuration
        assert (await app.call_tool("probe", {})).ok
        assert os.environ["OVERRIDDEN"] == "1"
    assert "OVERRIDDEN" not in os.environ


async def test_what_changed_since_it_was_begun_is_noticed_at_the_first_call(yard):
    yard.manifest(named())
    app = yard.open(yard.config())
    app.begin()
    yard.config("manifest:tools.json")
    async with app:
        assert (await app.call_tool("probe", {})).ok


def test_the_path_of_the_configuration_is_known_without_reading_it(yard):
    app = yard.open(yard.folder / "missing.json")
    assert app.config_path == yard.folder / "missing.json"
    assert app._lifecycle._apart is None


async def test_nothing_is_remembered_of_a_conversation_that_is_over(yard):
    yard.manifest(named())
    async with yard.app("manifest:tools.json") as app:
        for number in range(3):
            await app.call_tool("probe", {}, session=f"s{number}")
            await app.end_session(f"s{number}")
        assert app._lifecycle.known().agent().settings == {}


async def test_rules_know_nothing_of_a_conversation_that_is_over(yard):
    config = yard.config("shell:session", permissions={"preset": "workspace"})
    async with yard.open(config) as app:
        for number in range(3):
            app.set_preset("trusted", session=f"s{number}")
            await app.call_tool("bash", {"command": "alias x=y"}, session=f"s{number}")
        rules = app._lifecycle._paths._rules
        kept = (rules._books, rules._shells._shells, rules._session_presets)
        assert [len(each) for each in kept] == [3, 3, 3], "or it would prove nothing"
        for number in range(3):
            await app.end_session(f"s{number}")
        assert [len(each) for each in (rules._books, rules._shells._shells, rules._session_presets)] == [0, 0, 0]


async def test_an_entry_that_is_loaded_alone_keeps_its_options_and_its_faults(yard):
    wrong = yard.config("manifest:tools.json", {"shell_session": {"tiemout_seconds": 5}})
    async with yard.open(wrong, only="shell:session") as app:
        (problem,) = app.get_config_errors()
        assert (problem["line"], "tiemout_seconds" in problem["detail"]) == (5, True)
        assert app.tools() == []
    right = yard.config("manifest:tools.json", {"shell_command": {"limits": {"open_files": 50}}})
    async with yard.open(right, only="shell:command") as app:
        assert (await app.call_tool("shell", {"command": "ulimit -n"})).text.startswith("stdout:\n50\n")


class Counter:
    """A plugin class that knows how many of it are open."""

    id = "counter"
    opened: list[Counter] = []  # noqa: RUF012 - of all

    def __init__(self):
        self.opened.append(self)

    def close(self):
        self.opened.remove(self)

    def get_tool_schemas(self):
        return [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name, payload, context):
        return str(context.config.get("size"))


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


async def test_objects_that_a_program_hands_over_are_tools_like_any_other(yard):
    async with yard.open(yard.config(), tools=[greet]) as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("greet", {"name": "Ada"})).text == "hello Ada"


async def test_of_a_class_that_is_handed_over_one_is_open_for_each_configuration_in_use(yard):
    async with yard.open(yard.config(size=1), tools=[Counter]) as app:
        assert ((await app.call_tool("count", {})).text, len(Counter.opened)) == ("1", 1)
        yard.config(size=2)
        assert ((await app.call_tool("count", {})).text, len(Counter.opened)) == ("2", 1)
    assert Counter.opened == []


async def test_an_instance_that_is_handed_over_stays_open(yard):
    counter = Counter()
    agents = {"default": {"size": 1}, "other": {"size": 2}}
    async with yard.open(yard.config(agents=agents), tools=[counter]) as app:
        assert (await app.call_tool("count", {}, agent="other")).text == "2"
        yard.config(agents={"default": {"size": 1}})
        assert (await app.call_tool("count", {})).text == "1"
        assert Counter.opened == [counter]
    assert Counter.opened == [counter]
    counter.close()
