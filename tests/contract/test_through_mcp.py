"""Every kind of tool gives the same through our own server, by either wire, as directly, and leaves the same record.

The calls of one test share an application and a tool, so that a further wire costs no more than a call.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from contract.bench import LIMITS, Bench, Loaded
from contract.through import WIRES, Calling
from support import PNG, Signpost, is_alive, until
from toolyard.core.tool import ToolResult
from toolyard.core.wire.content_forms import mcp_content
from toolyard.permissions.verdict import Verdict
from toolyard.serve.mcp.tool_server import ClientApprover

pytestmark = pytest.mark.anyio
OF_ONE_CALL = ("time", "seq", "prev", "hash", "writer", "call_id", "session", "ms")
"""What every line of an audit log has for itself."""


class Never:
    """Rules that allow nothing."""

    async def decide(self, request):
        return Verdict(decision="deny", reason="the test says no", rule="never")


class Through:
    """A tool that is called by every way, and what came of it."""

    def __init__(self, bench: Bench, tool: Loaded, approver: ClientApprover) -> None:
        self._bench, self._tool, self._approver = bench, tool, approver
        self.wires: dict[str, dict[str, Any]] = {}

    async def call(self, arguments: Any) -> ToolResult:
        """Call it directly, then by each wire; the first result."""
        direct = await self._tool.app.call_tool(self._bench.kind.tool, arguments)
        record = self._new_lines()
        for name, open_wire in WIRES.items():
            async with open_wire(self._tool.app, self._approver) as wire:
                self.wires[name] = await wire.begin(self._bench.kind.tool, arguments).answer()
            assert self._new_lines() == record, name
        return direct

    def _new_lines(self) -> list[dict[str, Any]]:
        lines = self._bench.yard.audit()[self._seen :]
        self._seen += len(lines)
        return [{name: value for name, value in line.items() if name not in OF_ONE_CALL} for line in lines]

    _seen = 0


async def called(
    bench: Bench, behaviour: Any, value: str = "x", options: Any = None, **settings: Any
) -> tuple[Any, Any]:
    """The result of a direct call, and of one by each wire."""
    approver = ClientApprover()
    async with bench.tool(behaviour, options={"approver": approver, **(options or {})}, **settings) as tool:
        through = Through(bench, tool, approver)
        return await through.call(tool.written.arguments(value)), through.wires


def told(direct: ToolResult) -> dict[str, Any]:
    """What a client has to be told of a result."""
    return {"content": mcp_content(direct.content) or [{"type": "text", "text": ""}], "isError": not direct.ok}


def what_counts(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("content", "isError")}


@pytest.mark.parametrize("value", ["hello", 'größe 😀\n"quotes"'])
@pytest.mark.ability("echo")
async def test_a_result_is_the_same(bench: Bench, value: str):
    direct, wires = await called(bench, "echo", value)
    assert bench.said(direct) == value
    for answer in wires.values():
        assert what_counts(answer) == told(direct)
        if direct.data is not None:
            said = answer["structuredContent"]
            assert {name: said[name] for name in direct.data if name != "ms"} == {
                name: one for name, one in direct.data.items() if name != "ms"
            }


@pytest.mark.ability("fail")
async def test_a_failure_is_the_same(bench: Bench):
    direct, wires = await called(bench, "fail")
    assert "broken" in direct.text
    for answer in wires.values():
        assert what_counts(answer) == told(direct)


@pytest.mark.ability("flood")
async def test_output_is_cut_in_the_same_way(bench: Bench):
    direct, wires = await called(bench, "flood", output={"limit_bytes": 10_000})
    assert direct.truncated is not None
    for answer in wires.values():
        (part,) = answer["content"]
        assert without_paths(part["text"]) == without_paths(direct.text)


@pytest.mark.ability("leak")
async def test_secrets_are_in_no_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-1234567890")
    bench.yard.file("secret", "it is tok-1234567890, look")
    direct, wires = await called(bench, "leak")
    assert "it is [redacted SOME_TOKEN], look" in direct.text
    for answer in wires.values():
        assert what_counts(answer) == told(direct)
        assert "tok-1234567890" not in json.dumps(answer)


@pytest.mark.ability("draw")
async def test_a_picture_is_the_same(bench: Bench):
    (bench.yard.folder / "dot.png").write_bytes(PNG)
    direct, wires = await called(bench, "draw", "drawn")
    assert direct.attachments
    for answer in wires.values():
        assert what_counts(answer) == told(direct)


@pytest.mark.ability("log")
async def test_a_call_that_is_not_allowed_runs_nothing(bench: Bench):
    direct, wires = await called(bench, "log", options={"permissions": Never()})
    assert direct.failure == "denied"
    assert bench.yard.log() == []
    for answer in wires.values():
        assert what_counts(answer) == told(direct)


@pytest.mark.ability("log")
async def test_arguments_that_do_not_fit_are_refused(bench: Bench):
    approver = ClientApprover()
    async with bench.tool("log", options={"approver": approver}) as tool:
        through = Through(bench, tool, approver)
        direct = await through.call({"value": ["x"], "command": ["x"]})
    assert direct.failure == "invalid_arguments"
    assert bench.yard.log() == []
    for answer in through.wires.values():
        assert what_counts(answer) == told(direct)


@asynccontextmanager
async def begun(bench: Bench, behaviour: Any, wire: str, *, hears: bool, **settings: Any) -> AsyncIterator[Calling]:
    """A call by one wire that is under way; its server goes on until the block ends."""
    approver = ClientApprover()
    async with (
        bench.tool(behaviour, options={"approver": approver}, **settings) as tool,
        WIRES[wire](tool.app, approver) as client,
    ):
        yield client.begin(bench.kind.tool, tool.written.arguments("the value"), hears=hears)


@pytest.mark.parametrize("hears", [False, True], ids=["silent", "hears"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.ability("hang")
async def test_a_call_that_its_client_gives_up_ends_with_all_that_it_started(
    bench: Bench, here: Signpost, wire: str, hears: bool
):
    async with begun(bench, "hang", wire, hears=hears) as call:
        await asyncio.to_thread(here.wait)
        await call.give_up()
        assert await until(lambda: ends(bench, "failure")) == ["cancelled"]
        assert len(bench.pids()) == bench.kind.processes
        assert [pid for pid in bench.pids() if is_alive(pid)] == [], "while the server goes on"
    assert ends(bench, "failure") == ["cancelled"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.ability("hang")
async def test_a_call_past_its_time_says_so_and_nothing_of_it_goes_on(bench: Bench, here: Signpost, wire: str):
    for limit in LIMITS:
        async with begun(bench, "hang", wire, hears=True, limit=limit) as call:
            answer = await call.answer()
            pids = bench.pids()
            assert answer["isError"] is True
            assert bench.kind.too_late in answer["content"][0]["text"]
            assert [pid for pid in pids if is_alive(pid)] == [], "while the server goes on"
        if len(pids) == bench.kind.processes:
            break
        (bench.yard.folder / "pids").unlink(missing_ok=True)
    assert len(pids) == bench.kind.processes
    assert ends(bench, "timed_out")[-1] is True


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.ability("tell")
async def test_what_a_tool_prints_is_told_before_its_end(bench: Bench, wire: str):
    async with begun(bench, "tell", wire, hears=True) as call:
        await until(lambda: "begun\n" in call.progress() or call.has_answer())
        assert not call.has_answer(), await call.answer()
        (bench.yard.folder / "go").touch()
        answer = await call.answer()
    assert call.progress().count("begun\n") == 1
    assert answer["isError"] is False
    assert "the value" in answer["content"][0]["text"]


def ends(bench: Bench, name: str) -> list[Any]:
    """What the record says of the calls that are over."""
    return [line[name] for line in bench.yard.audit() if line["event"] == "end"]


def without_paths(text: str) -> str:
    """A text without the name of the file that its whole is kept in, which no two calls share."""
    return re.sub(r"\S*/\S+\.(?:out|err|txt)\S*", "FILE", text)
