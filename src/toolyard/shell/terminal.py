"""The terminal of a shell, at our end of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from typing import TYPE_CHECKING

from toolyard.errors import ShellError
from toolyard.process.pipe_end import read_some

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Terminal"]


class Terminal:
    """A pseudo-terminal that a shell controls: for `/dev/tty`, for job control, and for whoever asks a question."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        try:
            self._fd, slave = os.openpty()
        except OSError as error:
            raise ShellError(f"no terminal is left for a bash session: {error.strerror}") from error
        try:
            self.name = os.ttyname(slave)
            make_quiet(slave)
        finally:
            self._spare = slave
        os.set_blocking(self._fd, False)
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def taken(self) -> None:
        """The shell has it: from now on its end is the shell's."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def write(self, data: bytes) -> None:
        """Type something. What does not fit into the terminal's own memory is lost, as with a real one."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._fd, data)

    def catch_up(self) -> None:
        """Take what there is, before it is taken for something else's."""
        while self._fd >= 0 and self._read():
            pass

    def drain(self) -> None:
        """Take what was printed; the kernel hands it on a moment after it was written."""
        import select

        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while self._fd >= 0 and poll.poll(2):
            if not self._read():
                return

    def close(self) -> None:
        """Hang up."""
        self.taken()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> bool:
        data = read_some(self._fd)
        if data is None:
            return False
        if not data:  # nobody has the terminal any more
            self._loop.remove_reader(self._fd)
            return False
        self._on_output(data)
        return True


def make_quiet(terminal: int) -> None:
    """No echo of what is typed, and what is printed comes out as it is."""
    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ECHOCTL | termios.ECHOKE)
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    termios.tcsetwinsize(terminal, (24, 80))
