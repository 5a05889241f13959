"""The way out of a sandbox with named hosts: by name, checked again by address, and no other."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import need_backend
from toolyard.process.child import Children, ChildRequest
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.network.hosts import AllowedHosts, invalid_hosts, is_public, normal_name
from toolyard.process.sandbox.network.proxy import MOST_CONNECTIONS, ConnectionAttempt, Proxy
from toolyard.process.sandbox.policy import SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("a_b.example", "a_b.example"),
        ("127.1", None),
        ("2130706433", None),
        ("0x7f000001", None),
        ("0x7f.1", None),
        ("0177.0.0.1", None),
        ("127.0.0.1.", "127.0.0.1"),
        ("example.com/path", None),
        ("user@example.com", None),
        ("exa mple.com", None),
        ("example..com", None),
        ("-example.com", None),
        ("", None),
        ("a" * 64 + ".com", None),
        ("example.com\x00.evil", None),
        ("example.com%00", None),
    ],
)
def test_a_name_is_written_in_one_way_or_is_none(host, name):
    assert normal_name(host) == name


@pytest.mark.parametrize(
    ("entry", "name", "port", "allowed"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "example.com", 80, True),
        ("example.com", "example.com", 8080, False),
        ("example.com", "www.example.com", 443, False),
        ("example.com", "notexample.com", 443, False),
        ("example.com", "example.com.evil.test", 443, False),
        ("*.example.com", "www.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("EXAMPLE.com:8443", "example.com", 8443, True),
        ("EXAMPLE.com:8443", "example.com", 443, False),
        ("10.0.0.1:5432", "10.0.0.1", 5432, True),
    ],
)
def test_which_hosts_an_entry_means(entry, name, port, allowed):
    assert (AllowedHosts([entry]).find(name, port) is not None) is allowed


def test_what_is_no_host_is_named_and_allows_nothing():
    bad = ["", "*", "*.", "https://example.com", "example.com/x", "exa mple.com", "example.com:99999", "a*b.com"]
    assert invalid_hosts([*bad, "example.com"]) == bad
    assert AllowedHosts(bad).find("example.com", 443) is None


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        *((text, False) for text in (
            "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
            "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1", "fec0::1",
            "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2002:a9fe:a9fe::1", "::127.0.0.1", "2001:db8::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2", "64:ff9b:1::7f00:1", "64:ff9b:1::a9fe:a9fe", "3fff::1", "5f00::1",
        )),
        ("64:ff9b::5db8:d822", True),
    ],
)  # fmt: skip
def test_which_addresses_are_of_the_open_internet(address, public):
    assert is_public(ipaddress.ip_address(address)) is public


class Outside:
    """Servers on the loopback, a proxy before them, and what it decided."""

    def __init__(self) -> None:
        self.decisions: list[ConnectionAttempt] = []
        self.requests: list[bytes] = []
        self.names: dict[str, list[str]] = {}
        self.server: asyncio.Server
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")
            await writer.drain()
        writer.close()

    async def ask(self, proxy_port: int, request: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy_port)
            writer.write(request)
            answer = await reader.read()
            writer.close()
        return answer


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    outside = Outside()
    outside.server = await asyncio.start_server(outside.answer, "127.0.0.1", 0)
    outside.port = outside.server.sockets[0].getsockname()[1]
    yield outside
    outside.server.close()


@contextlib.asynccontextmanager
async def proxy_for(outside: Outside, *hosts: str) -> AsyncIterator[int]:
    proxy = Proxy(AllowedHosts(hosts), outside.decisions.append)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        proxy.start(listener.dup())
        yield port
        await proxy.aclose()


@pytest.mark.anyio
async def test_where_nobody_connects_the_socket_is_closed_all_the_same():
    proxy, listener = Proxy(AllowedHosts(())), socket.create_server(("127.0.0.1", 0))
    proxy.start(listener)
    await proxy.aclose()
    assert listener.fileno() == -1


@pytest.mark.anyio
async def test_a_tunnel_to_a_host_that_was_named(outside):
    async with proxy_for(outside, f"localhost:{outside.port}") as port:
        target = f"localhost:{outside.port}".encode()
        answer = await outside.ask(port, b"CONNECT %b HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n" % target)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert [(one.host, one.allowed) for one in outside.decisions] == [("localhost", True)]


@pytest.mark.anyio
async def test_a_plain_request_is_sent_to_the_host_that_was_decided_on_whatever_its_header_says(outside):
    async with proxy_for(outside, f"localhost:{outside.port}") as port:
        request = (
            b"GET http://LOCALHOST:%d/path?q HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nX: kept\r\n\r\n"
        )
        answer = await outside.ask(port, request % outside.port)
    assert answer.endswith(b"served")
    (seen,) = outside.requests
    assert seen.startswith(b"GET /path?q HTTP/1.1\r\nHost: localhost:%d\r\n" % outside.port)
    assert b"evil" not in seen
    assert b"Proxy-" not in seen
    assert b"X: kept" in seen


@pytest.mark.anyio
@pytest.mark.parametrize(
    "header",
    [b"Host : evil.test", b" Host: evil.test", b"X: a\rHost: evil.test", b"Host\x00: evil.test", b"no header"],
)
async def test_a_header_that_servers_may_read_otherwise_is_refused(outside, header):
    async with proxy_for(outside, f"localhost:{outside.port}") as port:
        answer = await outside.ask(port, b"GET http://localhost:%d/ HTTP/1.1\r\n%b\r\n\r\n" % (outside.port, header))
    assert answer.split()[1] == b"400"
    assert outside.requests == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "request_line",
    [
        b"CONNECT evil.test:443 HTTP/1.1",
        b"CONNECT localhost.evil.test:443 HTTP/1.1",
        b"CONNECT 127.0.0.1:%d HTTP/1.1",
        b"CONNECT [::1]:%d HTTP/1.1",
        b"CONNECT 2130706433:%d HTTP/1.1",
        b"CONNECT localhost:22 HTTP/1.1",
        b"GET http://evil.test/ HTTP/1.1",
        b"GET http://localhost@evil.test/ HTTP/1.1",
        b"GET http://evil.test#localhost/ HTTP/1.1",
        b"GET ftp://localhost/ HTTP/1.1",
        b"GET / HTTP/1.1",
        b"\x05\x01\x00",
    ],
)
async def test_whatever_was_not_named_is_refused_and_nothing_is_sent(outside, request_line):
    line = request_line % outside.port if b"%d" in request_line else request_line
    async with proxy_for(outside, f"localhost:{outside.port}") as port:
        answer = await outside.ask(port, line + b"\r\nHost: localhost\r\n\r\n")
    assert answer.split()[1] in (b"400", b"403")
    assert outside.requests == []


@pytest.mark.anyio
@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1"])
async def test_a_name_that_leads_to_a_private_address_is_refused(outside, monkeypatch, address):
    """As one does whose owner changes where it leads."""

    async def resolve(self, host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    async with proxy_for(outside, f"rebinding.test:{outside.port}") as port:
        request = b"CONNECT rebinding.test:%d HTTP/1.1\r\n\r\n" % outside.port
        reader, writer = await asyncio.open_connection(sock=connected(port))
        writer.write(request)
        answer = await reader.read()
        writer.close()
    assert b"403" in answer
    assert b"private address" in answer
    assert [one.allowed for one in outside.decisions] == [False]
    assert outside.requests == []


def connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.setblocking(False)
    return client


@pytest.mark.anyio
async def test_beyond_a_number_of_connections_more_are_closed_at_once(outside):
    async with proxy_for(outside, f"localhost:{outside.port}") as port, asyncio.timeout(PATIENCE):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CONNECTIONS)]
        request = f"GET http://localhost:{outside.port}/ HTTP/1.1\r\n\r\n".encode()
        for reader, writer in (held[0], held[-1]):  # each of them was taken, in this order
            writer.write(request)
            assert b"served" in await reader.read()
            writer.close()
        held = held[1:-1] + [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        held[-1][1].write(b"GET ")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b"", "one too many"
        writer.close()
        for _, writer in held:
            writer.close()
        while b"served" not in await outside.ask(port, request):  # until the proxy has seen that they left
            await asyncio.sleep(0)


@pytest.mark.anyio
async def test_a_request_that_never_ends_is_not_read_for_ever(outside):
    async with proxy_for(outside, "localhost") as port:
        assert (await outside.ask(port, b"GET http://localhost/ HTTP/1.1\r\n" + b"X: y\r\n" * 20_000)).split()[
            1
        ] == b"400"


@pytest.mark.anyio
@pytest.mark.parametrize("backend", ["bubblewrap", "bubblewrap-pids"])
async def test_in_a_sandbox_the_proxy_is_the_only_way_out(outside, tmp_path, backend):
    need_backend(backend)
    host = f"localhost:{outside.port}"
    places = SandboxPaths(home=str(tmp_path), workspace=[str(tmp_path / "work")])
    sandbox = Sandbox(SandboxPolicy(backends=(backend,), hosts=(host,)), places)
    sandbox.connections.on_decision = outside.decisions.append
    children = Children(sandbox)
    source = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=30).read().decode())
    except urllib.error.HTTPError as error:
        print(error.read().decode().strip())
    except OSError as error:
        print(error)
"""
    fetch = f"{sys.executable} -I -c '{source}'"
    script = f"""{fetch} http://{host}/ http://evil.test/
    unset http_proxy HTTP_PROXY; {fetch} http://127.0.0.1:{outside.port}/
    exec 3<>/dev/udp/127.0.0.1/53 && echo x >&3; true"""
    env = {b"PATH": os.fsencode(os.environ["PATH"])}
    try:
        async with asyncio.timeout(PATIENCE):
            outcome = await children.run(ChildRequest(argv=["/bin/bash", "-c", script], cwd="/", env=env))
    finally:
        await children.aclose()
    assert outcome.stdout.text.splitlines() == [
        "served",
        "evil.test:80 is refused: it is not one of the hosts that are allowed: name it in sandbox.hosts",
        "<urlopen error [Errno 111] Connection refused>",
    ]
    assert [(one.host, one.allowed) for one in outside.decisions] == [("localhost", True), ("evil.test", False)]
    assert sandbox.name == backend, "the network is still kept in"


@pytest.mark.anyio
async def test_where_there_is_no_network_of_its_own_named_hosts_are_not_reached_at_all(outside, tmp_path):
    need_backend("landlock")
    places = SandboxPaths(home=str(tmp_path), workspace=[str(Path(tmp_path))])
    children = Children(Sandbox(SandboxPolicy(backends=("landlock",), hosts=(f"localhost:{outside.port}",)), places))
    script = f"env | grep -ci proxy; exec 3<>/dev/tcp/127.0.0.1/{outside.port} && echo reached"
    env = {b"PATH": os.fsencode(os.environ["PATH"])}
    try:
        outcome = await children.run(ChildRequest(argv=["/bin/bash", "-c", script], cwd="/", env=env))
    finally:
        await children.aclose()
    assert outcome.stdout.text == "0\n"
