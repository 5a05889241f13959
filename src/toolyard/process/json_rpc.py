"""JSON-RPC, a message a line, with a program that stays: many questions at once, answers by their numbers."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.process.companion import Companion

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import Json, JsonObject
    from toolyard.process.companion import CompanionEnd, CompanionRequest
    from toolyard.process.keeper.link import KeeperLink


LAST_WORDS = 2048
LONGEST_LOG_LINE = 8192


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The program did what it was asked."""

    result: JsonObject


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The program answered that it cannot."""

    message: str
    data: JsonObject


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The program ended before it answered."""

    reason: str
    exit_code: int | None = None
    """With which it ended by itself; None when it was ended, or never ran."""
    signal: int | None = None


Answer: TypeAlias = Answered | Refused | Lost
Progress: TypeAlias = "Callable[[JsonObject], None]"


class Question:
    """One request under way."""

    __slots__ = ("_answer", "_waiter", "id", "on_progress")

    def __init__(self, id: int, on_progress: Progress | None) -> None:
        self.id = id
        self.on_progress = on_progress
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def answer(self, *, within: float | None = None) -> Answer | None:
        """The answer; None when it takes too long. May be asked again."""
        if self._answer is None:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            alarm = None if within is None else loop.call_later(within, self._wake)
            try:
                await self._waiter
            finally:
                if alarm:
                    alarm.cancel()
        return self._answer

    def settle(self, answer: Answer) -> None:
        """Only the first answer counts."""
        self._answer = self._answer or answer
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class HostLink:
    """Our end of one running program."""

    def __init__(self, keeper: KeeperLink, request: CompanionRequest, *, log: logging.Logger) -> None:
        self._log = log
        self._log_line = b""
        self._said = b""
        self._numbers = 0
        self._questions: dict[int, Question] = {}
        self._why_killed = ""
        self._companion = Companion(keeper, request, on_line=self._hear, on_log=self._hear_log, on_end=self._lose_all)

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._companion.end is not None

    def ask(self, method: str, params: JsonObject, *, on_progress: Progress | None = None) -> Question:
        """Send a request; its number is also the token that partial answers carry."""
        self._numbers += 1
        question = Question(self._numbers, on_progress)
        if self._companion.end is not None:
            question.settle(self._lost(self._companion.end))
            return question
        self._questions[question.id] = question
        about = {**params.get("_meta", {}), "progressToken": question.id}
        self._post({"id": question.id, "method": method, "params": {**params, "_meta": about}})
        return question

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._post({"method": method, "params": params})

    def kill(self, why: str) -> None:
        """End it with its whole tree; those who wait for an answer are told why."""
        self._why_killed = self._why_killed or why
        self._companion.kill()

    async def aclose(self, why: str = "it was closed") -> None:
        """End it and see it gone."""
        self._why_killed = self._why_killed or why
        await self._companion.aclose()

    def _post(self, message: JsonObject) -> None:
        self._companion.send(encode({"jsonrpc": "2.0", **message}))

    def _hear(self, line: bytes) -> None:
        match decode(line):
            case {"method": "notifications/progress", "params": {"progressToken": int(token)} as params}:
                question = self._questions.get(token)
                if question and question.on_progress:
                    question.on_progress(params)
            case {"id": int(id), "result": dict(result)}:
                self._settle(id, Answered(result=result))
            case {"id": int(id), "error": dict(error)}:
                data = error.get("data")
                message = str(error.get("message", "an error without words"))
                self._settle(id, Refused(message=message, data=data if isinstance(data, dict) else {}))
            case _:
                self._log.warning("no message: %s", line[:200].decode("utf-8", "replace"))

    def _settle(self, id: int, answer: Answer) -> None:
        if question := self._questions.pop(id, None):
            question.settle(answer)

    def _lose_all(self, end: CompanionEnd) -> None:
        if self._log_line:
            self._hear_log(b"\n")
        lost = self._lost(end)
        for id in list(self._questions):
            self._settle(id, lost)

    def _lost(self, end: CompanionEnd) -> Lost:
        """Why it ended, with its last words when nobody asked it to."""
        if self._why_killed:
            return Lost(reason=self._why_killed)
        said = self._said.decode("utf-8", "replace").strip()
        reason = f"it ended unexpectedly ({end})" + (f"; it said last:\n{said}" if said else "")
        return Lost(reason=reason, exit_code=end.exit_code, signal=end.signal)

    def _hear_log(self, data: bytes) -> None:
        """What it prints goes to the log, line by line; the last of it is kept in case it ends."""
        self._said = (self._said + data[-LAST_WORDS:])[-LAST_WORDS:]
        if self._log.isEnabledFor(logging.INFO):
            *lines, rest = (self._log_line + data).split(b"\n")
            self._log_line = rest[-LONGEST_LOG_LINE:]
            for line in lines:
                self._log.info("%s", line[:LONGEST_LOG_LINE].decode("utf-8", "replace"))


def encode(message: JsonObject) -> bytes:
    """The quick way, or the one for what only Python's own JSON has: half characters and numbers of any size."""
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
