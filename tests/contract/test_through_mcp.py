"""Every kind of tool gives the same through our own server, by either wire, as directly, and leaves the same record.

The calls of one test share an application and a tool, so that a further wire costs no more than a call.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from contract.bench import Bench, Loaded
from contract.through import WIRES
from support import PNG
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
            async with open_wire(self._tool.app, self._approver) as call:
                self.wires[name] = await call(self._bench.kind.tool, arguments)
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


def without_paths(text: str) -> str:
    """A text without the name of the file that its whole is kept in, which no two calls share."""
    return re.sub(r"\S*/\S+\.(?:out|err|txt)\S*", "FILE", text)
