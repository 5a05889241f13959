"""The one way out of a sandbox with named hosts: a proxy that decides by name, resolves it itself and connects.

Inside, it is a port that the keeper opened in the sandbox's own network; the listening socket was handed to us, so that
nothing inside has any other way. It refuses hosts that the configuration does not name, and names that lead to a
private network: the machine itself, its neighbours, the metadata service of a cloud.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.network.hosts import AllowedHosts, is_public, may_be_offered, normal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


log = logging.getLogger("toolyard.proxy")
MOST_HEADERS = 1 << 16
MOST_CONNECTIONS = 256
HEADER_PATIENCE = 30.0
CONNECT_PATIENCE = 20.0
PIECE = 1 << 16
TARGET = late_pattern(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")
ABSOLUTE = late_pattern(r"http://(\[[^\]/]+\]|[^/:?#@\s]+)(?::(\d{1,5}))?([/?][^\s#]*)?", re.IGNORECASE)
AUTHORITY = late_pattern(r"(\[[^\]]+\]|[^:\s]+):(\d{1,5})")
HEADER = late_pattern(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[^\r\n\0]*\r\n")
NOT_PASSED_ON = (b"connection", b"host", b"keep-alive", b"upgrade", b"te", b"trailer")
NOT_NAMED = "it is not one of the hosts that are allowed: name it in sandbox.hosts"
NOT_IN_A_PHRASE = late_pattern(r"[^ -~]")
LOOKUPS_AT_ONCE = 4
"""Each holds one of the few threads that the application has for such things."""


class ConnectionAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A host that somebody inside wanted to reach, and whether that was allowed."""

    host: str
    port: int
    allowed: bool
    reason: str


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says of a host that is not named."""

    allowed: bool
    reason: str


AskHost: TypeAlias = Callable[[str, int], Awaitable[HostAnswer]]
RuleForHost: TypeAlias = Callable[[str, int], "HostRule | None"]


class HostRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that is against a host, or wants somebody to be asked, whatever hosts are named."""

    decision: Literal["ask", "deny"]
    reason: str


class RequestRefused(Exception):
    """A request that is not served, with the HTTP status that says so."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Proxy:
    """Serves one listening socket until it is closed."""

    def __init__(
        self,
        hosts: AllowedHosts,
        on_decision: Callable[[ConnectionAttempt], None] | None = None,
        ask: AskHost | None = None,
        rule_for: RuleForHost | None = None,
    ) -> None:
        self._hosts = hosts
        self._on_decision = on_decision
        self._ask = ask
        self._rule_for = rule_for
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    def start(self, listener: socket.socket) -> None:
        """Serve from now on; takes the socket over.

        A server is made when the first one connects: asyncio imports all of TLS for it, and most reach nobody.
        """
        listener.setblocking(False)
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._begin_serving)

    async def aclose(self) -> None:
        if self._starting:
            await self._starting
        if self._server:
            self._server.close()
        elif self._listener:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _begin_serving(self) -> None:
        """Somebody waits to be accepted."""
        if self._listener:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener.fileno())
            self._starting = loop.create_task(self._start_server(self._listener))

    async def _start_server(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MOST_HEADERS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            await self._serve_connection(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # whoever was there is gone, or we are closing
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEADER_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            request = read_request(head)
            there = await self._connect(request)
        except RequestRefused as refusal:
            await answer(writer, refusal.status, str(refusal))
            return
        except (TimeoutError, asyncio.LimitOverrunError):
            await answer(writer, "400 Bad Request", "the request is not whole")
            return
        if request.head is None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            there[1].write(request.head)
        await pass_on(reader, writer, *there)

    async def _connect(self, request: ProxyRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first address that the name has and that may be reached; only that address, never the name."""
        rule = self._rule_for(request.host, request.port) if self._rule_for else None
        if rule and rule.decision == "deny":
            raise self._refuse(request, rule.reason)
        entry = self._hosts.find(request.host, request.port)
        why = f"allowed by {entry.text}" if entry and rule is None else await self._why_allowed(request)
        addresses = await self._addresses(request, private=entry is not None and entry.private)
        self._record(request, allowed=True, reason=why)
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_PATIENCE):
                    return await asyncio.open_connection(address, request.port)
        raise RequestRefused("502 Bad Gateway", f"{request.host} does not answer")

    async def _why_allowed(self, request: ProxyRequest) -> str:
        """Who lets a host be reached that is not named, while the connection waits.

        It is not looked up before: whoever answers for a name would hear of it, and names can carry anything.
        """
        if self._ask is None:
            raise self._refuse(request, NOT_NAMED)
        if not may_be_offered(request.host):
            raise self._refuse(request, "it is no host of the open internet; name it in sandbox.hosts if it is meant")
        answer = await self._ask(request.host, request.port)
        if not answer.allowed:
            raise self._refuse(request, answer.reason)
        return answer.reason

    async def _addresses(self, request: ProxyRequest, *, private: bool) -> list[str]:
        try:
            async with self._lookups:
                found = await asyncio.get_running_loop().getaddrinfo(
                    request.host, request.port, type=socket.SOCK_STREAM
                )
        except OSError as error:
            self._record(request, allowed=False, reason=f"it cannot be found: {error.strerror}")
            raise RequestRefused("502 Bad Gateway", f"{request.host} cannot be found: {error.strerror}") from error
        addresses = list(dict.fromkeys(str(place[4][0]) for place in found))
        allowed = [
            address for address in addresses if private or is_public(ipaddress.ip_address(address.split("%")[0]))
        ]
        if not allowed:
            raise self._refuse(request, f"it leads to a private address ({', '.join(addresses)})")
        return allowed

    def _refuse(self, request: ProxyRequest, reason: str) -> RequestRefused:
        self._record(request, allowed=False, reason=reason)
        return RequestRefused("403 Forbidden", f"{request.host}:{request.port} is refused: {reason}")

    def _record(self, request: ProxyRequest, *, allowed: bool, reason: str) -> None:
        log.info("%s %s:%d: %s", "allowed" if allowed else "refused", request.host, request.port, reason)
        if self._on_decision:
            self._on_decision(ConnectionAttempt(host=request.host, port=request.port, allowed=allowed, reason=reason))


