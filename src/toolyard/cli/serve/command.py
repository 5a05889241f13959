"""`toolyard serve`: an agent's tools for MCP clients, and what to write into a client's settings."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import agent_option, known_agent, open_application
from toolyard.cli.render import show_note, show_problems, show_text, take_standard_streams
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.serve.mcp.http.listening import Address


TOKEN = "TOOLYARD_TOKEN"  # noqa: S105 - the name of a variable
PORT = 8626


@click.command()
@click.option("--mcp", "wire", type=click.Choice(["stdio", "http"]), help="Serve MCP over this wire.")
@agent_option
@click.option("--host", metavar="ADDR", default="127.0.0.1", help="Listen here; default 127.0.0.1, this machine only.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help=f"Listen there; default {PORT}, 0 for any.")
@click.option("--token", metavar="T", envvar=TOKEN, help=f"What clients must know; default ${TOKEN}, else a new one.")
@click.option("--no-token", is_flag=True, help="Let every program of this machine in; only on a loopback address.")
@click.option("--name", "names", metavar="HOST", multiple=True, help="Another name by which clients reach the server.")
@click.pass_obj
def serve(
    options: GlobalOptions,
    wire: str | None,
    agent: str | None,
    host: str,
    port: int | None,
    token: str | None,
    no_token: bool,
    names: tuple[str, ...],
) -> int:
    """Give the tools of an agent to other programs."""
    match wire:
        case "stdio":
            return run_to_end(serve_stdio(options, agent))
        case "http":
            from toolyard.serve.mcp.http.listening import Address, new_token

            address = Address(
                host=host,
                port=PORT if port is None else port,
                token=None if no_token else token or new_token(),
                names=tuple(name.lower() for name in names),
            )
            if no_token and not address.is_loopback:
                raise click.UsageError(
                    f"--no-token lets everybody in who reaches {host}; leave out --host or --no-token"
                )
            return run_to_end(serve_http(options, agent, address))
    raise click.UsageError("say what to serve: --mcp stdio or --mcp http")


async def serve_stdio(options: GlobalOptions, agent: str | None) -> int:
    """Serve the client at the other end of standard input and output; both are its alone from here on."""
    from toolyard.serve.mcp.line_wire import LineWire
    from toolyard.serve.mcp.stdio import StdioServer
    from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

    source, sink = take_standard_streams()
    session = os.urandom(16).hex()
    approver = ClientApprover()
    async with (
        open_application(options, approver=approver, session=session) as app,
        LineWire(source, sink) as wire,
    ):
        check(app, agent)
        await StdioServer(ToolServer(app, approver, agent=agent), wire, session=session).run()
    return 0


async def serve_http(options: GlobalOptions, agent: str | None, address: Address) -> int:
    """Serve until interrupted."""
    from toolyard.serve.mcp.http.listening import listening
    from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

    approver = ClientApprover()
    async with open_application(options, approver=approver) as app:
        check(app, agent)
        try:
            async with listening(ToolServer(app, approver, agent=agent), address) as found:
                show_address(app, found)
                await asyncio.get_running_loop().create_future()
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on {address.host}:{address.port}: {error.strerror}; --port 0 takes any that is free"
            ) from error
    return 0


def check(app: AgentApplication, agent: str | None) -> None:
    """Tell what is wrong before a client finds tools missing."""
    known_agent(app.agents(), agent)
    show_problems(app.problems(of_requests=False))


def show_address(app: AgentApplication, address: Address) -> None:
    """What a person needs to connect a client; the address is the answer."""
    show_text(address.url)
    others = app.agents()
    if len(others) > 1:
        show_note(f"agents: {', '.join(f'{address.url}/{name}' for name in others)}")
    show_note(f"token: {address.token}" if address.token else "no token: every program of this machine may call")
    show_note("Ctrl-C ends it", "faint")
