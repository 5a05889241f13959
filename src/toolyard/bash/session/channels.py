"""Where the commands of a shell print to: a named pipe, the shell's own output, or a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import termios
from typing import TYPE_CHECKING

from toolyard.bash.session.command_text import quoted
from toolyard.errors import ShellError
from toolyard.process.process_tree import may_still_print
from toolyard.process.streams import PipeReader, read_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolyard.process.output import Transcript
    from toolyard.process.private_folders import PrivateFolder


LISTEN_AFTER = 0.002
"""Most commands are over sooner, and what they print is then read once, at their end."""
LOOK_AGAIN_AFTER = 0.02


class OutputChannel:
    """A named pipe that commands print to; at its end no process of theirs holds it any more."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._folder = folder
        self._name = name
        self._pipe = PipeReader(folder.new_pipe(name, os.O_RDONLY))
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._sink: Transcript | None = None
        self._on_end: Callable[[], bool] | None = None

    def follow(self, sink: Transcript, on_end: Callable[[], bool] | None = None) -> None:
        """Read whenever there is something. When nobody holds the pipe, `on_end` tells whether that was the end."""
        self._sink = sink
        self._on_end = on_end
        self._timer = self._loop.call_later(LISTEN_AFTER, self._listen)

    def drain(self, sink: Transcript) -> bool:
        """Take what was printed by now and stop listening; tell whether somebody still holds the pipe."""
        self._stop()
        return self._pipe.drain(sink.add)

    def catch_up(self, sink: Transcript) -> bool:
        """Take what was printed by now, and go on listening; tell whether somebody still holds the pipe."""
        return self._pipe.drain(sink.add)

    async def wait_for_end(self, sink: Transcript, holders: Callable[[], Iterable[int]], *, within: float) -> bool:
        """Wait while a process that holds the pipe only has its output to finish; tell whether nobody holds it then."""
        started = self._loop.time()
        while self.drain(sink):
            lasts = self._loop.time() - started
            if lasts > within or not may_still_print(list(holders()), lasts):
                return not self.drain(sink)  # the last one may have ended just before we looked
            await asyncio.sleep(0.002)
        return True

    def close(self) -> None:
        """Stop reading; a process that still prints gets SIGPIPE."""
        if self._pipe.fd >= 0:
            self._stop()
            self._pipe.close()
            with contextlib.suppress(OSError):
                self._folder.remove_file(self._name)

    def _listen(self) -> None:
        self._timer = None
        if self._sink:
            self._pipe.listen(self._sink.add, self._nobody_holds_it)

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._pipe.stop()

    def _nobody_holds_it(self) -> None:
        """Not the end of a command: it may not have opened the pipe yet, or prints elsewhere for a while."""
        if self._on_end is None or not self._on_end():
            self._timer = self._loop.call_later(LOOK_AGAIN_AFTER, self._listen)


class ShellOutput:
    """The shell's own standard output, where builtins print that start no process (see `QUIET_BUILTINS`)."""

    def __init__(self) -> None:
        self._fd, self._theirs = os.pipe()
        os.set_blocking(self._fd, False)

    def hand_over(self) -> int:
        theirs, self._theirs = self._theirs, -1
        return theirs

    def follow(self, sink: Transcript) -> None:
        """Such a command is over too soon to be followed."""

    def drain(self, sink: Transcript) -> bool:
        """Take what was printed; nobody but the shell holds the pipe."""
        if data := read_some(self._fd):
            sink.add(data)
        return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if (theirs := self.hand_over()) >= 0:
            os.close(theirs)


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
            self._slave = slave  # ours keeps it open: between two commands nobody else does
        os.set_blocking(self._fd, False)
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def write(self, data: bytes) -> bytes:
        """Type something; what does not fit into the terminal's own memory is given back."""
        try:
            return data[os.write(self._fd, data) :]
        except BlockingIOError:
            return data

    def type_end(self) -> None:
        """End the input of whoever reads; only that lets go of a `read` of bash itself."""
        self.write(b"\x04")

    def drop_input(self) -> None:
        """Forget what was typed and nobody has read."""
        if self._fd >= 0:
            termios.tcflush(self._slave, termios.TCIFLUSH)

    def catch_up(self) -> None:
        """Take what was printed by now, so that it does not count as the next command's."""
        while self._fd >= 0 and self._read():
            pass

    def drain(self) -> None:
        """Take what was printed; the kernel hands it on a moment after it was written."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while self._fd >= 0 and poll.poll(2):
            if not self._read():
                return

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            os.close(self._slave)
            self._fd = -1

    def _read(self) -> bool:
        data = read_some(self._fd)
        if data is None:
            return False
        self._on_output(data)
        return bool(data)


def make_quiet(terminal: int) -> None:
    """Turn off the echo of what is typed, and every change to what is printed."""
    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ECHOCTL | termios.ECHOKE)
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    termios.tcsetwinsize(terminal, (24, 80))
