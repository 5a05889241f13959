"""What a call is given: the services that all calls of an agent share, its settings, and what a conversation adds."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import msgspec

from toolyard.core.tool import JsonInput
from toolyard.permissions.verdict import AllowAll, MayHaveNoRules, answer_always

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.core.arguments.decoder import ArgumentDecoder
    from toolyard.core.problems import Problem
    from toolyard.core.reach import Reach
    from toolyard.core.tool import CallContext, JsonObject, Plan, Tool, ToolCall, ToolResult, ToolSpec
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.audit.log import AuditLog
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

    def doubt(self, tool: Tool) -> str:
        """Why a person has to be asked about a tool before it runs under its name; empty if nobody has to."""

    def let_run(self, tool: Tool) -> None:
        """A person was asked because of that, and let it run."""

    def names(self) -> Sequence[str]:
        """The names there are, for a helpful answer to one there is not."""

    def failure(self, name: str) -> Problem | None:
        """Why there is no tool of that name, if it is one that could not be loaded."""


class Checkpointer(Protocol):
    """Keeps states of a workspace, and whatever else must be kept before a call runs."""

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan, reach: Reach) -> None:
        """A call was permitted and is about to run; what this raises ends it."""


class CallHooks(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation adds to the path of its calls."""

    approver: Approver | None = None
    """Who is asked instead of the application's own."""
    checkpoints: Checkpointer | None = None
    callers: tuple[tuple[str, str], ...] = ()
    """The agents, with their sessions, on whose behalf the calls are made."""


NO_HOOKS = CallHooks()


class CallSettings(msgspec.Struct, kw_only=True):
    """The conditions of a call that do not depend on the tool."""

    session: str
    cwd: Path
    """Where calls work: the folder that is given here, with `working_directory` of the configuration below it."""
    config: JsonObject
    output_limit: int
    spill_folder: Path | None = None
    reads_on: bool = False
    """Whether the agent has the tool that reads on in long output."""
    tidy_outputs: Callable[[], None] = lambda: None
    """Drops what is kept whole and is too old, or too much; done after each call that adds to it."""
    agent: str = "default"

    def __post_init__(self) -> None:
        # The one place where it is resolved: every kind of tool, and permissions, take the folder from here.
        configured = self.config.get("working_directory")
        if isinstance(configured, str) and configured:
            self.cwd = self.cwd / configured


class CallServices:
    """What the calls of one agent have in common."""

    def __init__(
        self,
        *,
        tools: ToolFinder,
        audit: AuditLog,
        redactor: Redactor,
        permissions: PermissionPolicy | None = None,
        approver: Approver | None = None,
        sandboxes: Mapping[Reach, Sandbox | None] | None = None,
    ) -> None:
        self.tools = tools
        self.audit = audit
        self.redactor = redactor
        self.permissions = permissions or AllowAll()
        self.ruleless = self.permissions if isinstance(self.permissions, MayHaveNoRules) else None
        """The same, where it can say at once that there are no rules."""
        self.approver = approver or answer_always(allowed=False, reason="nobody is there to ask")
        self.sandboxes = sandboxes or {}
        """What keeps the children of tools in, by how far they may reach."""
        self._names = map(f"{os.urandom(4).hex()}{{:02x}}".format, itertools.count())
        self._decoders: WeakKeyDictionary[Tool, ArgumentDecoder] = WeakKeyDictionary()

    def next_name(self) -> str:
        """What no other call has, of whatever application."""
        return next(self._names)

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


class ReadyCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that was found and fits is about to do."""

    tool: Tool
    context: CallContext
    plan: Plan

    def sandbox(self, services: CallServices) -> Sandbox | None:
        """What keeps it in; nothing does where its tool runs in the application itself."""
        return services.sandboxes.get(self.context.reach) if self.tool.confined else None


class CallEnded(Exception):
    """A step of the path ends the call."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result


class CallChanged(Exception):
    """A person wants the call with other arguments."""

    def __init__(self, arguments: JsonObject) -> None:
        self.arguments = arguments
