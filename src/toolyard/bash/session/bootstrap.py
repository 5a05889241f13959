"""What we need inside a bash whose user may change everything: a word that reads a file, and two traps.

The trap on EXIT lets a shell that ends hand its state on; the one on a signal of our own lets it give up a command.
After a command that may have taken one of these from us, we look.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from toolyard.bash.session.control_channel import PROBE, ShellGone
from toolyard.bash.session.handover import leave_script, snapshot_script
from toolyard.bash.session.protocol import SOURCING, lists_traps, may_define, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.bash.session.control_channel import ControlLine
    from toolyard.bash.session.protocol import Record
    from toolyard.process.private_folders import PrivateFolder


ABORT = getattr(signal, "SIGRTMAX", 64) - 7
"""The signal of ours."""
PRINT_NOTHING = b"exec >/dev/null\n"


class Foothold:
    """Our scripts, our word and our traps in one shell."""

    def __init__(self, control: ControlLine, folder: PrivateFolder, on_looked: Callable[[str | None], None]) -> None:
        """`on_looked` hears the end of every look, and why the shell is of no use any more if that is so."""
        self.plain_words = True
        """Whether words still mean what they mean to every bash."""
        self.leaves_state = True
        """Whether the EXIT trap is ours, by which the shell hands its state on."""
        self.can_abort = True
        """Whether the trap on our own signal is set; without it the signal would end the shell."""
        self.is_looking = False
        self._control = control
        self._folder = folder
        self._on_looked = on_looked
        self._word = SOURCING[0]
        self._lost_words: list[bytes] = []
        self._word_works = True
        kept = quoted(folder.place("state"))
        folder.write("leave", leave_script(kept))
        folder.write("probe", control.ask(PROBE))
        folder.write("snapshot", snapshot_script(kept))

    def first_lines(self, state: bytes | None, *, may_have_functions: bool) -> bytes:
        """What a fresh shell runs first of all, with the state of another if there is one."""
        lines = [b"PS1= PS2=", b"set +H +m", b"unset HISTFILE MAILCHECK", self._leave_trap(), self._abort_trap()]
        if state is not None:
            self._folder.write("before", state)
            lines.append(self.run_own("before") + b" </dev/null &>/dev/null")
        self.plain_words = state is None and not may_have_functions
        return b"\n".join(lines) + b"\n" + (b"" if self.plain_words else PRINT_NOTHING + self.look())

    def read(self, file: bytes) -> bytes:
        """Run what is in a file, in the shell itself."""
        return self._word + b" " + file

    def run_own(self, script: str) -> bytes:
        """Run a script of our own, which prints nothing."""
        return self.read(quoted(self._folder.place(script)))

    def before(self, text: str) -> bytes:
        """What has to be said before a text that may define words: what bash itself prints is for nobody then."""
        if not self.plain_words or not may_define(text):
            return b""
        self.plain_words = False
        return PRINT_NOTHING

    def hide_traps(self, text: str) -> bytes:
        """Take ours away before a text that lists traps."""
        if not lists_traps(text):
            return b""
        self.can_abort = False
        return b"\\builtin trap - %d%b\n" % (ABORT, b" EXIT" if self.leaves_state else b"")

    def look(self) -> bytes:
        """Ask whether the EXIT trap is still ours, and whether our one word still means what it did."""
        self.is_looking = True
        self._word_works = False
        number = self._control.expect(self._on_look)
        trap = b"\\builtin trap -p EXIT >%b\n" % quoted(self._folder.place("trap"))
        return trap + self.run_own("probe") + b"\n" + self._control.ask(number)

    def on_probe(self) -> None:
        """Our script has run: the word works."""
        self._word_works = True

    def _on_look(self, _: Record) -> None:
        if not self._word_works:
            self._try_another_word()
            return
        try:
            trap = self._folder.read("trap")
        except OSError:
            trap = b"unknown"
        self.leaves_state = not trap or os.fsencode(self._folder.path) in trap
        lines = b"" if trap else b"\\builtin %b\n" % self._leave_trap()
        if not self.can_abort:
            lines += b"\\builtin %b\n" % self._abort_trap()
            self.can_abort = True
        with contextlib.suppress(ShellGone):
            self._control.send(lines)
        self._end_look()

    def _try_another_word(self) -> None:
        """Our word means something else now: a function, or nothing at all."""
        self._lost_words.append(self._word)
        word = next((word for word in SOURCING if word not in self._lost_words), None)
        if word is None and len(self._lost_words) > len(SOURCING):
            self._end_look("bash has no way left to read a file")
            return
        self._word = word or SOURCING[0]
        with contextlib.suppress(ShellGone):
            self._control.send((b"" if word else b"\\builtin enable .\n") + self.look())

    def _end_look(self, trouble: str | None = None) -> None:
        self.is_looking = False
        self._on_looked(trouble)

    def _leave_trap(self) -> bytes:
        return b"trap " + quoted(b"\\. " + quoted(self._folder.place("leave"))) + b" EXIT"

    def _abort_trap(self) -> bytes:
        """Bash heeds it once the child it waits for is gone, and then gives up the rest too."""
        return b"trap 'kill -s INT $$' %d" % ABORT