def proxy_variables(port: int, hosts: Iterable[str]) -> dict[bytes, bytes]:
    """The variables by which programs know that there is a proxy, in all spellings that they look for."""
    names = (
        *(b"http_proxy", b"https_proxy", b"HTTP_PROXY", b"HTTPS_PROXY", b"ALL_PROXY", b"all_proxy"),
        *(b"YARN_HTTP_PROXY", b"YARN_HTTPS_PROXY"),
    )
    address = b"http://127.0.0.1:%d" % port
    # What is local is inside, unless it was named, and then it is meant to be outside.
    named = AllowedHosts(hosts).names
    local = [name for name in ("localhost", "127.0.0.1", "::1") if name not in named]
    direct = dict.fromkeys((b"no_proxy", b"NO_PROXY"), ",".join(local).encode())
    # A proxy that refuses will refuse again, and pip would wait ten seconds to hear it.
    return {**dict.fromkeys(names, address), **direct, b"NODE_USE_ENV_PROXY": b"1", b"PIP_RETRIES": b"1"}


class ProxyRequest(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    """In normal form."""
    port: int
    head: bytes | None
    """The request as the server shall see it; None for a connection that is only passed on."""


def read_request(head: bytes) -> ProxyRequest:
    line = TARGET.match(head)
    if line is None:
        raise RequestRefused("400 Bad Request", "this is not a request to a proxy")
    method, target = line[1], line[2].decode("latin-1")
    if method == b"CONNECT":
        found = AUTHORITY.fullmatch(target)
        if found is None:
            raise RequestRefused("400 Bad Request", "CONNECT needs a host and a port")
        return ProxyRequest(host=checked_name(found[1]), port=int(found[2]), head=None)
    place = ABSOLUTE.fullmatch(target)
    if place is None:
        raise RequestRefused("400 Bad Request", "only http:// addresses and CONNECT are passed on")
    host, port, path = checked_name(place[1]), int(place[2] or 80), place[3] or "/"
    return ProxyRequest(host=host, port=port, head=rewrite_head(head, line[0], method, host, port, path))


def checked_name(host: str) -> str:
    name = normal_name(host)
    if name is None:
        raise RequestRefused("403 Forbidden", f"{host!r} is no name of a host")
    return name


def rewrite_head(head: bytes, line: bytes, method: bytes, host: str, port: int, path: str) -> bytes:
    """The request to the host that was decided on, whatever its own header says, and one only."""
    path = path if path.startswith("/") else f"/{path}"
    headers = headers_of(head[len(line) : -2])
    kept = [header for name, header in headers if name not in NOT_PASSED_ON and not name.startswith(b"proxy-")]
    name = f"[{host}]" if ":" in host else host
    name = name if port == 80 else f"{name}:{port}"
    first = b"%b %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n" % (method, path.encode("latin-1"), name.encode())
    return first + b"".join(kept) + b"\r\n"


def headers_of(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the whole line of each; one that servers may read otherwise than we do is none."""
    place = 0
    while place < len(text):
        found = HEADER.match(text, place)
        if found is None:
            raise RequestRefused("400 Bad Request", "a header of the request is malformed")
        yield found[1].lower(), found[0]
        place = found.end()


async def answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    # Most programs show nothing but the first line.
    reason = NOT_IN_A_PHRASE.sub("?", f"{status}: {text}")
    head = f"HTTP/1.1 {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    with contextlib.suppress(OSError):
        await writer.drain()


async def pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    there_reader: asyncio.StreamReader,
    there_writer: asyncio.StreamWriter,
) -> None:
    """Pass data on in both directions until both have ended."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, there_writer))
            group.create_task(pump(there_reader, writer))
    except* OSError:
        pass
    finally:
        there_writer.close()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(PIECE):
        sink.write(data)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()
