"""How a configuration names bash itself, and the kind behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from toolyard.config.settings import MISFITS, ResourceLimits
from toolyard.plugins.kind import Named, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.shell.source import ShellSource
    from toolyard.plugins.host import Host
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


class Shell:
    """Bash itself as tools."""

    name = "shell"
    spellings = ("shell:session", "shell:command", '{"shell_session": {…}}', '{"shell_command": {…}}')
    suffixes = ()
    settings = None
    author = None

    def read(self, entry: Json, at: Place) -> Named | None:
        """One of the two shells, with options where it is an object."""
        match entry:
            case "shell:command":
                return Named(references=[ShellCommand(at=at)])
            case "shell:session":
                return Named(references=[ShellSession(at=at)])
            case {"shell_command": dict(given)}:
                return with_options(ShellCommand, CommandOptions, given, at, "shell_command")
            case {"shell_session": dict(given)}:
                return with_options(ShellSession, SessionOptions, given, at, "shell_session")
        return None

    def whole_file(self, value: JsonObject, path: Path) -> None:
        """No file stands for a shell."""

    def stores(self, policy: Any, plugin_cache: Path) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """None beside the plugin cache."""
        return ()

    def refusal(self, reference: ShellCommand | ShellSession, host: Host) -> Problem | None:
        """There must be a bash."""
        if host.interpreter("bash") is not None:
            return None
        hint = "install bash 4.4 or newer and put it on PATH"
        return reference.at.problem("bash_missing", "there is no bash on PATH", hint)

    def source(self, reference: ShellCommand | ShellSession, host: Host) -> ShellSource:
        """The tools of that shell."""
        from toolyard.kinds.shell.source import ShellSource

        return ShellSource(reference, host)


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
