"""The one path of every call.

find → decode → preview → permission → checkpoint → run → limit → redact → audit → result

No kind of tool can leave a step out, because no kind knows of the path: a tool has a spec, a plan, a preview and a run,
and everything around them is here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from toolyard.core.tool import JsonInput
from toolyard.permissions.verdict import AllowAll, answer_always
from toolyard.runtime.checkpoints import NoCheckpoints
from toolyard.runtime.passage import CallSettings, Passage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.arguments.decoder import ArgumentDecoder
    from toolyard.core.events import Observer
    from toolyard.core.tool import JsonObject, Tool, ToolCall, ToolResult
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.audit.log import AuditLog
    from toolyard.runtime.checkpoints import Checkpointer
    from toolyard.runtime.redaction import Redactor


TEXT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


class ToolFinder(Protocol):
    """Where tools are looked up by name."""

    async def find(self, name: str) -> Tool | None:
        """The tool of that name as it is now."""

    def names(self) -> Sequence[str]:
        """The names there are, for a helpful answer to one there is not."""


class Invoker:
    """Takes calls along the path."""

    def __init__(
        self,
        *,
        tools: ToolFinder,
        audit: AuditLog,
        redactor: Redactor,
        permissions: PermissionPolicy | None = None,
        approver: Approver | None = None,
        checkpoints: Checkpointer | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.tools = tools
        self.audit = audit
        self.redactor = redactor
        self.permissions = permissions or AllowAll()
        self.approver = approver or answer_always(allowed=False, reason="nobody is there to ask")
        self.checkpoints = checkpoints or NoCheckpoints()
        self.sandbox = sandbox
        """What keeps the children of tools in, for the record."""
        self._decoders: WeakKeyDictionary[Tool, ArgumentDecoder] = WeakKeyDictionary()

    async def call(self, call: ToolCall, settings: CallSettings, observer: Observer | None = None) -> ToolResult:
        """Take one call along the whole path; whatever happens to it, it has one result."""
        passage = Passage(self, call, settings, observer)
        await passage.prepare()
        return passage.result or await passage.execute()

    async def preview(self, call: ToolCall, settings: CallSettings) -> str | ToolResult:
        """What a call would do, in a line; the refusal when it could not even begin."""
        return await Passage(self, call, settings, None).preview()

    async def call_all(
        self,
        calls: Iterable[ToolCall],
        settings: CallSettings,
        observer: Observer | None = None,
        *,
        cancelled: asyncio.Event | None = None,
    ) -> dict[str, ToolResult]:
        """Take the calls of one model turn: asked for in order, run side by side, answered in order by their ids."""
        passages: dict[str, Passage] = {}
        for call in calls:
            passages.setdefault(call.id, Passage(self, call, settings, observer))
        async with asyncio.TaskGroup() as group:
            work = group.create_task(take_all(list(passages.values())))
            if cancelled is not None:
                watch = group.create_task(cancel_when(cancelled, work))
                work.add_done_callback(lambda _: watch.cancel())
        return {id: passage.result or passage.cancel() for id, passage in passages.items()}

    def decoder_for(self, tool: Tool) -> ArgumentDecoder:
        """The tool's decoder, made once for each version of the tool."""
        decoder = self._decoders.get(tool)
        if decoder is None:
            from toolyard.core.arguments.decoder import ArgumentDecoder

            shape = tool.spec.input
            if isinstance(shape, JsonInput):
                decoder = ArgumentDecoder(shape.schema, defaults=shape.defaults)
            else:
                decoder = ArgumentDecoder(TEXT_SCHEMA)
            self._decoders[tool] = decoder
        return decoder


async def take_all(passages: Sequence[Passage]) -> None:
    """Ask in order; then run side by side, but those tools one after the other that want to be alone."""
    alone = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        for passage in passages:
            await passage.prepare()
            if passage.result is None:
                group.create_task(passage.execute() if passage.parallel else execute_within(alone, passage))


async def execute_within(lock: asyncio.Lock, passage: Passage) -> ToolResult:
    async with lock:
        return await passage.execute()


async def cancel_when(cancelled: asyncio.Event, work: asyncio.Task[None]) -> None:
    await cancelled.wait()
    work.cancel()
