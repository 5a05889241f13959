"""What is known of a server: kept so that it need not be started, and heard again when it runs."""

from __future__ import annotations

import asyncio

import pytest

from mcp_servers import ECHO_SERVER, logging_server, thin_server
from support import PATIENCE
from yard import Yard

pytestmark = pytest.mark.anyio
STARTS = "note('start')\n" + ECHO_SERVER


def names(app) -> list[str]:
    return [spec.name for spec in app.tool_specs()]


async def test_a_server_that_no_call_uses_is_not_started_again(yard: Yard):
    entry = logging_server(yard, STARTS)
    for _ in range(3):
        async with yard.app(entry) as app:
            assert names(app) == ["echo"]
    assert yard.log() == ["start"], "the first time, to be listed"


@pytest.mark.parametrize("change", ["its content", "its variables", "its arguments"])
async def test_a_server_is_asked_again_when_what_is_started_changed(yard: Yard, change: str):
    entry = logging_server(yard, STARTS)
    async with yard.app(entry):
        pass
    match change:
        case "its content":
            logging_server(yard, f"{STARTS}\n# another version")
        case "its variables":
            entry["mcp"]["env"] = {"SOME": "thing"}
        case "its arguments":
            entry["mcp"]["args"] = ["--more"]
    async with yard.app(entry):
        pass
    assert yard.log() == ["start", "start"]


async def test_a_server_that_speaks_the_older_protocol_is_not_asked_for_the_newer_again(yard: Yard):
    code = """
decode = json.loads
def heard(line):
    message = decode(line)
    note(message.get("method", "answer"))
    return message
json.loads = heard
"""
    async with yard.app(logging_server(yard, code + ECHO_SERVER)) as app:
        assert yard.log()[:2] == ["server/discover", "initialize"]
        yard.folder.joinpath("log").write_text("")
        await app.call_tool("echo", {"value": "x"})
    assert yard.log()[0] == "initialize"


async def test_tools_that_a_server_adds_can_be_called_without_a_reload(yard: Yard):
    code = """
more = []
def grow(arguments, call):
    more.append(({**ECHO, "name": "grown"}, echo))
    tools_changed()
    return text("done")
serve(lambda: [(ECHO, echo), ({"name": "grow", "inputSchema": {"type": "object"}}, grow), *more])
"""
    async with yard.app(thin_server(yard, code)) as app:
        assert names(app) == ["echo", "grow"]
        await app.call_tool("grow", {})
        async with asyncio.timeout(PATIENCE):
            while (await app.call_tool("grown", {"value": "new"})).text != "new":
                await asyncio.sleep(0.05)
        assert names(app) == ["echo", "grow", "grown"]


async def test_two_servers_with_a_tool_of_one_name_both_have_it(yard: Yard):
    first = thin_server(yard, ECHO_SERVER, name="first")
    code = "def other(arguments, call):\n    return text('second ' + arguments['value'])\nserve([(ECHO, other)])"
    second = thin_server(yard, code, file="other.py", name="second")
    async with yard.app(first, second) as app:
        assert names(app) == ["echo", "second_echo"]
        assert (await app.call_tool("echo", {"value": "x"})).text == "x"
        assert (await app.call_tool("second_echo", {"value": "x"})).text == "second x"
        assert [problem for problem in app.problems() if problem.severity == "error"] == []
        assert [(one.plugin, one.tool.spec.name, one.on) for one in app.plugins()] == [
            ("first", "echo", True),
            ("second", "second_echo", True),
        ]


async def test_a_server_takes_no_name_from_other_tools_wherever_it_stands(yard: Yard):
    taken = ["shell", "read_output", "agent", "search_tools", "more"]
    code = f"serve([({{**ECHO, 'name': name}}, lambda arguments, call: text('mine')) for name in {taken!r}])"
    async with yard.app(thin_server(yard, code, name="thief"), "shell:command") as app:
        assert set(names(app)) == {
            *("thief_shell", "thief_read_output", "thief_agent", "thief_search_tools", "more", "shell"),
        }
        assert (await app.call_tool("shell", {"command": "echo here"})).data["stdout"] == "here\n"


async def test_an_entry_chooses_among_tools_and_names_them(yard: Yard):
    code = "serve([({**ECHO, 'name': name}, echo) for name in ('a', 'b', 'c.d/e')])"
    entry = thin_server(yard, code, without_tools=["b"], rename={"a": "better"})
    async with yard.app(entry) as app:
        assert names(app) == ["better", "c_d_e"]
        assert (await app.call_tool("better", {"value": "x"})).text == "x"
        assert (await app.call_tool("c_d_e", {"value": "x"})).text == "x"
    async with yard.app(thin_server(yard, code, tools=["b"])) as app:
        assert names(app) == ["b"]


async def test_a_server_is_turned_off_as_any_plugin(yard: Yard):
    async with yard.app(thin_server(yard, ECHO_SERVER, name="mine"), disabled_plugins=["mine"]) as app:
        assert names(app) == []
        assert app.problems() == []


async def test_an_edited_program_is_used_without_a_restart(yard: Yard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolyard.kinds.mcp.source.LOOK_AGAIN", 0.0)
    entry = thin_server(yard, ECHO_SERVER)
    async with yard.app(entry) as app:
        assert (await app.call_tool("echo", {"value": "x"})).text == "x"
        thin_server(yard, ECHO_SERVER.replace("echo)", "lambda arguments, call: text('new'))"))
        assert (await app.call_tool("echo", {"value": "x"})).text == "new"
