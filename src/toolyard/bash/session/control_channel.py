"""The private pipes to and from a bash: lines for it to run go out, numbered records of what became of them come back.

bash writes a record by failing: it is told to read from a file that cannot exist, whose name holds what we want to
know, and its error message on standard error is the record. That needs no command that a user could have replaced by a
function, costs one write, and leaves `$?` and the options as they are.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import re
import secrets
import select
import termios
import time
from typing import TYPE_CHECKING, NamedTuple

from toolyard.bash.session.command_text import FIRST_KEPT
from toolyard.errors import ShellError
from toolyard.process.process_tree import is_read_by, pipe_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable


GREETING, PROBE, EVAL_PROBE = 0, 1, 2
"""Numbers of records that belong to no command: the first of all, and those that our own scripts ask for."""
COUNTED = b"))\n"
"""The end of what made bash count its lines anew, and of no other lines of ours."""
READ_SIZE = 1 << 16
LONGEST_RECORD = 16384
"""More than any record: the longest path is 4096 bytes."""
AWAKE = 0.0001
"""Twice what bash takes for `true`; whatever takes longer is worth a sleep."""
LEAST_NOISE = 20


class ShellGone(Exception):
    """The shell has ended since we last heard of it, and has not read what it was sent."""


class Record(NamedTuple):
    """What bash tells of the end of a command."""

    number: int
    status: int
    flags: str | None = None
    """The options that have a letter, as in `$-`; None in a short record."""
    cwd: str = ""
    trouble: str | None = None
    """Why the command could not even begin: bash could not open one of our channels."""


class ControlChannel:
    """Numbers every request, so that the answer finds whoever waits for it."""

    def __init__(self, folder: str, on_record: Callable[[Record], None]) -> None:
        """`on_record` gets the records that nobody `expect`s; `folder` has the files that bash may fail to open."""
        nonce = secrets.token_urlsafe(6)
        self._nonce = nonce.encode()
        self.mark = self._nonce
        """What all requests for records have in them."""
        self._parser = RecordParser(nonce, folder)
        self._on_record = on_record
        self._expected: dict[int, Callable[[Record], None]] = {}
        self._last_number = EVAL_PROBE
        self._is_first_line = False
        self.can_count = True
        """Not in POSIX mode, in which more is fatal to bash, nor where LINENO is not what it was."""
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        commands, self._lines = os.pipe()
        self._answers, records = os.pipe()
        self._theirs = [commands, records]
        os.set_blocking(self._lines, False)
        os.set_blocking(self._answers, False)
        self._loop.add_reader(self._answers, self.read)
        self._poll.register(self._answers, select.POLLIN)

    def hand_over(self) -> list[int]:
        """bash's ends of the pipes: its standard input, from which it reads commands, and its standard error."""
        theirs, self._theirs = self._theirs, []
        return theirs

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def expect(self, on_record: Callable[[Record], None]) -> int:
        """The number for a record that goes to `on_record` instead of the current command."""
        number = self.next_number()
        self._expected[number] = on_record
        return number

    def forget(self, number: int) -> None:
        self._expected.pop(number, None)

    def ask(self, number: int, what: bytes = b"$?") -> bytes:
        """The line that makes bash write a record of something, by default of the last status.

        It holds no word, and `set -e` and the ERR trap ignore what is left of `||`.
        """
        return b'3<"/-/%b %d %b $- ${PWD-}=%b:"||((1)) \n' % (self._nonce, number, what, self._nonce)

    def ask_and_count(self, number: int) -> bytes:
        """The same, after which bash counts its lines from one: the record is what it says of a division by zero.

        Whatever follows in the same line is dropped with it. In POSIX mode it would end the shell.
        """
        if not self.can_count:
            return self.ask(number)
        return b"3<$((LINENO=0,1/0 : %b %d $? $- ${PWD-}=%b:))\n" % (self._nonce, number, self._nonce)

    def ask_briefly(self, number: int) -> bytes:
        """The same after a command that can have changed neither options nor folder; bash reads byte by byte."""
        return b'3<"/-/%b %d $?:"\n' % (self._nonce, number)

    @property
    def count_lines(self) -> bytes:
        """What makes bash count its next line as the first, if it is another.

        bash names the line in what it complains of. An assignment to LINENO lasts to the end of its own command, unless
        that fails on the way.
        """
        return b"" if self._is_first_line else self.count_lines_after(0)

    def count_lines_after(self, own_lines: int) -> bytes:
        """The same where lines of ours come first, which do not count."""
        return b"3<$((LINENO=%d,1/0))\n" % -own_lines if self.can_count else b""

    def send(self, lines: bytes) -> None:
        """Let bash run lines, as soon as it is free."""
        self._is_first_line = lines.endswith(COUNTED)
        try:
            os.write(self._lines, lines)
        except BlockingIOError:
            raise ShellError("the shell does not read its commands any more") from None
        except BrokenPipeError:
            raise ShellGone from None

    def unread(self) -> int:
        """How many bytes bash has not read of what it was sent."""
        count = array.array("i", [0])
        fcntl.ioctl(self._lines, termios.FIONREAD, count)
        return count[0]

    def is_awaited(self, pid: int) -> bool:
        """Whether bash waits for its next line, having read all that it was sent."""
        return self.unread() == 0 and is_read_by(pid, os.fstat(self._lines).st_ino)

    def copies_in(self, pid: int) -> list[int]:
        """Where bash keeps its standard error while that is something else."""
        return [fd for fd in pipe_descriptors(pid, os.fstat(self._answers).st_ino) if fd >= FIRST_KEPT]

    def own_text(self, text: str) -> str:
        """A text without the records that came into it."""
        return re.sub(rf"^.*{re.escape(self._nonce.decode())}.*\n?", "", text, flags=re.MULTILINE)

    def has_answer(self, within_ms: int) -> bool:
        """Whether bash writes something in time; this blocks the event loop meanwhile.

        A builtin is over before the kernel has put this process to sleep and woken it again, so it stays awake first.
        """
        poll, is_over = self._poll.poll, time.perf_counter() + AWAKE
        while time.perf_counter() < is_over:
            if poll(0):
                return True
            os.sched_yield()  # to bash itself, where there is but one processor
        return bool(poll(within_ms))

    def read(self) -> None:
        """Read what bash has written, and hand the records on."""
        if self._answers < 0:
            return
        try:
            data = os.read(self._answers, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._answers)
        for record in self._parser.feed(data):
            self._expected.pop(record.number, self._on_record)(record)

    def close(self) -> None:
        if self._answers >= 0:
            self._loop.remove_reader(self._answers)
            for fd in (self._answers, self._lines, *self.hand_over()):
                os.close(fd)
            self._lines = self._answers = -1


