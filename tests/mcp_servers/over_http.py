"""The SDK's own server over HTTP, one for all tests of a process: a request's headers say which behaviour it wants."""

from __future__ import annotations

import asyncio
import threading
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.types import CallToolResult, ImageContent, ListToolsResult, TextContent, Tool

from support import PATIENCE

SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
Behave = Callable[[str, Path], Awaitable[str]]


async def echo(value: str, folder: Path) -> str:
    return value


async def hang(value: str, folder: Path) -> str:
    say(folder / "here", "ready")
    await asyncio.sleep(3600)
    return value


async def flood(value: str, folder: Path) -> str:
    return "HEAD" + "x" * 3_000_000 + "TAIL"


async def leak(value: str, folder: Path) -> str:
    return (folder / "secret").read_text()


async def meet(value: str, folder: Path) -> str:
    say(folder / "here", value)
    await until_told_to_go_on(folder)
    return value


async def log(value: str, folder: Path) -> str:
    say(folder / "log", value)
    return ""


BEHAVIOURS: dict[str, Behave] = {"echo": echo, "hang": hang, "flood": flood, "leak": leak, "meet": meet, "log": log}


async def until_told_to_go_on(folder: Path) -> None:
    while not (folder / "go").exists():
        await asyncio.sleep(0.05)


def say(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text + "\n")


async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="probe", description="A probe.", input_schema=SCHEMA)])


async def call_tool(ctx: Any, params: Any) -> CallToolResult:
    headers = ctx.request.headers
    behaviour, folder = headers["x-behaviour"], Path(headers["x-folder"])
    if behaviour == "fail":
        return CallToolResult(content=[TextContent(type="text", text="broken")], is_error=True)
    if behaviour == "draw":
        text = TextContent(type="text", text=params.arguments["value"])
        data = b64encode((folder / "dot.png").read_bytes()).decode()
        return CallToolResult(content=[text, ImageContent(type="image", data=data, mime_type="image/png")])
    if behaviour == "tell":
        await ctx.session.report_progress(1, message="begun")
        await until_told_to_go_on(folder)
        return CallToolResult(content=[TextContent(type="text", text=params.arguments["value"])])
    answer = await BEHAVIOURS[behaviour](params.arguments["value"], folder)
    return CallToolResult(content=[TextContent(type="text", text=answer)])


@cache
def probe_url() -> str:
    """The address of the server, which is started when it is first asked for and ends with the tests."""
    return serve_in_thread(Server("probe", version="1", on_list_tools=list_tools, on_call_tool=call_tool))


def serve_in_thread(server: Server[Any], port: int = 0, **options: Any) -> str:
    """Serve until the tests end; the address."""
    return serve_app(server.streamable_http_app(**options), port)[0]


def serve_app(app: Any, port: int = 0) -> tuple[str, uvicorn.Server]:
    """The same for any application, with the server, which can be ended."""
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    threading.Thread(target=running.run, daemon=True).start()
    deadline = time.monotonic() + PATIENCE
    while not running.started:
        assert time.monotonic() < deadline, "the server never came up"
        time.sleep(0.02)
    return f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp", running
