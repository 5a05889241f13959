"""How the application and its keeper talk: marshalled tuples behind a four-byte length, over a Unix socket.

Both ends use this module, so it imports next to nothing: a keeper has to start in milliseconds.
"""

from __future__ import annotations

import _socket as socket  # the public module takes longer to import than all that a keeper needs
import marshal
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

TERMINAL = -1
"""In the place of a descriptor's number: this one is the controlling terminal of a shell."""
HEADER = struct.Struct("!I")
RECEIVE_SIZE = 1 << 14
ROOM_FOR_FDS = socket.CMSG_SPACE(64 * 4)
CMSG_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


class Channel:
    """One end of the socket: whole messages in, and out as fast as the other end takes them."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        os.set_inheritable(fd, False)
        self._inbox = bytearray()
        self._outbox: list[tuple[bytes, Sequence[int]]] = []
        self._received_fds: list[int] = []
        self.is_broken = False
        """Whether a message could not be sent because the other end is gone."""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def is_stalled(self) -> bool:
        """Whether messages wait until the other end takes more."""
        return bool(self._outbox)

    def is_hung_up(self) -> bool:
        """Whether the other end is gone, and has left nothing to be read."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def set_timeout(self, seconds: float | None) -> None:
        """How long `wait` and `send` may block; None is for ever, and zero, where a channel begins, not at all."""
        self._socket.settimeout(seconds)

    def wait(self) -> tuple[Any, ...] | None:
        """The next message; None when the other end is gone, OSError when it takes too long."""
        while True:
            for message in take_messages(self._inbox):
                return message
            if not self._read():
                return None

    def receive(self) -> Iterator[tuple[Any, ...]] | None:
        """The messages that are complete by now; None when the other end is gone."""
        try:
            if not self._read():
                return None
        except BlockingIOError:
            return iter(())
        except OSError:
            return None
        return take_messages(self._inbox)

    def take_fds(self, count: int) -> list[int]:
        """The next descriptors that came with the messages; fewer when the system had no room for them."""
        taken = self._received_fds[:count]
        del self._received_fds[:count]
        return taken

    def send(self, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        """Send a message, now or later. The descriptors go with its first byte, and our copies are closed then."""
        payload = marshal.dumps(message)
        self._outbox.append((HEADER.pack(len(payload)) + payload, fds))
        self.flush()

    def flush(self) -> None:
        """Write what the other end can take now."""
        while self._outbox:
            data, fds = self._outbox[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
            try:
                sent = self._socket.sendmsg([data], rights, NO_SIGNAL)
            except BlockingIOError:
                return
            except OSError:
                self.is_broken = True
                self._drop_outbox()
                return
            close_all(fds)
            if sent < len(data):
                self._outbox[0] = (data[sent:], ())
            else:
                del self._outbox[0]

    def close(self) -> None:
        self._socket.close()
        self._drop_outbox()
        close_all(self._received_fds)
        self._received_fds.clear()

    def _read(self) -> bool:
        """Take what has come; tell whether there was anything."""
        data, ancillary, _, _ = self._socket.recvmsg(RECEIVE_SIZE, ROOM_FOR_FDS, CMSG_CLOEXEC)
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._received_fds.extend(struct.unpack(f"{len(payload) // 4}i", payload[: len(payload) // 4 * 4]))
        self._inbox += data
        return bool(data)

    def _drop_outbox(self) -> None:
        for _, fds in self._outbox:
            close_all(fds)
        self._outbox.clear()


def take_messages(inbox: bytearray) -> Iterator[tuple[Any, ...]]:
    """Cut complete messages off the front of what has come."""
    while len(inbox) >= HEADER.size:
        (size,) = HEADER.unpack_from(inbox)
        if len(inbox) < HEADER.size + size:
            return
        payload = bytes(inbox[HEADER.size : HEADER.size + size])
        del inbox[: HEADER.size + size]
        yield marshal.loads(payload)  # noqa: S302 - the other end is our own process, over a private socket


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors, some of which may be closed already."""
    for fd in fds:
        try:  # noqa: SIM105 - done for every call, and a context manager costs more than the closing
            os.close(fd)
        except OSError:
            pass
