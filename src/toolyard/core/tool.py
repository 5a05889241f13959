"""What a tool is, how it is called and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from toolyard.core.content import Part, TextPart
from toolyard.core.reach import Reach

Json: TypeAlias = Any
"""A JSON value. It is `Any` because that is what JSON is until a schema has been applied."""

JsonObject: TypeAlias = Mapping[str, Json]

Failure = Literal["unknown_tool", "invalid_arguments", "denied", "exit_code", "timeout", "cancelled", "crash"]
Stream = Literal["stdout", "stderr"]
WireFormat = Literal["openai", "responses", "anthropic", "mcp"]


OWN = "own"
"""The kind of tools that belong to no kind: the application's own, which change nothing by themselves."""


class JsonInput(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments are a JSON object that fits a JSON Schema."""

    schema: JsonObject
    defaults: JsonObject = msgspec.field(default_factory=dict)
    """Defaults of properties that the schema itself does not give."""
    verbatim: bool = False
    """Whether OpenAI's formats carry the schema exactly as it is, also where they would rather have a little more."""


class TextInput(msgspec.Struct, frozen=True, kw_only=True):
    """The argument is free text, optionally of a grammar; it travels as `{"input": text}`."""

    syntax: Literal["lark", "regex"] | None = None
    grammar: str | None = None


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool says of itself; a claim, never a permission."""

    read_only: bool = False
    destructive: bool = False
    parallel: bool = True
    resumes: bool = False
    """Whether a call that was cut off can be made again, and goes on where it was: what it did, it does not repeat."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a model, a person or a wire format needs to know of a tool."""

    name: str
    description: str = ""
    input: JsonInput | TextInput
    timeout: float | None = None
    native: Mapping[WireFormat, JsonObject] = msgspec.field(default_factory=dict)
    hints: Hints = Hints()


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it came in; `arguments` may be the JSON text that a model wrote."""

    id: str
    name: str
    arguments: JsonObject | str
    free_text: bool = False
    """Whether it came as a call of its own kind for free text, which its result has to follow."""
    timeout: float | None = None
    """How many seconds it may take, instead of the usual limit of such tools."""
    by_person: bool = False
    """Whether a person wrote it, and no model: who needs not have looked by a tool before changing something."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is about to do, in the terms in which permission and audit think."""

    arguments: JsonObject
    argv: Sequence[str] = ()
    command: str | None = None
    cwd: Path | None = None
    env_keys: Sequence[str] = ()
    paths: Sequence[str] = ()
    """Files that it is about, beside those that its arguments name as such."""
    reach: Reach | None = None
    """How far it wants to reach; None for as far as such calls usually do."""
    why_reach: str = ""
    """Why it wants that, in the words of whoever calls."""
    server: str = ""
    """The server of others that does it, as `NAME#MADE_OF`: what is kept of an answer holds for that one alone."""
    doubt: str = ""
    """Why a person has to be asked first, whatever rules allow it."""
    prepared: Any = None
    """Whatever the kind made of the arguments and wants to find again when it runs."""


class Truncation(msgspec.Struct, frozen=True, kw_only=True):
    """What was left out of a text, and where the whole is kept if it is."""

    omitted_bytes: int
    omitted_lines: int
    kept_at: Path | None = None
    starts_at: int = 0
    """Where in the whole that begins which was left out, in bytes."""


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a tool, or the path of its call, asks of the program that the call comes from, in words of MCP."""

    method: str
    params: JsonObject
    by: str = ""
    """Who asks, where it is somebody else than the tool's author: the name of an MCP server."""


class ClientLink(Protocol):
    """The program that a call comes from, where it speaks MCP and can be asked and told something meanwhile."""

    log_level: str | None
    """The least level of messages that it wants to hear; None for none."""

    async def ask(self, name: str, request: ClientRequest) -> Json:
        """Its answer; None if it cannot be asked that, or will not say."""

    def log(self, message: JsonObject) -> None:
        """Tell it a message, with `level` and `data`, and perhaps `logger`."""


class RedactedStream(Protocol):
    """A text that comes in pieces and goes on without known secrets."""

    @property
    def holds_back(self) -> bool:
        """Whether it keeps an end that may be the beginning of a secret until more comes."""

    def feed(self, text: str) -> None:
        """Pass on what is sure by now."""

    def finish(self) -> None:
        """Nothing more comes: pass on the rest."""


class OutputRedactor(Protocol):
    """Takes known secrets out of what tools print."""

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret to look for."""

    @property
    def longest(self) -> int:
        """How many bytes the longest has."""

    def stream(self, emit: Callable[[str], None]) -> RedactedStream:
        """What comes in pieces."""

    def redact_window(self, before: str, text: str, after: str) -> str:
        """A part of a text, without what in it belongs to a secret; what is around it tells."""


class KeptFile(msgspec.Struct, frozen=True):
    """A file for the whole of long output, and what must not get into it."""

    path: str
    redactor: OutputRedactor | None = None

    def __fspath__(self) -> str:
        return self.path


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a tool may know of the world it is called in."""

    call_id: str
    cwd: Path
    """Where the tool works; `working_directory` of the configuration is taken into account."""
    config: JsonObject
    output_limit: int
    session: str = ""
    """The conversation that the call belongs to, for tools that keep a state for each."""
    agent: str = ""
    emit: Callable[[Stream, str], None] | None = None
    """Takes partial output as it comes; None when nobody listens, so that nothing is decoded in vain."""
    spill_folder: Path | None = None
    """Where output is kept whole that is too long for a result."""
    spill_name: str = "output"
    redactor: OutputRedactor | None = None
    """Knows the secrets that show in no result: for files that are kept, and output that comes in several results."""
    reach: Reach = "work"
    """How far this call may reach: the sandbox that its processes run in."""
    usual_reach: Reach = "work"
    """How far calls of this conversation reach without a question, for tools that keep a process for it."""
    given: JsonObject | str | None = None
    """The arguments as the call had them, before any default or repair: the very text, where a model wrote one."""
    timeout: float | None = None
    """How many seconds the call may take, instead of the usual limit of such tools."""
    by_person: bool = False
    """Whether a person wrote the call, and no model."""
    ask_person: Callable[[str, JsonObject], Awaitable[JsonObject | None]] | None = None
    """Asks a person to fill in a form for the tool: what to say, and the form's schema; None when they will not."""
    client: ClientLink | None = None
    """The program that the call comes from, if it can be asked; what an MCP server answers is passed on to it."""

    @property
    def spill_to(self) -> KeptFile | None:
        """Where the whole output goes when it is too long to be kept in the result."""
        return KeptFile(f"{self.spill_folder}/{self.spill_name}", self.redactor) if self.spill_folder else None

    @property
    def spill_errors_to(self) -> KeptFile | None:
        """The same for standard error, where that is kept apart."""
        file = self.spill_to
        return file and KeptFile(f"{file.path.removesuffix('.out')}.err", file.redactor)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer to a call: text for the model, and how it came about."""

    text: str
    failure: Failure | None = None
    exit_code: int | None = None
    signal: int | None = None
    bytes_out: int = 0
    truncated: Truncation | None = None
    data: JsonObject | None = None
    attachments: tuple[Part, ...] = ()
    """Images, sound and links that belong to the result, beside its text."""
    original: JsonObject | None = None
    """The answer of an MCP server as it was, for a client that it is passed on to."""

    @property
    def content(self) -> tuple[Part, ...]:
        """The whole result in parts: its text, if there is any, and what is attached."""
        return (TextPart(text=self.text), *self.attachments) if self.text else self.attachments

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked."""
        return self.failure is None


class Tool(Protocol):
    """What every kind of tool implements; everything around it is the call path's business."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and input."""

    @property
    def kind(self) -> str:
        """The kind's name in audit lines and listings."""

    @property
    def confined(self) -> bool:
        """Whether it does its work in children, which a sandbox keeps in; False if in the application itself."""

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """Say what `run` will do, without doing anything; a result when it cannot be done with these arguments."""

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """Say in one line for a person what `run` will do; empty when there is nothing to say."""

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Do it; return the one result and emit the rest."""
