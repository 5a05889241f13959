"""Writes the lines that make a bash run a command, so that it behaves as `bash -c` and keeps our integration."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from toolyard.bash.session.command_text import (
    MOST_GROUPED,
    MOST_INLINE,
    has_open_substitution,
    high_descriptors,
    may_break_counting,
    may_break_integration,
    may_stop_running,
    may_trace,
    quoted,
    sets_exit_trap,
)
from toolyard.bash.session.shell_integration import Evaluation
from toolyard.core.regexes import late_pattern
from toolyard.errors import ShellError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolyard.bash.session.control_channel import ControlChannel
    from toolyard.bash.session.shell_integration import ShellIntegration
    from toolyard.process.private_folders import PrivateFolder


LAST_STATUS = late_pattern(r"\$\{?\?|\bexit\s*(?:$|[;&|\n])")
SPARE = 250
"""A descriptor that hardly anybody uses."""
UNKNOWN_SIZE = 1 << 62
PRINTS_NOTHING = frozenset({":", "true", "false"})
"""Builtins that need no place to print to, which for bash is a good part of what they cost."""
NEVER_FAILS = frozenset({":", "true", "false", "echo"})
"""Builtins that have nothing to complain of, and change nothing."""


class CommandWriter:
    """All lines end with the request for a record of the number that is given."""

    def __init__(
        self,
        control: ControlChannel,
        integration: ShellIntegration,
        folder: PrivateFolder,
        open_files: Callable[[], Collection[int] | None],
    ) -> None:
        """`open_files` tells the shell's descriptors, or None where they cannot be seen."""
        self._open_files = open_files
        self._control = control
        self._integration = integration
        self._folder = folder
        self._script = ScriptFile(folder, "command")

    def for_builtin(self, text: str, word: str, number: int) -> bytes:
        """A builtin that starts and reads nothing prints to the shell's own output."""
        if text in PRINTS_NOTHING:
            return b"%b\n%b" % (text.encode(), self._control.ask_briefly(number))
        if word in NEVER_FAILS:
            return b"%b 2>&1\n%b" % (text.encode(), self._control.ask_briefly(number))
        count, ask = self._control.count_lines, self._control.ask_and_count(number)
        return b"%b%b 2>&1\n%b" % (count, text.encode(), ask)

    def for_plain_words(self, text: str, number: int, *, stdin: bytes, output: bytes) -> bytes:
        """One simple command of plain words is sent as it is."""
        run = with_streams(text.encode(), stdin=stdin, output=output)
        return self._control.count_lines + run + self._control.ask_and_count(number)

    def for_text(
        self, text: str, number: int, *, stdin: bytes, output: bytes, last_status: int, is_traced: bool
    ) -> bytes:
        """Anything else is evaluated, as `bash -c` does."""
        integration = self._integration
        before = integration.lines_before(text) + integration.hide_traps(text)
        after = integration.check_lines() if may_break_integration(text) else b""
        run, prepare, own_lines = self._running(text, is_traced=is_traced)
        before = self._counting(before + prepare, own_lines)
        if not integration.has_standard_words or LAST_STATUS.search(text):
            run = (b"(exit %d);" % last_status if last_status else b"((1));") + run  # after a request it is always 1
        has_trap = not integration.saves_state or sets_exit_trap(text)
        # What drops a group leaves its streams as they are.
        moves_streams = has_trap or run.endswith(b"\n}")
        with_own_streams = partial(self._at_exit, own_lines=own_lines) if has_trap else with_streams
        run = with_own_streams(run, stdin=stdin, output=output)
        if may_break_counting(text):
            self._control.can_count = False
        if not moves_streams:
            return before + run + self._control.ask_and_count(number) + after
        back = b"exec 2>&%d %d>&- >/dev/null 249<%b 249<&-" % (SPARE, SPARE, self._script.word)
        ask = b"2>&%d %b" % (SPARE, self._control.ask(number).strip())
        return before + run + ask + b"\n" + back + b"\n" + after

    def _at_exit(self, run: bytes, *, own_lines: int, stdin: bytes, output: bytes) -> bytes:
        """The same for a shell that a trap of the user's may end, which prints where the shell itself prints by then.

        So that is the command's output for that long, beginning in a line that does not count.
        """
        count = self._control.count_lines_after(1 + own_lines)
        return b"%bexec %d>&2 &>%b\n%b <%b\n" % (count, SPARE, output, run, stdin)

    def _counting(self, before: bytes, own_lines: int = 0) -> bytes:
        """Lines before a text, which must not count."""
        return before + (self._control.count_lines_after(own_lines) if before else self._control.count_lines)

    def _running(self, text: str, *, is_traced: bool) -> Evaluation:
        data = text.encode("utf-8", "surrogateescape")
        if (is_traced or self._integration.is_traced or may_trace(text)) and can_be_grouped(text):
            return Evaluation(b"{ " + data + b"\n}", b"exec %d>&2\n" % SPARE)
        if may_stop_running(text):
            return self._integration.evaluating_apart(data)
        if has_open_substitution(text):
            return self._integration.evaluating_with_care(data)
        free = self._to_leave_free(text)
        if len(data) <= MOST_INLINE and not free:
            return self._integration.evaluating(data)
        self._script.write(data + b"\0")
        return self._integration.evaluating_file(self._script.word, free)

    def _to_leave_free(self, text: str) -> list[int]:
        """The descriptors that a text opens and that bash would take for itself."""
        if not (wanted := high_descriptors(text)) or (open_files := self._open_files()) is None:
            return []
        return [number for number in wanted if number not in open_files]

    def for_job(
        self, text: str, number: int, *, stdin: bytes, output: bytes, end_number: int, job_control: bool
    ) -> bytes:
        """A command beside the shell: its first record has its process id, the second (`end_number`) tells its end."""
        data = text.encode("utf-8", "surrogateescape")
        free = self._to_leave_free(text)
        if len(data) <= MOST_INLINE and not free:
            run, prepare, own_lines = self._integration.evaluating(data)
        else:
            self._folder.write(f"j{end_number}", data + b"\0")
            file = quoted(self._folder.place(f"j{end_number}"))
            run, prepare, own_lines = self._integration.evaluating_file(file, free)
        job = with_streams(run, stdin=stdin, output=output) + self._control.ask(end_number)
        # With job control it gets a process group of its own, and does not go with the shell when that ends.
        on, off = (b"", b"") if job_control else (b"\\builtin set -m\n", b"\\builtin set +m\n")
        before = self._counting(self._integration.lines_before(text) + on + prepare, own_lines)
        return before + b"( " + job + b") &\n" + off + self._control.ask(number, b"$!")

    def after_snapshot(self, lines: bytes) -> bytes:
        """The same lines, once the shell has saved its state."""
        return self._counting(self._integration.source_own("snapshot") + b"\n") + lines

    def close(self) -> None:
        self._script.close()


def can_be_grouped(text: str) -> bool:
    """Whether a text can stand between braces: only there bash traces it as at the top, and runs no trap for us.

    It must be complete, since it is sent to bash as it is.
    """
    if len(text) > MOST_GROUPED:
        return False
    from toolyard.bash.syntax.complete import is_complete

    return is_complete(text)


def with_streams(source: bytes, *, stdin: bytes, output: bytes) -> bytes:
    return b"%b <%b &>%b\n" % (source, stdin, output)


class ScriptFile:
    """The file with the text of the last command that was long."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._fd = folder.new_file(name)
        self._size = 0

    def write(self, data: bytes) -> None:
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
