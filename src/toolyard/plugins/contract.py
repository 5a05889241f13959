"""What a plugin's author imports.

The shortest plugin is a typed function with a docstring:

    from toolyard.plugins.contract import tool

    @tool
    def count_words(text: str) -> int:
        \"\"\"Count the words of a text.\"\"\"
        return len(text.split())

A plugin with a state, several tools or other duties is a class. It needs no base class: what it can do is seen by its
methods, and the protocols below say which there are. Every method may be `async`, and takes whichever of the named
arguments it wants.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, overload

import msgspec

from toolyard.core.conversation import (
    AssistantMessage,
    CallAnswer,
    Message,
    SummaryMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from toolyard.core.model import Answered, CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta, Waiting
from toolyard.core.tool import Hints, JsonInput, JsonObject, TextInput, ToolCall, ToolResult, ToolSpec
from toolyard.errors import ProviderError, ToolError, ToolStopped
from toolyard.files.door import LARGEST_TEXT, Door
from toolyard.plugins.author_code.context import ToolContext

__all__ = [
    "AdaptedToolPlugin",
    "Answered",
    "ApplicationContext",
    "ApplicationPlugin",
    "AssistantMessage",
    "CallAnswer",
    "CallDelta",
    "FeatureContext",
    "FeaturePlugin",
    "Hints",
    "JsonInput",
    "Message",
    "ModelEvent",
    "ModelRequest",
    "Notice",
    "ProviderError",
    "ProviderPlugin",
    "Selective",
    "SummaryMessage",
    "TextDelta",
    "TextInput",
    "ThinkingDelta",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolMessage",
    "ToolOptions",
    "ToolPlugin",
    "ToolResult",
    "ToolSpec",
    "ToolStopped",
    "Usage",
    "UserMessage",
    "Waiting",
    "tool",
]

Function = TypeVar("Function", bound="Callable[..., Any]")
MARK = "__toolyard_tool__"
"""The attribute by which a function is known as a tool."""


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `@tool` says of a function beyond its signature and its docstring."""

    name: str | None = None
    description: str | None = None
    timeout: float | None = None
    hints: Hints = msgspec.field(default_factory=Hints)
    text: TextInput | None = None
    preview: Callable[..., Any] | None = None
    default_enabled: bool = True
    tags: frozenset[str] = frozenset()
    required_tags: frozenset[str] = frozenset()
    forbidden_tags: frozenset[str] = frozenset()


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    read_only: bool = False,
    destructive: bool = False,
    parallel: bool = True,
    freeform: bool = False,
    syntax: Literal["lark", "regex"] | None = None,
    grammar: str | None = None,
    preview: Callable[..., Any] | None = None,
    default_enabled: bool = True,
    tags: Sequence[str] = (),
    required_tags: Sequence[str] = (),
    forbidden_tags: Sequence[str] = (),
) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    read_only: bool = False,
    destructive: bool = False,
    parallel: bool = True,
    freeform: bool = False,
    syntax: Literal["lark", "regex"] | None = None,
    grammar: str | None = None,
    preview: Callable[..., Any] | None = None,
    default_enabled: bool = True,
    tags: Sequence[str] = (),
    required_tags: Sequence[str] = (),
    forbidden_tags: Sequence[str] = (),
) -> Function | Callable[[Function], Function]:
    """Make a function a tool. The function stays as it is and can be called as before.

    `freeform` gives it one text instead of an object, of a grammar where there is one. `preview` takes the same
    arguments and says in a line what the call will do. `timeout` is in seconds; the policy's limit is the default.
    """
    options = ToolOptions(
        name=name,
        description=description,
        timeout=timeout,
        hints=Hints(read_only=read_only, destructive=destructive, parallel=parallel),
        text=TextInput(syntax=syntax, grammar=grammar) if freeform or grammar else None,
        preview=preview,
        default_enabled=default_enabled,
        tags=frozenset(tags),
        required_tags=frozenset(required_tags),
        forbidden_tags=frozenset(forbidden_tags),
    )

    def mark(function: Function) -> Function:
        setattr(function, MARK, options)
        return function

    return mark if function is None else mark(function)


class Selective(Protocol):
    """What any plugin may say of when it is on; all of it is optional."""

    default_enabled: bool
    """False: on only where a configuration enables it by its id."""

    def is_enabled(self, config: JsonObject, tags: frozenset[str], models: Sequence[str], context: Any) -> bool | None:
        """True or False decides; None leaves it to the tags."""

    def required_tags(self) -> Sequence[str]:
        """Tags that must all be there."""

    def forbidden_tags(self) -> Sequence[str]:
        """Tags none of which may be there."""

    def tags(self) -> Sequence[str]:
        """Tags that are there while this plugin is on."""


class ToolPlugin(Protocol):
    """Tools with a state of their own. Required: `id`, `get_tool_schemas`, `execute_tool`."""

    id: str

    def init(self, config: JsonObject) -> Any:
        """The state for an agent's configuration, made once for each; optional."""

    def prepare(self, config: JsonObject, state: Any) -> Any:
        """Whatever the schemas need that takes time; optional, and may be called `prepare_async`."""

    def get_tool_schemas(self, state: Any, prepared: Any = None) -> Sequence[JsonObject | ToolSpec]:
        """The tools: function schemas of OpenAI's form, `custom` ones for free text, or `ToolSpec`."""

    def execute_tool(self, tool_name: str, payload: JsonObject | str, state: Any, context: ToolContext) -> Any:
        """Answer a call. `payload` is the checked object, or the text of a free-text tool; `arguments` is the same."""

    def preview_tool(self, tool_name: str, payload: JsonObject | str, state: Any) -> str:
        """Say in a line what the call will do; optional."""

    def close(self) -> None:
        """Release what the plugin holds; optional, of any plugin, and may be called `aclose`."""


