"""An application that a program puts together itself: a mapping, its own objects, many conversations."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from toolyard import AgentApplication, tool
from toolyard.errors import ApplicationClosed
from yard import Yard

pytestmark = pytest.mark.anyio


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


class Counter:
    """Counts on from where its agent's configuration starts."""

    id = "counter"

    def init(self, config):
        return {"count": config.get("start", 0)}

    def get_tool_schemas(self, state, prepared=None):
        return [{"type": "function", "function": {"name": "count_up", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name, payload, state):
        state["count"] += 1
        return state["count"]


@pytest.fixture(autouse=True)
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    return Yard(tmp_path)


async def test_functions_classes_and_instances_are_tools_and_keep_their_state_over_a_reload():
    agents = {"a": {"start": 10}, "b": {"start": 20}, "c": {"disabled_plugins": ["greet"]}}
    async with AgentApplication({"agents": agents}, "sessions", tools=[greet, Counter]) as app:
        assert (await app.call_tool("greet", {"name": "Ada"}, agent="a")).text == "Hello, Ada!"
        assert [(await app.call_tool("count_up", {}, agent=agent)).text for agent in "aab"] == ["11", "12", "21"]
        assert [spec.name for spec in app.tool_specs("c")] == ["count_up"]
        await app.reload()
        assert (await app.call_tool("count_up", {}, agent="a")).text == "13"
    async with AgentApplication({}, "sessions", tools=[Counter()]) as app:
        assert (await app.call_tool("count_up", {})).text == "1"


async def test_what_is_no_tool_is_a_problem():
    app = AgentApplication({}, "sessions", tools=[greet, 5])
    (problem,) = app.get_config_errors()
    assert (problem["type"], problem["detail"]) == ("plugin_entry", "'int' is no plugin")
    assert [spec.name for spec in app.tool_specs()] == ["greet"]


async def test_paths_of_a_mapping_stay_where_they_were_when_the_program_goes_elsewhere(yard: Yard):
    yard.tool(run="echo fine")
    (yard.folder / "elsewhere").mkdir()
    config = {"plugins": ["bash:probe.bash"], "plugin_policy": {"allow_bash_tools": True}}
    async with AgentApplication(config, "sessions") as app:
        os.chdir("elsewhere")
        await app.reload()
        assert (await app.call_tool("probe", {})).text == "fine\n"


async def test_nothing_is_kept_for_a_conversation_that_is_over(yard: Yard):
    async with AgentApplication({"plugins": ["shell:session"]}, "sessions") as app:
        for session in ("one", "two"):
            await app.call_tool("bash", {"command": f"x={session}"}, session=session)
        await app.end_session("one")
        assert (await app.call_tool("bash", {"command": "echo [$x]"}, session="one")).text == "[]\n"
        assert (await app.call_tool("bash", {"command": "echo [$x]"}, session="two")).text == "[two]\n"
        await app.end_session("one")
        assert [key[1] for key in app._lifecycle.known().agent().settings] == ["two"]


async def test_applications_that_overlap_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFE_A", "before")
    first = AgentApplication({}, "sessions", {"LIFE_A": "first", "LIFE_B": "first"})
    second = AgentApplication({}, "sessions", {"LIFE_A": "second"})
    await first.__aenter__()
    await second.__aenter__()
    await first.__aexit__(None, None, None)
    assert (os.environ["LIFE_A"], "LIFE_B" in os.environ) == ("second", False)
    await second.__aexit__(None, None, None)
    assert os.environ["LIFE_A"] == "before"


async def test_an_application_that_cannot_be_opened_leaves_nothing_behind():
    app = AgentApplication({"not": float("nan")}, "sessions", {"LIFE_C": "set"})
    with pytest.raises(TypeError, match="no JSON"):
        await app.__aenter__()
    assert "LIFE_C" not in os.environ


async def test_an_opening_that_is_cancelled_ends_what_it_had_started(yard: Yard):
    yard.tool(cases="", run="").write_text('echo $$ >"$(dirname "$0")/pid"; sleep 300\n')
    config = {"plugins": ["bash:probe.bash"], "plugin_policy": {"allow_bash_tools": True}, "sandbox": {"mode": "off"}}
    app = AgentApplication(config, "sessions")
    opening = asyncio.create_task(app.__aenter__())
    pid = yard.folder / "pid"
    while not (pid.exists() and pid.read_text().strip()):
        await asyncio.sleep(0.01)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(ApplicationClosed):
        await app.call_tool("probe", {})
    assert not Path("/proc", pid.read_text().strip()).exists()
