"""Writes the lines that make a bash run a command, so that it behaves as in a script and keeps our integration."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.bash.session.command_text import may_break_integration, quoted, sets_exit_trap
from toolyard.errors import ShellError

if TYPE_CHECKING:
    from toolyard.bash.session.control_channel import ControlChannel
    from toolyard.bash.session.shell_integration import ShellIntegration
    from toolyard.process.private_folders import PrivateFolder


LAST_STATUS = re.compile(r"\$\{?\?|\bexit\s*(?:$|[;&|\n])")
SPARE = 250
"""A descriptor that hardly anybody uses."""
UNKNOWN_SIZE = 1 << 62
PRINTS_NOTHING = frozenset({":", "true", "false"})
"""Builtins that need no place to print to, which for bash is a good part of what they cost."""


class CommandWriter:
    """All lines end with the request for a record of the number that is given."""

    def __init__(self, control: ControlChannel, integration: ShellIntegration, folder: PrivateFolder) -> None:
        self._control = control
        self._integration = integration
        self._folder = folder
        self._script = ScriptFile(folder, "command")

    def for_builtin(self, text: str, number: int) -> bytes:
        """A builtin that starts and reads nothing prints to the shell's own output."""
        form = b"%b\n%b" if text in PRINTS_NOTHING else b"%b 2>&1\n%b"
        return form % (text.encode(), self._control.ask(number))

    def for_plain_words(self, text: str, number: int, *, stdin: bytes, output: bytes) -> bytes:
        """One simple command of plain words is sent as it is."""
        return with_streams(text.encode(), stdin=stdin, output=output) + self._control.ask(number)

    def for_text(self, text: str, number: int, *, stdin: bytes, output: bytes, last_status: int) -> bytes:
        """Anything else is sourced from a file, where bash behaves as in a script."""
        integration, ask = self._integration, self._control.ask(number)
        before = integration.lines_before(text)
        self._script.write(text)
        before += integration.hide_traps(text)
        after = integration.check_lines() if may_break_integration(text) else b""
        source = integration.source(self._script.word)
        last = b""
        if last_status and (not integration.has_standard_words or LAST_STATUS.search(text)):
            last = b"(exit %d)" % last_status
        if integration.saves_state and not sets_exit_trap(text):
            before += last + b"\n" if last else b""
            return before + with_streams(source, stdin=stdin, output=output) + ask + after
        source = last + b"; " + source if last else source
        return before + with_streams_at_exit(source, stdin=stdin, output=output, ask=ask) + after

    def for_job(
        self, text: str, number: int, *, stdin: bytes, output: bytes, end_number: int, job_control: bool
    ) -> bytes:
        """A command beside the shell: its first record has its process id, the second (`end_number`) tells its end."""
        script = f"j{end_number}"
        self._folder.write(script, text.encode("utf-8", "surrogateescape"))
        source = self._integration.source_own(script)
        job = with_streams(source, stdin=stdin, output=output) + self._control.ask(end_number)
        # With job control it gets a process group of its own, and does not go with the shell when that ends.
        on, off = (b"", b"") if job_control else (b"\\builtin set -m\n", b"\\builtin set +m\n")
        before = self._integration.lines_before(text)
        return before + on + b"( " + job + b") &\n" + off + self._control.ask(number, b"$!")

    def after_snapshot(self, lines: bytes) -> bytes:
        """The same lines, once the shell has saved its state."""
        return self._integration.source_own("snapshot") + b"\n" + lines

    def close(self) -> None:
        self._script.close()


def with_streams(source: bytes, *, stdin: bytes, output: bytes) -> bytes:
    return b"%b <%b &>%b\n" % (source, stdin, output)


def with_streams_at_exit(source: bytes, *, stdin: bytes, output: bytes, ask: bytes) -> bytes:
    """The same for a shell that a trap of the user's may end: what the trap prints goes where the shell prints by then.

    So the shell itself prints to the command's output for that long. An interrupt drops the rest of the line; the lines
    after it restore the streams then, and otherwise fail because the descriptor is closed.
    """
    ask = ask.strip().replace(b"((1))<", b"((1)) 2>&%d <" % SPARE, 1)
    back = b"exec 2>&%d %d>&- >/dev/null||((1))" % (SPARE, SPARE)
    return b"exec %d>&2 &>%b; %b <%b; %b; %b\n%b\n%b\n" % (SPARE, output, source, stdin, ask, back, ask, back)


class ScriptFile:
    """The file with the text of the last command that was more than plain words."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._fd = folder.new_file(name)
        self._size = 0

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        try:
            os.pwrite(self._fd, data, 0)
            if len(data) < self._size:
                os.ftruncate(self._fd, len(data))
        except OSError as error:
            self._size = UNKNOWN_SIZE  # so that the next is cut to its own
            raise ShellError(f"there is no room for the command's text: {error.strerror}") from error
        self._size = len(data)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
