"""A changed, added or removed tool takes effect at the next call; a broken edit keeps what worked."""

from __future__ import annotations

import asyncio

import pytest

from support import PATIENCE
from toolyard.errors import UnknownAgent

pytestmark = pytest.mark.anyio


async def test_a_changed_schema_takes_effect_at_the_next_call(yard):
    yard.tool(run="echo old")
    async with yard.app("bash:probe.bash") as app:
        yard.tool(properties={"count": {"type": "integer"}}, required=["count"], run='echo "new $2"')
        assert (await app.call_tool("probe", {"count": 2})).text == "new 2\n"
        assert (await app.call_tool("probe", {})).failure == "invalid_arguments"
        (spec,) = app.tool_specs()
        assert "count" in spec.input.schema["properties"]


async def test_a_renamed_tool_is_found_by_its_new_name(yard):
    yard.tool("probe", run="echo old")
    async with yard.app("bash:probe.bash") as app:
        yard.tool("other", file="probe.bash", run="echo new")
        assert (await app.call_tool("other", {})).text == "new\n"
        assert (await app.call_tool("probe", {})).failure == "unknown_tool"


async def test_a_file_added_to_a_descriptor_takes_effect_at_the_next_call(yard):
    yard.tool("one", file="repo/one.bash")
    yard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "one.bash"}]}')
    async with yard.app("bash:repo") as app:
        yard.tool("two", file="repo/two.bash", run="echo two")
        yard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "one.bash"}, {"file": "two.bash"}]}')
        assert (await app.call_tool("two", {})).text == "two\n"
        yard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "two.bash"}]}')
        assert (await app.call_tool("one", {})).failure == "unknown_tool"


async def test_a_plugin_added_to_the_configuration_takes_effect_at_the_next_call(yard):
    yard.tool("one")
    yard.tool("two", run="echo two")
    async with yard.app("bash:one.bash") as app:
        yard.config("bash:one.bash", "bash:two.bash")
        assert (await app.call_tool("two", {})).text == "two\n"


async def test_a_broken_edit_keeps_the_last_good_version_and_says_so(yard):
    yard.file("helper.txt", "from the neighbour\n")
    file = yard.tool(run='cat "$(dirname "$0")/helper.txt"; echo "good $2"')
    good = file.read_text()
    async with yard.app("bash:probe.bash") as app:
        for broken in ("exit 1\n", "echo '{}'\n", good.replace('"id"', '"ID"')):
            file.write_text(broken)
            result = await app.call_tool("probe", {"value": "x"})
            assert result.text == "from the neighbour\ngood x\n", "the version that worked, beside its neighbours"
            assert {problem["file"] for problem in app.get_config_errors()} == {str(file)}
        file.write_text(good.replace("echo", "echo again;echo"))
        assert "again" in (await app.call_tool("probe", {"value": "x"})).text
        assert app.get_config_errors() == []


async def test_a_broken_configuration_keeps_the_running_one_and_says_so(yard):
    yard.tool(run="echo fine")
    config = yard.config("bash:probe.bash")
    good = config.read_text()
    async with yard.open(config) as app:
        config.write_text(good.replace("]", "],,"))
        assert (await app.call_tool("probe", {})).text == "fine\n"
        (problem,) = app.get_config_errors()
        assert problem["type"] == "config_syntax"
        assert "last good configuration" in problem["detail"]
        config.write_text(good)
        assert (await app.call_tool("probe", {})).text == "fine\n"
        assert app.get_config_errors() == []


async def test_two_tools_of_one_name_the_first_wins_and_the_other_is_named(yard):
    yard.tool("same", file="a.bash", run="echo a")
    yard.tool("same", file="b.bash", run="echo b")
    async with yard.app("bash:a.bash", "bash:b.bash") as app:
        assert (await app.call_tool("same", {})).text == "a\n"
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["severity"]) == ("plugin_id_taken", "warning")
        assert "a.bash" in problem["detail"]
        assert problem["file"].endswith("b.bash")


