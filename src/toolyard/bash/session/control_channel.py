"""The private pipes to and from a bash: lines for it to run go out, numbered records of what became of them come back.

bash writes a record by failing: it is told to read from a file that cannot exist, whose name holds what we want to
know, and its error message on standard error is the record. That needs no command that a user could have replaced by a
function, costs one write, and leaves `$?` and the options as they are.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import select
from typing import TYPE_CHECKING, NamedTuple

from toolyard.errors import ShellError

if TYPE_CHECKING:
    from collections.abc import Callable


GREETING, PROBE = 0, 1
"""Numbers of records that belong to no command: the first of all, and the one that our own script asks for."""
READ_SIZE = 1 << 16
LONGEST_RECORD = 16384
"""More than any record: the longest path is 4096 bytes."""
LEAST_NOISE = 20


class ShellGone(Exception):
    """The shell has ended since we last heard of it, and has not read what it was sent."""


class Record(NamedTuple):
    """What bash tells of the end of a command."""

    number: int
    status: int
    flags: str
    """The options that have a letter, as in `$-`."""
    cwd: str
    trouble: str | None = None
    """Why the command could not even begin: bash could not open one of our channels."""


class ControlChannel:
    """Numbers every request, so that the answer finds whoever waits for it."""

    def __init__(self, folder: str, on_record: Callable[[Record], None]) -> None:
        """`on_record` gets the records that nobody `expect`s; `folder` has the files that bash may fail to open."""
        nonce = secrets.token_hex(6)
        self._nonce = nonce.encode()
        self._parser = RecordParser(nonce, folder)
        self._on_record = on_record
        self._expected: dict[int, Callable[[Record], None]] = {}
        self._last_number = PROBE
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
        return b'((1))<"/-/%b %d %b $- ${PWD-}=%b:"||((1))\n' % (self._nonce, number, what, self._nonce)

    def send(self, lines: bytes) -> None:
        """Let bash run lines, as soon as it is free."""
        try:
            os.write(self._lines, lines)
        except BlockingIOError:
            raise ShellError("the shell does not read its commands any more") from None
        except BrokenPipeError:
            raise ShellGone from None

    def has_answer(self, within_ms: int) -> bool:
        """Whether bash writes something in time; this blocks the event loop meanwhile."""
        return bool(self._poll.poll(within_ms))

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
    """Finds records among whatever else an interactive bash writes to its standard error: prompts, notices, traces."""

    __slots__ = ("_end", "_folder", "_rest", "_start")

    def __init__(self, nonce: str, folder: str) -> None:
        self._rest = b""
        self._folder = folder.encode()
        self._start = f"/-/{nonce} ".encode()
        self._end = f"={nonce}:".encode()

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete by now; what came between them is dropped."""
        if self._rest:
            data = self._rest + data
        found = []
        at = 0
        while (end := data.find(self._end, at)) >= 0:
            start = data.rfind(self._start, at, end)
            if start >= 0 and (record := read_record(data[start + len(self._start) : end])):
                if start - at > LEAST_NOISE and (trouble := self._trouble(data[at:start])):
                    record = record._replace(trouble=trouble)
                found.append(record)
            at = end + len(self._end)
        if data.find(b"/", at) < 0:  # most often the rest of bash's error message for the last record
            self._rest = b""
        else:
            self._rest = data[max(at, len(data) - LONGEST_RECORD) :]
        return found

    def _trouble(self, noise: bytes) -> str | None:
        """bash's complaint about a file of ours that it cannot open."""
        if self._folder not in noise:
            return None
        found = re.search(re.escape(self._folder) + rb"/\w+: ([^\n]+)", noise)
        return found and found[1].decode(errors="replace")


def read_record(data: bytes) -> Record | None:
    """A record from what stands between its two marks; None for something else that happens to look like one."""
    words = data.split(b" ", 3)
    try:
        return Record(int(words[0]), int(words[1]), words[2].decode(), words[3].decode("utf-8", "surrogateescape"))
    except (ValueError, IndexError):
        return None
