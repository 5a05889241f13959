"""The private line to a bash: lines for it to run go out, records of what became of them come back."""

from __future__ import annotations

import asyncio
import os
import secrets
import select
from typing import TYPE_CHECKING

from toolyard.bash.session.protocol import Records, record_line
from toolyard.errors import ShellError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.bash.session.protocol import Record


GREETING, PROBE = 0, 1
"""The numbers of records that are not of a command: the first of all, and the one that our own script asks for."""
READ_SIZE = 1 << 16


class ShellGone(Exception):
    """The shell has ended since we last heard of it, and does not know of what it was told."""


class ControlLine:
    """Numbers what is asked, so that every answer finds who waits for it."""

    def __init__(self, folder: str, on_record: Callable[[Record], None]) -> None:
        """Records that nobody `expect`s go to `on_record`; those of trouble name the `folder` of our channels."""
        nonce = secrets.token_hex(6)
        self._nonce = nonce.encode()
        self._records = Records(nonce, folder)
        self._on_record = on_record
        self._expected: dict[int, Callable[[Record], None]] = {}
        self.last_number = PROBE
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        commands, self._lines = os.pipe()
        self.answers, records = os.pipe()
        """The descriptor of what bash says."""
        self._theirs = [commands, records]
        os.set_blocking(self._lines, False)
        os.set_blocking(self.answers, False)
        self._loop.add_reader(self.answers, self.hear)
        self._poll.register(self.answers, select.POLLIN)

    def hand_over(self) -> list[int]:
        """What bash gets of it: its standard input, from which it reads commands, and its own standard error."""
        theirs, self._theirs = self._theirs, []
        return theirs

    @property
    def is_quiet(self) -> bool:
        """Whether no answer is to come but that of the current command."""
        return not self._expected

    def next_number(self) -> int:
        """A number that nothing had before."""
        self.last_number += 1
        return self.last_number

    def expect(self, on_record: Callable[[Record], None]) -> int:
        """The number by which to ask for a record that somebody else than the current command waits for."""
        number = self.next_number()
        self._expected[number] = on_record
        return number

    def forget(self, number: int) -> None:
        """Nobody waits for that record any more."""
        self._expected.pop(number, None)

    def ask(self, number: int, what: bytes = b"$?") -> bytes:
        """The line that makes bash say something, by default the last status."""
        return record_line(self._nonce, number, what)

    def send(self, lines: bytes) -> None:
        """Let bash run lines, as soon as it is free."""
        try:
            os.write(self._lines, lines)
        except BlockingIOError:
            raise ShellError("the shell does not read its commands any more") from None
        except BrokenPipeError:
            raise ShellGone from None

    def has_answer(self, within_ms: int) -> bool:
        """Whether bash says something, waited for in the loop's own time."""
        return bool(self._poll.poll(within_ms))

    def hear(self) -> None:
        """Take what bash has said."""
        if self.answers < 0:
            return
        try:
            data = os.read(self.answers, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.take(data)
        else:
            self._loop.remove_reader(self.answers)

    def take(self, data: bytes) -> None:
        """Hand on the records in what bash has said."""
        for record in self._records.feed(data):
            self._expected.pop(record.number, self._on_record)(record)

    def close(self) -> None:
        """Hang up."""
        if self.answers >= 0:
            self._loop.remove_reader(self.answers)
            for fd in (self.answers, self._lines, *self.hand_over()):
                os.close(fd)
            self._lines = self.answers = -1
