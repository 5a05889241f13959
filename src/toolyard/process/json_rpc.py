"""A JSON-RPC client of a companion process: a message a line, many requests at once, notifications of progress."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.process.companion import Companion
from toolyard.process.output import LastWords
from toolyard.process.waiting import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import Json, JsonObject
    from toolyard.process.companion import CompanionEnd, CompanionRequest
    from toolyard.process.keeper.link import KeeperLink
    from toolyard.process.waiting import Deadlines


LAST_OUTPUT = 2048
"""How much of its log is shown when the program ends unexpectedly."""
LONGEST_LOG_LINE = 8192


class RpcResult(msgspec.Struct, frozen=True, kw_only=True):
    result: JsonObject


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    data: JsonObject


class RpcLost(msgspec.Struct, frozen=True, kw_only=True):
    """The program ended before it answered."""

    reason: str
    exit_code: int | None = None
    """None when we killed it, or it never ran."""
    signal: int | None = None


RpcAnswer: TypeAlias = RpcResult | RpcError | RpcLost
Progress: TypeAlias = "Callable[[JsonObject], None]"


class PendingRequest:
    __slots__ = ("_answer", "_deadlines", "id", "on_progress")

    def __init__(self, id: int, on_progress: Progress | None, deadlines: Deadlines) -> None:
        self.id = id
        self._deadlines = deadlines
        self.on_progress = on_progress
        self._answer: Promise[RpcAnswer] = Promise()

    async def answer(self, *, within: float | None = None) -> RpcAnswer | None:
        """Wait for the answer; None when it takes too long. May be asked again."""
        return await self._answer.get_within(within, self._deadlines)

    def settle(self, answer: RpcAnswer) -> None:
        """Only the first answer counts."""
        self._answer.set(answer)


class JsonRpcClient:
    """The client of one running program, which it starts."""

    def __init__(self, keeper: KeeperLink, request: CompanionRequest, *, log: logging.Logger) -> None:
        self._log = log
        self._deadlines = keeper.deadlines
        self._log_line = b""
        self._last_output = LastWords(LAST_OUTPUT)
        self._last_id = 0
        self._pending: dict[int, PendingRequest] = {}
        self._why_killed = ""
        self._companion = Companion(keeper, request, on_line=self._on_line, on_log=self._on_log, on_end=self._on_end)

    @property
    def has_ended(self) -> bool:
        """Whether the program and all that it started are gone."""
        return self._companion.end is not None

    def ask(self, method: str, params: JsonObject, *, on_progress: Progress | None = None) -> PendingRequest:
        """Send a request; its number is also the token that notifications of its progress carry."""
        self._last_id += 1
        request = PendingRequest(self._last_id, on_progress, self._deadlines)
        if self._companion.end is not None:
            request.settle(self._lost(self._companion.end))
            return request
        self._pending[request.id] = request
        meta = {**params.get("_meta", {}), "progressToken": request.id}
        self._send({"id": request.id, "method": method, "params": {**params, "_meta": meta}})
        return request

    def tell(self, method: str, params: JsonObject) -> None:
        self._send({"method": method, "params": params})

    def kill(self, why: str) -> None:
        """Kill the program with its whole tree; those who wait for an answer are told why."""
        self._why_killed = self._why_killed or why
        self._companion.kill()

    async def aclose(self, why: str = "it was closed") -> None:
        """Kill it and wait until nothing of it is left."""
        self._why_killed = self._why_killed or why
        await self._companion.aclose()

    def _send(self, message: JsonObject) -> None:
        self._companion.send(encode({"jsonrpc": "2.0", **message}))

    def _on_line(self, line: bytes) -> None:
        match decode(line):
            case {"method": "notifications/progress", "params": {"progressToken": int(token)} as params}:
                request = self._pending.get(token)
                if request and request.on_progress:
                    request.on_progress(params)
            case {"id": int(id), "result": dict(result)}:
                self._settle(id, RpcResult(result=result))
            case {"id": int(id), "error": dict(error)}:
                data = error.get("data")
                message = str(error.get("message", "an error without words"))
                self._settle(id, RpcError(message=message, data=data if isinstance(data, dict) else {}))
            case _:
                self._log.warning("no message: %s", line[:200].decode("utf-8", "replace"))

    def _settle(self, id: int, answer: RpcAnswer) -> None:
        if request := self._pending.pop(id, None):
            request.settle(answer)

    def _on_end(self, end: CompanionEnd) -> None:
        if self._log_line:
            self._on_log(b"\n")
        lost = self._lost(end)
        for id in list(self._pending):
            self._settle(id, lost)

    def _lost(self, end: CompanionEnd) -> RpcLost:
        """Why it ended; when nobody asked it to, with what it printed last."""
        if self._why_killed:
            return RpcLost(reason=self._why_killed)
        printed = self._last_output.text()
        reason = f"it ended unexpectedly ({end})" + (f"; it said last:\n{printed}" if printed else "")
        return RpcLost(reason=reason, exit_code=end.exit_code, signal=end.signal)

    def _on_log(self, data: bytes) -> None:
        """Log what it prints line by line; keep the last of it in case it ends."""
        self._last_output.add(data)
        if self._log.isEnabledFor(logging.INFO):
            *lines, rest = (self._log_line + data).split(b"\n")
            self._log_line = rest[-LONGEST_LOG_LINE:]
            for line in lines:
                self._log.info("%s", line[:LONGEST_LOG_LINE].decode("utf-8", "replace"))


def encode(message: JsonObject) -> bytes:
    """Fast with msgspec; what that refuses (lone surrogates, very large numbers) with Python's own JSON."""
    try:
        return msgspec.json.encode(message)
    except (OverflowError, UnicodeEncodeError, msgspec.MsgspecError, TypeError):
        return json.dumps(message, default=str).encode()


def decode(line: bytes) -> Json:
    try:
        return msgspec.json.decode(line)
    except msgspec.MsgspecError:
        try:
            return json.loads(line)
        except ValueError:
            return None
