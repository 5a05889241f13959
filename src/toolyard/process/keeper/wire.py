"""How the application and its keeper talk: marshalled tuples behind a four-byte length."""

from __future__ import annotations

import _socket as socket  # the public module takes longer to import than all that a keeper needs
import marshal
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HEADER = struct.Struct("!I")
RECEIVE_SIZE = 8192
ROOM_FOR_FDS = socket.CMSG_SPACE(64 * 4)
CMSG_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class KeeperChannel:
    """The keeper's end of the socket: whole messages in, and out as fast as the application takes them."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        os.set_inheritable(fd, False)
        self._inbox = bytearray()
        self._outbox: list[tuple[bytes, list[int]]] = []
        self._fds: list[int] = []

    def fileno(self) -> int:
        """For a poll."""
        return self._socket.fileno()

    @property
    def is_stalled(self) -> bool:
        """Whether messages wait for the application to take more."""
        return bool(self._outbox)

    def wait(self) -> list[tuple[Any, ...]]:
        """Wait for messages; none when the application is gone."""
        self._socket.setblocking(True)
        while not (messages := list(take_messages(self._inbox))):
            data = self._socket.recv(RECEIVE_SIZE)
            if not data:
                return []
            self._inbox += data
        self._socket.setblocking(False)
        return messages

    def receive(self) -> Iterator[tuple[Any, ...]] | None:
        """The messages that are whole by now; None when the application is gone."""
        try:
            data, ancillary, _, _ = self._socket.recvmsg(RECEIVE_SIZE, ROOM_FOR_FDS, CMSG_CLOEXEC)
        except BlockingIOError:
            return iter(())
        except OSError:
            data, ancillary = b"", []
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._fds.extend(struct.unpack(f"{len(payload) // 4}i", payload[: len(payload) // 4 * 4]))
        if not data:
            return None
        self._inbox += data
        return take_messages(self._inbox)

    def take_fd(self) -> int:
        """The next descriptor that came with the messages."""
        return self._fds.pop(0)

    def send(self, message: tuple[Any, ...], fds: list[int] | None = None) -> None:
        """Send a message, and descriptors with its first byte, which are closed when they are gone."""
        self._outbox.append((pack_message(message), fds or []))
        self.flush()

    def flush(self) -> None:
        """Write what the application can take now; the rest waits."""
        while self._outbox:
            data, fds = self._outbox[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
            try:
                sent = self._socket.sendmsg([data], rights)
            except BlockingIOError:
                return
            except OSError:
                self._outbox.clear()
                return
            for fd in fds:
                os.close(fd)
            if sent < len(data):
                self._outbox[0] = (data[sent:], [])
            else:
                del self._outbox[0]


def pack_message(message: tuple[Any, ...]) -> bytes:
    """A message as it goes over the socket."""
    payload = marshal.dumps(message)
    return HEADER.pack(len(payload)) + payload


def take_messages(inbox: bytearray) -> Iterator[tuple[Any, ...]]:
    """Cut complete messages off the front of what has come."""
    while len(inbox) >= HEADER.size:
        (size,) = HEADER.unpack_from(inbox)
        if len(inbox) < HEADER.size + size:
            return
        payload = bytes(inbox[HEADER.size : HEADER.size + size])
        del inbox[: HEADER.size + size]
        yield marshal.loads(payload)  # noqa: S302 - the other end is our own process, over a private socket
