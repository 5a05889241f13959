"""How a configuration names bash itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from toolyard.config.settings import MISFITS, ResourceLimits
from toolyard.plugins.kind import Named, Reference

if TYPE_CHECKING:
    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.plugins.kind import Scope


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shell_command`: how the one-shot shell treats its commands."""

    limits: ResourceLimits = ResourceLimits()
    """Instead of the general ones, as far as it says something."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shell_session`: how a live bash session treats its commands."""

    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    on_timeout: Literal["kill", "background"] = "kill"
    """Whether a command past its time is ended, or goes on as a job."""
    max_jobs: Annotated[int, msgspec.Meta(ge=1)] = 64
    tty: bool = False
    """Whether commands print to a terminal instead of a pipe."""
    idle_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = 900.0
    """After how long without a command a shell is given back that has nothing to do; None for never."""
    limits: ResourceLimits = ResourceLimits()
    """Instead of the general ones, as far as it says something."""


class ShellCommand(Reference, frozen=True, kw_only=True):
    """The one-shot shell: the tool `shell`."""

    word: ClassVar[str] = "shell:command"
    options: CommandOptions = CommandOptions()


class ShellSession(Reference, frozen=True, kw_only=True):
    """A live bash session: the tools `bash` and `bash_job`."""

    word: ClassVar[str] = "shell:session"
    scope: ClassVar[Scope] = "session"
    options: SessionOptions = SessionOptions()


def with_options(
    reference: type[ShellCommand | ShellSession],
    kind: type[msgspec.Struct],
    given: dict[str, Json],
    at: Place,
    key: str,
) -> Named:
    """A shell with the options that its entry has of its own."""
    try:
        options: Any = msgspec.convert(given, kind)
    except MISFITS as error:
        message = f"'{key}': {str(error).replace('`', '')}"
        hint = f"it takes {', '.join(kind.__struct_fields__)}"
        return Named(problems=[at.problem("config_type", message, hint, key)])
    return Named(references=[reference(options=options, at=at)])
