"""What we install inside a bash, whose user may change everything: scripts, three traps, and words that run texts.

The EXIT trap saves the shell's state for the next shell. The traps on SIGINT and on a signal of our own let the shell
give up a command. After a command that may have taken one of these away, bash is asked whether they are still there.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from typing import TYPE_CHECKING, NamedTuple

from toolyard.bash.session.command_text import (
    lists_traps,
    may_define,
    may_exit,
    quoted,
    quoted_in_a_line,
)
from toolyard.bash.session.control_channel import EVAL_PROBE, PROBE, ShellGone
from toolyard.bash.session.handover import DUMP, MOST_TOLD, TRAP
from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.session.control_channel import ControlChannel, Record
    from toolyard.process.private_folders import PrivateFolder


ABORT = getattr(signal, "SIGRTMAX", 64) - 7
"""The signal of our own."""
SOURCE_WORDS = (*(b"\\.", b"\\source", b"\\builtin .", b"\\command ."), *(b"\\builtin source", b"\\command source"))
"""The ways to source a file; a user's function can take any of them away."""
PREFIXES = (b"\\", b"\\builtin ", b"\\command ")
"""The ways to say `eval`, `mapfile` and `unset`."""
TEXT = b"_toolyard_text"
"""The variable that holds a long text until it runs."""
PRINT_NOTHING = b"exec >/dev/null\n"