class AdaptedToolPlugin(Protocol):
    """Tools under names and arguments of their own, for which tools of the application do the work.

    They run in the sandbox of those tools, under the same rules. Required: `id`, `get_tool_schemas`, `as_call`.
    """

    id: str
    builds_on: str | tuple[str, ...]
    """The entry whose tools do the work, or several: `files:more`, `shell:command`, `shell:session`."""
    own_words: Mapping[str, str]
    """Regular expressions of what those tools advise, and what to say instead; optional."""
    asks_reach: str
    """How a call asks to leave the sandbox, for results that it stopped; optional."""

    def get_tool_schemas(self, state: Any, prepared: Any = None) -> Sequence[JsonObject | ToolSpec]:
        """The tools, as a `ToolPlugin` gives them."""

    def as_call(self, tool_name: str, payload: JsonObject | str, config: JsonObject) -> tuple[str, JsonObject] | str:
        """The tool that does the work and its arguments, or the answer itself.

        It only translates, for nobody was asked yet. `ToolError` for arguments that cannot be meant.
        """

    def as_answer(self, tool_name: str, payload: JsonObject | str, text: str, config: JsonObject) -> str:
        """What the tool said, in words that fit the names of the family; optional."""


class FeaturePlugin(Protocol):
    """Changes what is sent to a model. Required: `id` and one of the methods."""

    id: str

    def build_system_message(self, config: JsonObject, context: FeatureContext) -> str | None:
        """A part of the system message; None when there is nothing to say."""

    def request_options(self, config: JsonObject, context: FeatureContext) -> JsonObject:
        """Options for the request, such as a temperature; those of later plugins win."""

    def get_ui_elements(self, config: JsonObject, tags: Sequence[str], models: Sequence[str]) -> Sequence[JsonObject]:
        """Controls by which a person changes the configuration, as JSON objects."""


class ApplicationContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an application plugin may know of a conversation, and do with it."""

    agent: str
    session: str
    config: JsonObject
    """The agent's configuration."""
    metadata: Callable[[], JsonObject]
    """What the session knows of itself now, such as the `title` that somebody gave it."""
    set_metadata: Callable[..., Awaitable[None]]
    """`await context.set_metadata(title="…")`."""
    ask: Callable[..., Awaitable[str]]
    """`await context.ask("…", model="…")`: what a model of the agent's provider answers to a text."""


class ApplicationPlugin(Protocol):
    """Watches the conversations of an agent. Required: `id` and one of the methods."""

    id: str
    event_types: Sequence[str]
    """The types of events that it wants to hear of; all without it."""

    def start(self, config: JsonObject) -> None:
        """Called once, before the first conversation; optional."""

    def on_event(self, event: JsonObject, context: ApplicationContext) -> None:
        """Called for each event, in their order, in the form of `toolyard chat --json`; no turn waits for it."""

    def stop(self) -> None:
        """Called once, when all is over and every event was heard; optional."""


class ProviderPlugin(Protocol):
    """Asks a model. Required: `id` and `stream`."""

    id: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send a request and tell what comes; the last event is `Answered`.

        Raises `ProviderError` when there is no answer to be had. Cancelling ends the request.
        """

    def searches_tools(self, config: JsonObject, model: str) -> bool:
        """Whether the service finds tools by itself when a request says `search`; optional, and False without it."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person should mend, found while a request was made."""

    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None


class FeatureContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a feature may know of the request that it takes part in."""

    agent: str
    cwd: Path
    config_dir: Path
    """The folder that relative paths of the configuration start at."""
    tags: Sequence[str] = ()
    models: Sequence[str] = ()
    notices: list[Notice] = msgspec.field(default_factory=list)

    door: Door = msgspec.field(default_factory=Door.here)

    def read_text(self, name: str) -> str:
        """The text of a file that the configuration names, read as carefully as the configuration itself.

        OSError when there is none, or it is not to be obeyed; UnicodeDecodeError when it is no text.
        """
        return self.door.read_accepted(self.config_dir / name, largest=LARGEST_TEXT).text()

    def report(self, message: str, *, hint: str = "", file: str | None = None, line: int | None = None) -> None:
        """Say that something is wrong, and go on."""
        self.notices.append(Notice(message=message, hint=hint, file=file, line=line))


def read_file(path: Path, *, largest: int) -> bytes:
    """A file that a configuration names, for a plugin that goes by what it says: a regular one, not of tools' making.

    OSError when there is none, or it is not to be obeyed.
    """
    return Door.here().read_accepted(path, largest=largest).data


def options_of(function: Any) -> ToolOptions | None:
    """What `@tool` says of a function; None when it is not marked."""
    found = getattr(function, MARK, None)
    return found if isinstance(found, ToolOptions) else None
