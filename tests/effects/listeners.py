"""Servers outside that remember who spoke to them."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from pathlib import Path


class Listeners:
    """One for each way of speaking to a neighbour: TCP, UDP and a socket in the file system."""

    def __init__(self, socket_path: Path) -> None:
        self._heard: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, "stop")
        self.tcp = self._listen(socket.socket(socket.AF_INET, socket.SOCK_STREAM), ("127.0.0.1", 0), "tcp")
        self.udp = self._listen(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", 0), "udp")
        self._listen(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), str(socket_path), "unix")
        socket_path.chmod(0o777)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def heard(self) -> list[str]:
        """Who spoke since the last time."""
        heard, self._heard = self._heard, []
        return heard

    def close(self) -> None:
        self._wake.send(b"x")
        self._thread.join(10)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        self._wake.close()

    def _listen(self, server: socket.socket, address: tuple[str, int] | str, name: str) -> int:
        server.bind(address)
        if server.type == socket.SOCK_STREAM:
            server.listen(16)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, name)
        return server.getsockname()[1] if name != "unix" else 0

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data == "stop":
                    return
                self._hear(key.fileobj, key.data)  # type: ignore[arg-type]

    def _hear(self, server: socket.socket, name: str) -> None:
        with contextlib.suppress(OSError):
            if name == "udp":
                self._heard.append(f"{name}: {server.recv(4096)!r}")
                return
            connection, _ = server.accept()
            with connection:
                connection.settimeout(0.2)
                self._heard.append(f"{name}: connected")
                with contextlib.suppress(TimeoutError):
                    self._heard.append(f"{name}: {connection.recv(4096)!r}")