async def test_calls_at_the_moment_of_an_edit_reload_once_and_all_succeed(yard):
    yard.tool("one", run="echo one")
    yard.tool("two", run="echo two")
    async with yard.app("bash:one.bash") as app:
        for plugins in (["bash:one.bash", "bash:two.bash"], ["bash:one.bash"]) * 3:
            yard.config(*plugins)
            results = await asyncio.gather(*(app.call_tool("one", {}) for _ in range(8)))
            assert {result.text for result in results} == {"one\n"}
    assert sum(line["event"] == "end" for line in yard.audit()) == 48


SESSION = {"timeout_seconds": 60}


async def test_what_an_edit_does_not_concern_keeps_its_state(yard):
    yard.tool("one")
    agents = {"a": {"plugins": [{"shell_session": SESSION}]}, "b": {"plugins": ["bash:one.bash", "shell:session"]}}
    async with yard.app(agents=agents) as app:
        for agent in "ab":
            await app.call_tool("bash", {"command": f"x={agent}"}, agent=agent)
        yard.config("bash:one.bash", agents={"new": {}, **agents})
        await app.reload()
        for agent in "ab":
            assert (await app.call_tool("bash", {"command": "echo $x"}, agent=agent)).text == f"{agent}\n"
        changed = {**agents, "a": {"plugins": [{"shell_session": {"timeout_seconds": 50}}]}}
        yard.config(agents=changed)
        assert (await app.call_tool("bash", {"command": "echo ${x-none}"}, agent="a")).text == "none\n"
        assert (await app.call_tool("bash", {"command": "echo $x"}, agent="b")).text == "b\n"
        yard.config(agents=changed, limits={"open_files": 512})
        assert (await app.call_tool("bash", {"command": "echo ${x-none}"}, agent="b")).text == "none\n"
        assert (await app.call_tool("bash", {"command": "ulimit -n"}, agent="b")).text == "512\n"


async def test_an_agent_that_comes_or_goes_takes_effect_at_the_next_call(yard):
    yard.tool("one", run="echo one")
    async with yard.app(agents={"a": {}}) as app:
        yard.config(agents={"b": {"plugins": ["bash:one.bash"]}})
        assert (await app.call_tool("one", {}, agent="b")).text == "one\n"
        assert app.agents() == ["b"]
        with pytest.raises(UnknownAgent):
            await app.call_tool("one", {}, agent="a")


async def test_reloads_side_by_side_leave_one_configuration_and_all_it_needs(yard):
    yard.tool("one", run="echo one")
    async with yard.app("bash:one.bash", "shell:session") as app:
        await app.call_tool("bash", {"command": "x=1"})
        await asyncio.gather(*(app.reload() for _ in range(5)), app.call_tool("one", {}))
        assert (await app.call_tool("bash", {"command": "echo $x"})).text == "1\n"


async def test_watching_gives_a_turn_after_each_change(yard):
    file = yard.tool("one")
    config = yard.config("bash:one.bash", "bash:missing.bash")
    good = config.read_text()

    async def turn():
        async with asyncio.timeout(PATIENCE):
            await anext(watching)

    async with yard.open(config) as app:
        watching = app.watch(seconds=0.01)
        yard.tool("two", file="one.bash")
        await turn()
        assert [spec.name for spec in app.tool_specs()] == ["two"]
        yard.tool("three", file="missing.bash")
        await turn()
        assert [spec.name for spec in app.tool_specs()] == ["two", "three"]
        file.write_text("exit 1\n")
        await turn()
        assert [problem["type"] for problem in app.get_config_errors()] == ["bash_schema_exit_status"]
        config.write_text("{")
        await turn()
        assert "last good configuration" in app.get_config_errors()[-1]["detail"]
        config.write_text(good.replace("bash:missing.bash", "shell:command"))
        await turn()
        assert [spec.name for spec in app.tool_specs()] == ["two", "shell"], "the last good version goes on"