class Evaluation(NamedTuple):
    """How a text is run."""

    run: bytes
    prepare: bytes = b""
    """Lines that come first."""
    own_lines: int = 0
    """How many lines bash counts before the first of the text."""


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
        self.has_int_trap = True
        """Whether the trap on SIGINT is ours."""
        self.is_traced = False
        """Whether there is an ERR or DEBUG trap, which must not see what is ours."""
        self.can_abort = True
        """Whether the trap on our signal is set; without it the signal would end the shell."""
        self.is_checking = False
        self.word_works = True
        """Whether the script that we had sourced has run."""
        self.eval_works = True
        """Whether the text that we had evaluated has run."""
        self._control = control
        self._folder = folder
        self._on_checked = on_checked
        self._word = SOURCE_WORDS[0]
        self._lost_words: list[bytes] = []
        self._prefix = PREFIXES[0]
        self._lost_prefixes: list[bytes] = []
        self._write_scripts()

    def _write_scripts(self) -> None:
        folder = self._folder
        words = {
            name: quoted(folder.place(name))
            for name in ("state", "dumped", "undo", "gave_up", "fatal", "leaving", "calm")
        }
        leave = state_script(words["state"], traps=b"\\builtin trap - EXIT\n\\builtin trap -p")
        marks = {b"@UNDO@": "undo", b"@NOTE@": "gave_up", b"@CALM@": "calm", b"@LEAVING@": "leaving"}
        give_up, given_up = GIVE_UP, GIVEN_UP.replace(b"@ABORT@", b"%d" % ABORT)
        for mark, name in marks.items():
            give_up, given_up = give_up.replace(mark, words[name]), given_up.replace(mark, words[name])
        folder.write("leave", NOTE_FATAL % words["fatal"] + given_up + leave)
        folder.write("snapshot", state_script(words["state"], traps=b""))  # a shell that goes on keeps its traps
        folder.write("probe", self._control.ask(PROBE))
        folder.write("eval", self._control.ask(EVAL_PROBE) + b"\0")
        folder.write("dump", DUMP.replace(b"@FILE@", words["dumped"]))
        skip = SKIP.replace(b"@LEAVING@", words["leaving"]).replace(b"@FOLDER@", quoted(folder.path))
        skip = quoted(skip.replace(b"@MARK@", self._control.mark))
        folder.write("abort", give_up.replace(b"@SKIP@", skip))
        folder.write("after", given_up)

    def startup_lines(self, state: bytes | None, *, may_have_functions: bool) -> bytes:
        """What a fresh shell runs first, with the state of another if there is one."""
        lines = [b"BASH_ARGV0=bash", b"shopt -s expand_aliases", self._exit_trap(), self._abort_trap()]
        if state is not None:
            self._control.can_count &= b"set -o posix" not in state
            self._folder.write("before", state)
            lines.append(self.source_own("before") + b" &>/dev/null||((1))")  # also where one of its lines fails
        self.has_standard_words = not may_have_functions
        check = b"" if self.has_standard_words else PRINT_NOTHING + self.check_lines()
        return b"\n".join(lines) + b"\n" + check

    def saved_state(self) -> bytes | None:
        """What the shell saved for the next one, if it is whole."""
        try:
            state = self._folder.read("state")
        except OSError:
            return None
        if not state.endswith(WHOLE):
            return None
        own = os.fsencode(self._folder.path) + b"/abort"
        kept = [line for line in state.splitlines(keepends=True) if own not in line]  # our traps, which it gets anew
        return ENDS_SHELLS.sub(b"", b"".join(kept))

    def take_given_up(self) -> bool:
        """Whether the shell skipped what was left of its command, since the last time."""
        return self._take("gave_up")

    def was_fatal(self, text: str) -> bool | None:
        """Whether the shell ended because of what stops a script as `${x:?}` does, and not by an `exit`.

        The two look alike where a text or a function has an `exit` in it; then it is None.
        """
        state = self.saved_state()
        if not self._take("fatal") or state is None:
            return False
        return None if may_exit(text) or EXIT_WORD.search(state) else True

    def _take(self, name: str) -> bool:
        try:
            self._folder.remove_file(name)
        except OSError:
            return False
        return True

    def dumped(self) -> bytes:
        """What the shell told of itself when its dump script last ran; empty when that is not to be had."""
        try:
            return self._folder.read("dumped", MOST_TOLD + 1)
        except OSError:
            return b""

    def source(self, file: bytes) -> bytes:
        return self._word + b" " + file

    def evaluating(self, text: bytes) -> Evaluation:
        """What runs a text as `bash -c` would."""
        return Evaluation(self._prefix + b"eval " + quoted_in_a_line(text))

    def evaluating_with_care(self, text: bytes) -> Evaluation:
        """The same, in a bash of its own if this one cannot read all of it."""
        word = quoted_in_a_line(text)
        reading = quoted_in_a_line(b"set -n\n" + text)
        check = b"if ( %beval %b ) </dev/null &>/dev/null" % (self._prefix, reading)
        run = b'%b;then %beval %b;else "$BASH" --norc -c -- %b bash;fi' % (check, self._prefix, word, word)
        return Evaluation(run)

    def evaluating_apart(self, text: bytes) -> Evaluation:
        """The same in a shell of its own, because afterwards bash would run nothing more."""
        return Evaluation(b"( %beval %b )" % (self._prefix, quoted_in_a_line(text)))

    def evaluating_file(self, file: bytes, free: Sequence[int] = ()) -> Evaluation:
        """The same for a text in a file that ends in a NUL: bash reads it at once, but what we send byte by byte.

        What is ours stands in a line of its own, since bash quotes the line that it cannot read. The descriptors that
        are to be `free` for the text are taken while bash chooses some for itself.
        """
        prefix = self._prefix
        load = b"%bmapfile -d '' -t %b <%b\n" % (prefix, TEXT, file)
        first = b"%bunset -v %b" % (prefix, TEXT)
        if free:
            load += b"%bexec%b\n" % (prefix, b"".join(b" %d</dev/null" % number for number in free))
            first += b";%bexec%b" % (prefix, b"".join(b" %d<&-" % number for number in free))
        return Evaluation(b'%beval "%b"$\'\\n\'"$%b"' % (prefix, first, TEXT), load, own_lines=1)

    def reset_parser(self) -> bytes:
        """What lets bash read `[[` again after a malformed one: another error of syntax, which nobody sees.

        In POSIX mode that would end the shell.
        """
        if not self._control.can_count:
            return b""
        return b"%beval ') # %b' &>/dev/null||((1))\n" % (self._prefix, self._control.mark)

    def source_own(self, script: str) -> bytes:
        """A trap on RETURN that reads finds nothing."""
        return self.source(quoted(self._folder.place(script))) + b" </dev/null"

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
        own = (b" EXIT" if self.saves_state else b"") + (b" INT" if self.has_int_trap else b"")
        return b"\\builtin trap - %d%b\n" % (ABORT, own)

    def check_lines(self) -> bytes:
        """Ask which traps there are, and whether our words still run files and texts."""
        self.is_checking = True
        self.word_works = self.eval_works = False
        number = self._control.expect(self._on_check)
        trap = b"\\builtin trap -p EXIT INT ERR DEBUG >|%b\n" % quoted(self._folder.place("trap"))
        run, load, _ = self.evaluating_file(quoted(self._folder.place("eval")))
        after, probe = self.source_own("after"), self.source_own("probe")
        return (
            self.reset_parser() + after + b"\n" + trap + probe + b"\n" + load + run + b"\n" + self._control.ask(number)
        )

    def _on_check(self, _: Record) -> None:
        if not self.word_works:
            self._try_another_word()
        elif not self.eval_works:
            self._try_another_prefix()
        elif lines := self._lines_for_traps():
            # A signal may come as soon as the check is over, so that must not be before they are set.
            number = self._control.expect(lambda _: self._end_check())
            with contextlib.suppress(ShellGone):
                self._control.send(lines + self._control.ask(number))
        else:
            self._end_check()

    def _lines_for_traps(self) -> bytes:
        """Set those of our traps again that are gone; a user's own stay."""
        try:
            found = {name: text for text, name in TRAP.findall(self._folder.read("trap"))}
        except OSError:
            found = {b"EXIT": b"unknown"}
        own = os.fsencode(self._folder.path)
        self.saves_state = own in found.get(b"EXIT", own)
        self.has_int_trap = own in found.get(b"SIGINT", own)
        self.is_traced = b"ERR" in found or b"DEBUG" in found
        lines = b"" if b"EXIT" in found else b"\\builtin %b\n" % self._exit_trap()
        if not self.can_abort or b"SIGINT" not in found:
            lines += b"\\builtin %b\n" % self._abort_trap(b"INT" if self.has_int_trap else b"")
            self.can_abort = True
        return lines

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

    def _try_another_prefix(self) -> None:
        """The same for the words that run a text."""
        self._lost_prefixes.append(self._prefix)
        prefix = next((prefix for prefix in PREFIXES if prefix not in self._lost_prefixes), None)
        if prefix is None and len(self._lost_prefixes) > len(PREFIXES):
            self._end_check("bash has no way left to run a text")
            return
        self._prefix = prefix or PREFIXES[0]
        with contextlib.suppress(ShellGone):
            enable = b"" if prefix else b"\\builtin enable eval mapfile unset\n"
            self._control.send(enable + self.check_lines())

    def _end_check(self, trouble: str | None = None) -> None:
        self.is_checking = False
        self._on_checked(trouble)

    def _exit_trap(self) -> bytes:
        """A shell that skips what is left of a command would skip this too, but for the file that it makes first.

        From then on no signal makes it give up, which it would save as its state.
        """
        leave, leaving = (quoted(self._folder.place(name)) for name in ("leave", "leaving"))
        # A child that a signal ends before it has begun runs its parent's trap; its file has another name.
        text = b'{ [[ $BASHPID != $$ ]]||\\. %b; } &>/dev/null 3>|%b"${BASHPID#$$}"' % (leave, leaving)
        return b"trap " + quoted(text) + b" EXIT"

    def _abort_trap(self, besides: bytes = b"INT") -> bytes:
        """bash runs it once the child that it waits for is gone, and then gives up the rest of the command too."""
        return b"trap %b %b %d" % (quoted(b"\\. " + quoted(self._folder.place("abort"))), besides, ABORT)


