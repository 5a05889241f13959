"""The HTTP server as a process of its own, under clients that mean no good."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from support import PATIENCE, CommandLine, is_alive

MANY = 500
GARBAGE = (
    b"\x00\x01\x02\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: nonsense\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /mcp HTTP/1.1\r\n" + b"X: " + b"y" * 100_000,
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n{",
)
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "bash",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


class Served:
    """A server process, by its address."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url
        self.port = int(re.search(r":(\d+)/", url)[1])

    def bash(self, command: str) -> str:
        body = {**CALL, "params": {**CALL["params"], "arguments": {"command": command}}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "bash",
        }
        answer = httpx2.post(self.url, json=body, headers=headers, timeout=PATIENCE)
        return answer.json()["result"]["content"][0]["text"]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def wait_for_descriptors(self, most: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.descriptors() > most and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.descriptors() <= most


@contextmanager
def served(toolyard: CommandLine) -> Iterator[Served]:
    argv = [str(toolyard.path), "serve", "--mcp", "http", "--port", "0", "--no-token"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=toolyard.env, cwd=toolyard.folder) as process:
        try:
            assert process.stdout
            yield Served(process, process.stdout.readline().decode().strip())
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def room_for_connections() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_server_goes_on_whatever_comes_and_keeps_nothing_of_it(toolyard: CommandLine):
    with served(toolyard) as server:
        assert server.bash("echo before") == "before\n"
        usual = server.descriptors()
        for garbage in GARBAGE:
            # It answers or closes, also while more is coming.
            with server.connect() as peer, contextlib.suppress(OSError):
                peer.sendall(garbage)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
        with ExitStack() as peers:
            silent = [peers.enter_context(server.connect()) for _ in range(MANY)]
            for peer in silent[::2]:
                peer.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
            assert server.bash("echo meanwhile") == "meanwhile\n"
        assert server.bash("echo after") == "after\n"
        # A few more than before: each answer above may have a bash of its own for a while.
        server.wait_for_descriptors(usual + 60)


def test_nothing_outlives_a_server_that_was_killed_in_the_middle(toolyard: CommandLine):
    os.mkfifo(toolyard.folder / "ended")
    with served(toolyard) as server:
        body = {
            **CALL,
            "params": {**CALL["params"], "arguments": {"command": "(echo started; exec sleep 1000) > ended"}},
        }
        text = json.dumps(body).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: bash\r\n\r\n"
        )
        with server.connect() as peer:
            peer.sendall(head.encode() + text)
            with Path(toolyard.folder / "ended").open() as ended:
                assert ended.readline() == "started\n"
                server.process.send_signal(signal.SIGKILL)
                assert ended.read() == ""  # nobody holds it any more
            assert peer.recv(1) == b""
        server.process.wait(PATIENCE)
        assert not is_alive(server.process.pid)
