"""An application that a program makes by itself: a configuration in memory, tools of its own, many conversations."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import pytest

from toolyard import AgentApplication, tool
from toolyard.plugins import enablement

pytestmark = pytest.mark.anyio


@tool
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"


class Counter:
    """Counts from what the configuration says."""

    id = "counter"

    def __init__(self) -> None:
        self.closed = False

    def init(self, config):
        return {"count": config.get("start", 0)}

    def get_tool_schemas(self, state):
        return [{"type": "function", "function": {"name": "count_up", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name, payload, state):
        state["count"] += 1
        return state["count"]

    def close(self) -> None:
        self.closed = True


async def test_a_mapping_is_a_configuration_and_its_problems_have_places(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with AgentApplication({"plugins": ["shell:command", "shell:comand"]}, tmp_path / "sessions") as app:
        assert (await app.call_tool("shell", {"command": "echo hi"})).data["stdout"] == "hi\n"
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["line"]) == ("plugin_unsupported", 4)
        assert "shell:command" in problem["hint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sessions"], "nothing stands for a file that never was"


def test_a_mapping_that_is_no_json_is_the_callers_mistake(tmp_path: Path):
    app = AgentApplication({"model": float("nan")}, tmp_path)
    with pytest.raises(TypeError, match="no JSON"):
        app.agents()


async def test_functions_classes_and_instances_are_handed_over(tmp_path: Path):
    instance = Counter()
    instance.id = "other"
    instance.get_tool_schemas = lambda state: [{"type": "function", "function": {"name": "count_on"}}]
    config = {"start": 40, "agents": {"a": {}, "b": {"start": 7}}}
    async with AgentApplication(config, tmp_path / "s", tools=[greet, Counter, instance]) as app:
        assert app.get_config_errors() == []
        assert [spec.name for spec in app.tool_specs("a")] == ["greet", "count_up", "count_on"]
        assert (await app.call_tool("greet", {"name": "Ada"}, agent="a")).text == "Hello, Ada!"
        assert (await app.call_tool("count_up", {}, agent="a")).text == "41"
        assert (await app.call_tool("count_up", {}, agent="b")).text == "8", "made for each agent's values"
    assert not instance.closed, "what a program hands over is its own to close"


async def test_what_is_no_plugin_is_a_problem(tmp_path: Path):
    async with AgentApplication({}, tmp_path / "s", tools=[3, greet]) as app:
        assert [problem["type"] for problem in app.get_config_errors()] == ["plugin_entry"]
        assert [spec.name for spec in app.tool_specs()] == ["greet"]


async def test_every_conversation_has_a_shell_of_its_own_until_it_ends(tmp_path: Path):
    async with AgentApplication({"plugins": ["shell:session"]}, tmp_path / "s") as app:

        async def bash(command: str, session: str | None = None) -> str:
            return (await app.call_tool("bash", {"command": command}, session=session)).text

        await bash("x=one", "first")
        await bash("x=two", "second")
        await bash("x=own")
        assert [await bash("echo $x", name) for name in ("first", "second", None)] == ["one\n", "two\n", "own\n"]
        await app.end_session("first")
        assert await bash("echo ${x-gone}", "first") == "gone\n"
        assert await bash("echo $x", "second") == "two\n"


async def test_the_environment_is_as_it_was_when_an_application_is_closed(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOUSE_A", "before")
    monkeypatch.delenv("HOUSE_B", raising=False)
    app = AgentApplication({}, tmp_path / "s", {"HOUSE_A": "during", "HOUSE_B": "during"})
    assert app.get_config_errors() == []
    assert (os.environ["HOUSE_A"], "HOUSE_B" in os.environ) == ("before", False)
    async with app:
        assert (os.environ["HOUSE_A"], os.environ["HOUSE_B"]) == ("during", "during")
        os.environ["HOUSE_B"] = "somebody else's"
    assert (os.environ["HOUSE_A"], os.environ["HOUSE_B"]) == ("before", "somebody else's")
    monkeypatch.delenv("HOUSE_B")


async def test_what_loading_finds_wrong_reaches_the_log_once(tmp_path: Path, caplog):
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    config = tmp_path / "toolyard.json"
    secret = "abcd-1234-efgh-5678"
    value = {
        "plugins": [{"path": ".", "entry": "broken.Plugin"}, "shell:comand"],
        "model": "${env:NOBODY_SETS_THIS}",
        "agents": {"default": {"token": secret, "system_message": "${file:" + secret + "}"}},
    }
    config.write_text(json.dumps(value))
    with caplog.at_level(logging.WARNING, "toolyard"):
        async with AgentApplication(config, tmp_path / "s") as app:
            logged = [(record.levelname, record.getMessage()) for record in caplog.records]
            found = {one["type"] for one in app.get_config_errors()}
            caplog.clear()
            await app.reload()
            assert caplog.records == []
    assert {"env_missing", "plugin_unsupported", "file_missing", "plugin_import"} <= found
    for code in found:
        assert any(message.startswith(f"{code}: ") for _, message in logged), code
    assert ("WARNING", "env_missing") in {(level, message.partition(":")[0]) for level, message in logged}
    assert not any(secret in message for _, message in logged)


ADD_IT = (
    'add the plugin that has it to "plugins"; '
    "anthropic, local, openai-compatible, openrouter, replay are in ${env:BUILTIN_PLUGINS}"
)


def test_the_bundled_providers_are_those_that_a_hint_names():
    plugins = Path(enablement.__file__).parents[1] / "builtin_plugins"
    found = [file.parent.name for file in plugins.glob("*/agent_plugin.json") if '"providers"' in file.read_text()]
    assert sorted(found) == sorted(enablement.BUNDLED_PROVIDERS)


@pytest.mark.parametrize(
    ("config", "known"),
    [
        ({"agents": {"default": {"provider": "mian"}}, "providers": {"main": {}}}, "did you mean 'main'?"),
        ({"agents": {"default": {"provider": "mi_an"}}}, ADD_IT),
        ({"provider": "mi_an"}, ADD_IT),
        ({"provider": "openai_compatible"}, 'add "path:${env:BUILTIN_PLUGINS}/openai-compatible" to "plugins"'),
        ({"provider": "main", "providers": {"main": {"provider": "mi_an"}}}, ADD_IT),
        (
            {"provider": "main", "providers": {"main": {"provider": "provder"}}, "plugins": ["provided.Provider"]},
            "did you mean 'provider'?",
        ),
        ({"provider": "main", "providers": {"main": {"provider": "provider"}}, "plugins": ["provided.Provider"]}, None),
        (
            {"agents": {"default": {"provider": "provder"}}, "plugins": ["provided.Provider"]},
            "did you mean 'provider'?",
        ),
        ({"agents": {"default": {"provider": "provider"}}, "plugins": ["provided.Provider"]}, None),
        ({"agents": {"default": {"provider": "main"}}, "providers": {"main": {}}}, None),
    ],
)
def test_an_agent_whose_provider_is_nowhere_is_a_problem(tmp_path: Path, monkeypatch, config, known):
    (tmp_path / "provided.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "provided", raising=False)
    monkeypatch.chdir(tmp_path)
    found = [one for one in AgentApplication(config, tmp_path / "s").get_config_errors() if "provider" in one["type"]]
    assert [(one["type"], one["hint"]) for one in found] == ([("provider_unknown", known)] if known else [])


PROVIDER = """
class Provider:
    id = "provider"
    kind = "provider"

    def stream(self, request):
        yield None
"""


@pytest.mark.parametrize("agents", [[], ["one"], "one", {}, None, 3])
def test_agents_that_are_none_leave_the_default_one(tmp_path: Path, agents):
    assert AgentApplication({"agents": agents}, tmp_path / "s").agents() == ["default"]


def test_a_choice_may_be_a_placeholder_but_not_one_about_mixins_which_come_before(tmp_path: Path):
    def problems(agent: dict[str, str | dict[str, str]]) -> list[str | int | None]:
        given = {"WORD": "deep", "PRESET": "read-only"}
        app = AgentApplication({"agents": {"default": agent}}, tmp_path / "s", config_env=given)
        return [one["detail"] for one in app.get_config_errors()]

    assert problems({"permissions": {"preset": "${env:PRESET}"}}) == []
    assert problems({"mixin_merge": "deep"}) == []
    assert any("mixin_merge" in str(detail) for detail in problems({"mixin_merge": "${env:WORD}"}))