STATE = rb"""\unset -f builtin
{
\builtin printf 'cd -- %q\n' "${PWD-/}"
\builtin shopt -p
\builtin declare -p
\builtin printf '%s\n' '[[ $PWD -ef . ]] || \builtin cd -P .'
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
} >|@FILE@ 2>/dev/null
"""
"""Every line prints what bash itself can read. The order matters: functions come after everything that needs a word
which they may redefine, and aliases after the functions whose words they would change. A function named `builtin` is
the one thing that cannot be saved. A folder that is gone by then is not the one of the next shell."""
NOTE_FATAL = rb"""[[ $? != 1 || ${PIPESTATUS[0]} != 1 || $- == *e* ]] || >|%b
"""
"""Leaves a note if the shell may have ended because of what stops a script as `${x:?}` does."""
GIVE_UP = rb"""[[ $BASHPID == $$ ]] || \builtin exit 130
[[ -e @LEAVING@ || -s @CALM@ || -s @UNDO@ ]] || {
\builtin set +o >|@UNDO@
\builtin set +e +x
>|@NOTE@
{ \builtin shopt -p extdebug; \builtin trap -p DEBUG ERR; } >>@UNDO@
\builtin trap - ERR
\builtin shopt -s extdebug
\builtin trap @SKIP@ DEBUG
}
"""
"""Makes the shell skip whatever is left of its command: while debugging, a DEBUG trap that fails skips a command, and
with status 2, which is that of a bad pattern, also leaves a function or a sourced file. A child that has not begun yet
has its parent's trap; what it must not do is to speak for its parent."""
SKIP = (
    rb"[[ -e @LEAVING@ || $BASH_SOURCE == *@FOLDER@/* || $BASH_COMMAND == *@MARK@* ||"
    rb" $BASH_COMMAND == *@FOLDER@/* && ($BASH_COMMAND == exec* || $BASH_COMMAND != *'&> '*@FOLDER@/o*) ]]"
    rb"||{ \builtin break 999;[[ x =~ [ ]];} 2>/dev/null"
)
"""All but what comes from our folder or is done with it, and the requests for records. What prints to a pipe of the
folder is a command that has not begun."""
GIVEN_UP = rb"""if [[ -s @UNDO@ ]]; then
\builtin trap - DEBUG
\builtin shopt -u extdebug
\. @UNDO@
>|@UNDO@
\builtin echo >|@CALM@
\builtin kill -s @ABORT@ $$
>|@CALM@
fi
\builtin wait $$ 2>/dev/null||((1))
"""
"""A signal that was skipped with the rest stays pending, and would end every later `wait` at once. So it is sent again,
when it means nothing; and the last line waits for nothing."""
EXIT_WORD = late_pattern(rb"\bexit\b(?!\s+(?!1\b)\d+\b)")
"""An `exit` that may be with status 1."""
WHOLE = b"# this is all of it\n"
"""The last line of a saved state; one without it was cut short and is not used."""
ENDS_SHELLS = late_pattern(rb"^(?:set -o onecmd|declare -\S+ PROMPT_COMMAND=.*)\n", re.MULTILINE)
"""With that the next shell might end as the last one did, before it has run anything."""


def state_script(file: bytes, *, traps: bytes) -> bytes:
    """A script by which a shell writes its state to a file, its traps by those lines."""
    return STATE.replace(b"@TRAPS@", traps).replace(b"@WHOLE@", WHOLE.strip()).replace(b"@FILE@", file)
