"""Where the commands of a shell print to."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from toolyard.process.pipe_end import PipeEnd, read_some
from toolyard.shell.wire import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.process.private_folders import PrivateFolder
    from toolyard.process.transcript import Transcript

__all__ = ["OutputChannel", "OwnOutput"]

LISTEN_AFTER = 0.002
"""Most commands are over sooner, and what they print is then read once, at their end."""
LOOK_AGAIN_AFTER = 0.02


class OutputChannel:
    """A named pipe that commands print to: its end tells that none of them has it any more."""

    def __init__(self, folder: PrivateFolder, name: str) -> None:
        self.word = quoted(folder.place(name))
        """Its path as bash reads it."""
        self._folder = folder
        self._name = name
        self._pipe = PipeEnd(folder.new_pipe(name, os.O_RDONLY))
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
        """Take what was printed by now, and no more; tell whether somebody still holds the pipe."""
        return self._pipe.drain(sink.add)

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


class OwnOutput:
    """The shell's own standard output, to which builtin commands print that start nothing and read nothing."""

    def __init__(self) -> None:
        self.fd, self._theirs = os.pipe()
        os.set_blocking(self.fd, False)

    def hand_over(self) -> int:
        """The shell's end of it."""
        theirs, self._theirs = self._theirs, -1
        return theirs

    def take(self) -> bytes:
        """What was printed."""
        return read_some(self.fd) or b""

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
        if (theirs := self.hand_over()) >= 0:
            os.close(theirs)
