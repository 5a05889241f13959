"""What we install inside a bash, whose user may change everything: scripts, two traps, and a word that sources files.

The EXIT trap saves the shell's state for the next shell. The trap on a signal of our own lets the shell give up a
command. After a command that may have taken one of these away, bash is asked whether they are still there.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from typing import TYPE_CHECKING

from toolyard.bash.session.command_text import lists_traps, may_define, quoted
from toolyard.bash.session.control_channel import PROBE, ShellGone
from toolyard.bash.session.handover import DUMP, MOST_TOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.bash.session.control_channel import ControlChannel, Record
    from toolyard.process.private_folders import PrivateFolder


ABORT = getattr(signal, "SIGRTMAX", 64) - 7
"""The signal of our own."""
SOURCE_WORDS = (*(b"\\.", b"\\source", b"\\builtin .", b"\\command ."), *(b"\\builtin source", b"\\command source"))
"""The ways to source a file; a user's function can take any of them away."""
PRINT_NOTHING = b"exec >/dev/null\n"


class ShellIntegration:
    """Our scripts, our traps and our word in one shell."""

    def __init__(
        self, control: ControlChannel, folder: PrivateFolder, on_checked: Callable[[str | None], None]
    ) -> None:
        """`on_checked` is told the end of every check, and why the shell can no longer be used if that is so."""
        self.has_standard_words = True
        """Whether no function or alias can have changed what a plain word means."""
        self.saves_state = True
        """Whether the EXIT trap is ours."""
        self.can_abort = True
        """Whether the trap on our signal is set; without it the signal would end the shell."""
        self.is_checking = False
        self.word_works = True
        """Whether the script that we had sourced has run."""
        self._control = control
        self._folder = folder
        self._on_checked = on_checked
        self._word = SOURCE_WORDS[0]
        self._lost_words: list[bytes] = []
        state = quoted(folder.place("state"))
        folder.write("leave", state_script(state, traps=b"\\builtin trap - EXIT\n\\builtin trap -p"))
        folder.write("snapshot", state_script(state, traps=b""))  # a shell that goes on keeps its traps
        folder.write("probe", control.ask(PROBE))
        folder.write("dump", DUMP.replace(b"@FILE@", quoted(folder.place("dumped"))))

    def startup_lines(self, state: bytes | None, *, may_have_functions: bool) -> bytes:
        """What a fresh shell runs first, with the state of another if there is one."""
        lines = [b"PS1= PS2=", b"set +H +m", b"unset HISTFILE MAILCHECK", self._exit_trap(), self._abort_trap()]
        if state is not None:
            self._folder.write("before", state)
            lines.append(self.source_own("before") + b" </dev/null &>/dev/null")
        self.has_standard_words = not may_have_functions
        check = b"" if self.has_standard_words else PRINT_NOTHING + self.check_lines()
        return b"\n".join(lines) + b"\n" + check

    def saved_state(self) -> bytes | None:
        """What the shell saved for the next one, if it is whole."""
        try:
            state = self._folder.read("state")
        except OSError:
            return None
        return ENDS_SHELLS.sub(b"", state) if state.endswith(WHOLE) else None

    def dumped(self) -> bytes:
        """What the shell told of itself when its dump script last ran; empty when that is not to be had."""
        try:
            return self._folder.read("dumped", MOST_TOLD + 1)
        except OSError:
            return b""

    def source(self, file: bytes) -> bytes:
        return self._word + b" " + file

    def source_own(self, script: str) -> bytes:
        return self.source(quoted(self._folder.place(script)))

    def lines_before(self, text: str) -> bytes:
        """What precedes a text that may define words: from then on what bash itself prints is dropped."""
        if not self.has_standard_words or not may_define(text):
            return b""
        self.has_standard_words = False
        return PRINT_NOTHING

    def hide_traps(self, text: str) -> bytes:
        """Take our traps away before a text that lists traps."""
        if not lists_traps(text):
            return b""
        self.can_abort = False
        return b"\\builtin trap - %d%b\n" % (ABORT, b" EXIT" if self.saves_state else b"")

    def check_lines(self) -> bytes:
        """Ask whether the EXIT trap is still ours, and whether our word still sources files."""
        self.is_checking = True
        self.word_works = False
        number = self._control.expect(self._on_check)
        trap = b"\\builtin trap -p EXIT >%b\n" % quoted(self._folder.place("trap"))
        return trap + self.source_own("probe") + b"\n" + self._control.ask(number)

    def _on_check(self, _: Record) -> None:
        if not self.word_works:
            self._try_another_word()
            return
        try:
            trap = self._folder.read("trap")
        except OSError:
            trap = b"unknown"
        self.saves_state = not trap or os.fsencode(self._folder.path) in trap
        lines = b"" if trap else b"\\builtin %b\n" % self._exit_trap()
        if not self.can_abort:
            lines += b"\\builtin %b\n" % self._abort_trap()
            self.can_abort = True
        with contextlib.suppress(ShellGone):
            self._control.send(lines)
        self._end_check()

    def _try_another_word(self) -> None:
        """Our word means something else now: a function, or nothing at all."""
        self._lost_words.append(self._word)
        word = next((word for word in SOURCE_WORDS if word not in self._lost_words), None)
        if word is None and len(self._lost_words) > len(SOURCE_WORDS):
            self._end_check("bash has no way left to read a file")
            return
        self._word = word or SOURCE_WORDS[0]
        with contextlib.suppress(ShellGone):
            self._control.send((b"" if word else b"\\builtin enable .\n") + self.check_lines())

    def _end_check(self, trouble: str | None = None) -> None:
        self.is_checking = False
        self._on_checked(trouble)

    def _exit_trap(self) -> bytes:
        return b"trap " + quoted(b"\\. " + quoted(self._folder.place("leave"))) + b" EXIT"

    def _abort_trap(self) -> bytes:
        """bash runs it once the child that it waits for is gone, and then gives up the rest of the command too."""
        return b"trap 'kill -s INT $$' %d" % ABORT


STATE = rb"""\unset -f builtin
{
\builtin printf 'cd -- %q\n' "${PWD-/}"
\builtin shopt -p
\builtin declare -p
@TRAPS@
\builtin umask -p
\builtin printf 'set --'
\builtin [ $# = 0 ] || \builtin printf ' %q' "$@"
\builtin printf '\n'
\builtin set +o
\builtin declare -f
\builtin declare -F
\builtin alias -p
\builtin printf '%s\n' '@WHOLE@'
} >@FILE@ 2>/dev/null
"""
"""Every line prints what bash itself can read. The order matters: functions come after everything that needs a word
which they may redefine, and aliases after the functions whose words they would change. A function named `builtin` is
the one thing that cannot be saved."""
WHOLE = b"# this is all of it\n"
"""The last line of a saved state; one without it was cut short and is not used."""
ENDS_SHELLS = re.compile(rb"^(?:set -o onecmd|declare -\S+ PROMPT_COMMAND=.*)\n", re.MULTILINE)
"""With that the next shell might end as the last one did, before it has run anything."""


def state_script(file: bytes, *, traps: bytes) -> bytes:
    """A script by which a shell writes its state to a file, its traps by those lines."""
    return STATE.replace(b"@TRAPS@", traps).replace(b"@WHOLE@", WHOLE.strip()).replace(b"@FILE@", file)
