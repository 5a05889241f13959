"""The lines by which a bash is told to run a command, so that it acts as in a script and we keep our foothold."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.bash.session.protocol import hides_much, quoted, run_line, run_lines_to_the_end, sets_exit_trap
from toolyard.errors import ShellError

if TYPE_CHECKING:
    from toolyard.bash.session.bootstrap import Foothold
    from toolyard.bash.session.control_channel import ControlLine
    from toolyard.process.private_folders import PrivateFolder


LAST_STATUS = re.compile(r"\$\{?\?|\bexit\s*(?:$|[;&|\n])")
UNKNOWN_SIZE = 1 << 62


class CommandLines:
    """All of them end with the request for a record of the number that is given."""

    def __init__(self, control: ControlLine, foothold: Foothold, folder: PrivateFolder) -> None:
        self._control = control
        self._foothold = foothold
        self._folder = folder
        self._script = ScriptFile(folder, "command")

    def for_builtin(self, text: str, number: int) -> bytes:
        """One that starts and reads nothing prints to the shell's own output."""
        return b"%b 2>&1\n%b" % (text.encode(), self._control.ask(number))

    def for_words(self, text: str, number: int, *, stdin: bytes, output: bytes) -> bytes:
        """One simple command of plain words is said as it is."""
        return run_line(text.encode(), stdin=stdin, output=output) + self._control.ask(number)

    def for_text(self, text: str, number: int, *, stdin: bytes, output: bytes, last_status: int) -> bytes:
        """Anything else: bash reads it like a script, from a file."""
        foothold, ask = self._foothold, self._control.ask(number)
        before = foothold.before(text)
        self._script.write(text)
        before += foothold.hide_traps(text)
        after = foothold.look() if hides_much(text) else b""
        source = foothold.read(self._script.word)
        last = b""
        if last_status and (not foothold.plain_words or LAST_STATUS.search(text)):
            last = b"(exit %d)" % last_status
        if foothold.leaves_state and not sets_exit_trap(text):
            before += last + b"\n" if last else b""
            return before + run_line(source, stdin=stdin, output=output) + ask + after
        source = last + b"; " + source if last else source
        return before + run_lines_to_the_end(source, stdin=stdin, output=output, ask=ask) + after

    def for_job(
        self, text: str, number: int, *, stdin: bytes, output: bytes, end_number: int, job_control: bool
    ) -> bytes:
        """One that goes on beside the shell: the first record has its process id, and the second tells of its end."""
        script = f"j{end_number}"
        self._folder.write(script, text.encode("utf-8", "surrogateescape"))
        job = run_line(self._foothold.run_own(script), stdin=stdin, output=output) + self._control.ask(end_number)
        # With job control it gets a process group of its own, and does not go with the shell when that ends.
        on, off = (b"", b"") if job_control else (b"\\builtin set -m\n", b"\\builtin set +m\n")
        before = self._foothold.before(text)
        return before + on + b"( " + job + b") &\n" + off + self._control.ask(number, b"$!")

    def after_snapshot(self, lines: bytes) -> bytes:
        """The same, once the shell has written its state down."""
        return self._foothold.run_own("snapshot") + b"\n" + lines

    def close(self) -> None:
        """Let go of the file."""
        self._script.close()


class ScriptFile:
    """The file with the text of the last command that was more than plain words."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._fd = folder.new_file(name)
        self._size = 0

    def write(self, text: str) -> None:
        """Put another text in the place of the last."""
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
        """Let go of it; bash may still read it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
