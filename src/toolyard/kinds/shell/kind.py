"""The kind of bash itself: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.shell.reference import CommandOptions, SessionOptions, ShellCommand, ShellSession, with_options
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json
    from toolyard.kinds.shell.source import ShellSource
    from toolyard.plugins.host import Host


class Shells(Kind):
    """Bash itself as tools."""

    name = "shell"
    spellings = ("shell:session", "shell:command", '{"shell_session": {…}}', '{"shell_command": {…}}')

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

    def refusal(self, reference: ShellCommand | ShellSession, host: Host) -> Problem | None:
        if host.interpreter("bash") is not None:
            return None
        hint = "install bash 4.4 or newer and put it on PATH"
        return reference.at.problem("bash_missing", "there is no bash on PATH", hint)

    def source(self, reference: ShellCommand | ShellSession, host: Host) -> ShellSource:
        from toolyard.kinds.shell.source import ShellSource

        return ShellSource(reference, host)