class RecordParser:
    """Finds records among whatever else bash writes to its standard error: complaints, traces."""

    __slots__ = ("_folder", "_record", "_rest")

    def __init__(self, nonce: str, folder: str) -> None:
        self._rest = b""
        self._folder = folder.encode()
        self._record = re.compile(rf"(?:/-/|1/0 : ){nonce} (\d+) (\d+)(?::| (\w*) (.*?)={nonce}:)".encode(), re.DOTALL)

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete by now; what came between them is dropped."""
        if self._rest:
            data = self._rest + data
        found = []
        at = 0
        for match in self._record.finditer(data):
            record = read_record(match)
            if match.start() - at > LEAST_NOISE and (trouble := self._trouble(data[at : match.start()])):
                record = record._replace(trouble=trouble)
            found.append(record)
            at = match.end()
        if data.find(b"/", at) < 0:  # most often the rest of bash's error message for the last record
            self._rest = b""
        else:
            self._rest = data[max(at, len(data) - LONGEST_RECORD) :]
        return found

    def _trouble(self, noise: bytes) -> str | None:
        """bash's complaint about a file of ours that it cannot open."""
        if self._folder not in noise:
            return None
        found = re.search(re.escape(self._folder) + rb"/\w+: (?!line )([^\n]+)", noise)
        return found and found[1].decode(errors="replace")


def read_record(match: re.Match[bytes]) -> Record:
    number, status, flags, cwd = match.groups()
    if flags is None:
        return Record(int(number), int(status))
    return Record(int(number), int(status), flags.decode(), cwd.decode("utf-8", "surrogateescape"))
