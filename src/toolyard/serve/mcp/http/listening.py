"""The HTTP server itself: a socket, its connections with their limits, and everything ended at the end."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import msgspec
import uvicorn

from toolyard.serve.mcp.http.connections import connections_of
from toolyard.serve.mcp.http.conversations import KEPT_AFTER_CLOSE, Conversations
from toolyard.serve.mcp.http.guard import KEEP_ALIVE, PATH, Access, HttpGuard
from toolyard.serve.mcp.http.server import HttpTools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from toolyard.serve.mcp.tool_server import ToolServer

LOOPBACK = ("127.0.0.1", "::1", "localhost")
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
MOST_CONNECTIONS = 1000
LAST_ANSWERS = 3
"""How many seconds requests may go on when the server ends."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens, and what it wants to see."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    names: tuple[str, ...] = ()
    """Further names under which clients may know it."""

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ANY_ADDRESS else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{PATH}"

    def access(self) -> Access:
        known = {self.host, *LOOPBACK, *self.names}
        known |= set() if self.is_loopback else {socket.gethostname().lower()}
        return Access(token=self.token, names=frozenset(known), any_address=self.host in ANY_ADDRESS)


def new_token() -> str:
    return secrets.token_urlsafe(24)


@asynccontextmanager
async def listening(
    server: ToolServer, address: Address, *, kept_after_close: float = KEPT_AFTER_CLOSE
) -> AsyncIterator[Address]:
    """Within this the tools are served; gives the address with the port that was found."""
    if not (address.token or address.is_loopback):
        raise ValueError("a server that others can reach needs a token")
    conversations = Conversations(server, kept_after_close=kept_after_close)
    tools = HttpTools(server, conversations)
    with bound(address) as sock:
        guard = HttpGuard(tools.app, server, conversations, address.access())
        config = uvicorn.Config(
            guard,
            http=connections_of(guard, conversations),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=LAST_ANSWERS,
            headers=[("Keep-Alive", f"timeout={KEEP_ALIVE}")],
        )
        async with tools.running():
            http = UvicornServer(config)
            serving = asyncio.create_task(http.serve(sockets=[sock]))
            try:
                yield msgspec.structs.replace(address, port=sock.getsockname()[1])
            finally:
                http.should_exit = True
                await asyncio.wait([serving])


def is_taken(host: str, port: int) -> bool:
    """Whether somebody else listens there."""
    try:
        with bound(Address(host=host, port=port)):
            return False
    except OSError as error:
        return error.errno == errno.EADDRINUSE


@contextmanager
def bound(address: Address) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Only for a socket that names its protocol asyncio switches off that small writes wait for each other, 40 ms each.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
        sock.listen(512)
        sock.setblocking(False)
        yield sock


class UvicornServer(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
