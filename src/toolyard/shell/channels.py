"""The ends of a shell's channels that are ours: a folder with named pipes, the terminal, and who hears what comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from typing import TYPE_CHECKING

from toolyard.errors import ShellError
from toolyard.process.output import Captured, HeadTail, Utf8Stream
from toolyard.shell.wire import quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolyard.process.private_folders import PrivateFolder

__all__ = ["OutputChannel", "OwnOutput", "Terminal", "Transcript"]

READ_SIZE = 1 << 16
READS_AT_ONCE = 16
LISTEN_AFTER = 0.002
"""Most commands are over sooner, and what they print is then read once, at their end."""
LOOK_AGAIN_AFTER = 0.02
MOST_IN_A_PIPE = 1 << 20
F_SETPIPE_SZ = 1031
NOTHING = Captured(text="", total_bytes=0)


class Transcript:
    """What one command prints: heard as it comes, kept in bounded memory."""

    __slots__ = ("_decoder", "_kept", "_limit", "_listener", "_spill_to", "on_too_much", "stop_at", "total")

    def __init__(
        self,
        limit: int,
        *,
        listener: Callable[[str], None] | None = None,
        spill_to: Path | None = None,
        stop_at: int | None = None,
    ) -> None:
        self._limit = limit
        self._listener = listener
        self._decoder = Utf8Stream() if listener else None
        self._spill_to = spill_to
        self.stop_at = stop_at
        self._kept: HeadTail | None = None
        self.on_too_much: Callable[[], None] | None = None
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        if self._kept is None:
            self._kept = HeadTail(self._limit, spill_to=self._spill_to)
        self._kept.add(data)
        if self._decoder and self._listener and (text := self._decoder.feed(data)):
            self._listener(text)
        if self.stop_at is not None and self.total > self.stop_at and self.on_too_much:
            self.on_too_much()

    def so_far(self) -> Captured:
        """What there is by now; more may follow."""
        return self._kept.finish() if self._kept else NOTHING

    def finish(self) -> Captured:
        """All of it."""
        if self._decoder and self._listener and (rest := self._decoder.finish()):
            self._listener(rest)
        self._decoder = None
        return self.so_far()

    @property
    def unread(self) -> bool:
        """Whether there is anything to take."""
        return self._kept is not None

    def take(self) -> Captured:
        """What came since the last time."""
        taken, self._kept = self.so_far(), None
        return taken

    def forget(self) -> None:
        """Start again with nothing, heard by nobody."""
        self._kept = self._listener = self._decoder = self.on_too_much = None


class OutputChannel:
    """A named pipe that commands print to: its end tells that none of them has it any more."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._folder = folder
        self._name = name
        self._fd = folder.new_pipe(name, os.O_RDONLY)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._listening = False
        self._widened = False
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
        return self.catch_up(sink)

    def catch_up(self, sink: Transcript) -> bool:
        """Take what was printed by now, and no more; tell whether somebody still holds the pipe."""
        for _ in range(MOST_IN_A_PIPE // READ_SIZE + 1):
            try:
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                return True
            except OSError:  # closed already
                return False
            if not data:
                return False
            sink.add(data)
        return True

    async def at_end(self, sink: Transcript, *, within: float) -> bool:
        """Wait a little for whoever holds the pipe to let go of it; tell whether that happened."""
        give_up_at = self._loop.time() + within
        while self.drain(sink):
            if self._loop.time() > give_up_at:
                return False
            await asyncio.sleep(0.002)
        return True

    def close(self) -> None:
        """Hang up; a process that still prints gets told that nobody listens."""
        if self._fd >= 0:
            self._stop()
            os.close(self._fd)
            self._fd = -1
            with contextlib.suppress(OSError):
                self._folder.remove_file(self._name)

    def _listen(self) -> None:
        self._timer = None
        self._loop.add_reader(self._fd, self._read_some)
        self._listening = True

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._listening:
            self._loop.remove_reader(self._fd)
            self._listening = False

    def _read_some(self) -> None:
        """Read several times in a row, so that much output costs few turns of the loop but never starves it."""
        for _ in range(READS_AT_ONCE):
            try:
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                self._nobody_holds_it()
                return
            if len(data) == READ_SIZE and not self._widened:
                self._widen()
            if self._sink:
                self._sink.add(data)
            if not self._listening:
                return

    def _nobody_holds_it(self) -> None:
        """Not the end of a command: it may not have opened the pipe yet, or prints elsewhere for a while."""
        self._stop()
        if self._on_end is None or not self._on_end():
            self._timer = self._loop.call_later(LOOK_AGAIN_AFTER, self._listen)

    def _widen(self) -> None:
        self._widened = True
        with contextlib.suppress(OSError):
            import fcntl

            fcntl.fcntl(self._fd, F_SETPIPE_SZ, MOST_IN_A_PIPE)


class OwnOutput:
    """The shell's own standard output, to which builtin commands print that start nothing and read nothing."""

    def __init__(self) -> None:
        self.fd, self.theirs = os.pipe()
        os.set_blocking(self.fd, False)

    def take(self) -> bytes:
        """What was printed."""
        try:
            return os.read(self.fd, READ_SIZE)
        except BlockingIOError:
            return b""

    def follow(self, sink: Transcript) -> None:
        """It is over too soon for that."""

    def drain(self, sink: Transcript) -> bool:
        """Take what was printed; nobody but the shell holds this."""
        if data := self.take():
            sink.add(data)
        return False

    def close(self) -> None:
        """Let go of it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


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
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:  # nobody has the terminal any more
            data = b""
        if not data:
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
