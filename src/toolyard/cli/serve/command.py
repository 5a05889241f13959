"""`toolyard serve`: an agent's tools for MCP clients, and what to write into a client's settings."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from toolyard.cli.application import agent_option, known_agent, open_application
from toolyard.cli.render import (
    is_terminal,
    show_json,
    show_note,
    show_problems,
    show_rows,
    show_text,
    take_standard_streams,
)
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.serve.mcp.http.listening import Address


CLIENT = click.Choice(
    ["claude-code", "codex", "gemini", "opencode", "vscode", "cursor", "goose", "zed", "claude-desktop"]
)
TOKEN = "TOOLYARD_TOKEN"  # noqa: S105 - the name of a variable
PORT = 8626
FIRST_QUESTIONS = 0.5
"""For how many seconds a client over stdio is not disturbed by what takes long to find out and is only told."""


@click.command()
@click.option("--mcp", "wire", type=click.Choice(["stdio", "http"]), help="Serve MCP over this wire.")
@agent_option
@click.option("--host", metavar="ADDR", default="127.0.0.1", help="Listen here; default 127.0.0.1, this machine only.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help=f"Listen there; default {PORT}, 0 for any.")
@click.option(
    "--token", metavar="T", envvar=TOKEN, help=f"What clients must know; default ${TOKEN}, else a new one. - reads it."
)
@click.option("--token-file", metavar="FILE", help="Read it from the first line of a file; - is standard input.")
@click.option("--no-token", is_flag=True, help="Let every program of this machine in; only on a loopback address.")
@click.option("--name", "names", metavar="HOST", multiple=True, help="Another name by which clients reach the server.")
@click.option("--self-check", is_flag=True, help="Call each built-in tool first; without a terminal, end after that.")
@click.option("--print-config", metavar="CLIENT", type=CLIENT, help="Print what a client's settings need to say.")
@click.option(
    "--install", metavar="CLIENT", type=CLIENT, help="Write that into its settings, after showing the change."
)
@click.option("--yes", is_flag=True, help="With --install: do not ask.")
@click.pass_obj
def serve(
    options: GlobalOptions,
    wire: str | None,
    agent: str | None,
    host: str,
    port: int | None,
    token: str | None,
    token_file: str | None,
    no_token: bool,
    names: tuple[str, ...],
    self_check: bool,
    print_config: str | None,
    install: str | None,
    yes: bool,
) -> int:
    """Give the tools of an agent to other programs.

    \b
    CLIENT is one of claude-code, codex, gemini, opencode, vscode, cursor,
    goose, zed, claude-desktop; with --mcp http it is told the address.
    """
    if client := print_config or install:
        from toolyard.cli.serve.install import entry_for, install_entry, print_entry

        entry = entry_for(options, client, wire or "stdio", agent, f"http://{host}:{port or PORT}/mcp")
        return print_entry(client, entry) if print_config else install_entry(client, entry, yes=yes)
    match wire:
        case "stdio":
            return run_to_end(serve_stdio(options, agent))
        case "http":
            from toolyard.serve.mcp.http.listening import Address, new_token

            address = Address(
                host=host,
                port=usual_port(host) if port is None else port,
                token=None if no_token else given_token(token, token_file) or new_token(),
                names=tuple(name.lower() for name in names),
            )
            if no_token and not address.is_loopback:
                raise click.UsageError(
                    f"--no-token lets everybody in who reaches {host}; leave out --host or --no-token"
                )
            return run_to_end(serve_http(options, agent, address, self_check=self_check))
    raise click.UsageError("say what to serve: --mcp stdio or --mcp http")


def given_token(token: str | None, file: str | None) -> str | None:
    """The token that was given, in whatever way; one on the command line is seen by whoever lists processes."""
    source = click.get_current_context().get_parameter_source("token")
    if file is None and token != "-":  # noqa: S105 - what stands for standard input
        if token and source is ParameterSource.COMMANDLINE:
            hint = f"give it by ${TOKEN}, --token-file FILE or --token -"
            show_note("other users of this machine see --token in the list of processes", "warning", hint=hint)
        return token
    try:
        text = sys.stdin.readline() if file in (None, "-") else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"the token cannot be read: {error}") from error
    if not (found := text.partition("\n")[0].strip()):
        raise click.UsageError("there is no token in the first line")
    return found


def usual_port(host: str) -> int:
    """The port that pasted settings name, if it is free; else any."""
    from toolyard.serve.mcp.http.listening import is_taken

    if not is_taken(host, PORT):
        return PORT
    show_note(f"port {PORT} is taken, so another one is used", "warning", hint="--port N chooses one")
    return 0


async def serve_stdio(options: GlobalOptions, agent: str | None) -> int:
    """Serve the client at the other end of standard input and output; both are its alone from here on."""
    import asyncio

    from toolyard.serve.mcp.line_wire import LineWire
    from toolyard.serve.mcp.stdio import LineServer
    from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

    source, sink = take_standard_streams()
    session = os.urandom(16).hex()
    approver = ClientApprover()
    async with (
        open_application(options, approver=approver, session=session) as app,
        LineWire(source, sink) as wire,
    ):
        known_agent(app.agents(), agent)
        telling = asyncio.create_task(tell_problems(app))
        try:
            await LineServer(ToolServer(app, approver, agent=agent), wire, session=session).run()
        finally:
            telling.cancel()
            await asyncio.wait([telling])
    return 0


async def tell_problems(app: AgentApplication) -> None:
    """Tell what is wrong when the client has had time for its first questions, or leaves: it waits for the answers."""
    import asyncio

    try:
        await asyncio.sleep(FIRST_QUESTIONS)
    finally:
        show_problems(app.problems(of_requests=False))


async def serve_http(options: GlobalOptions, agent: str | None, address: Address, *, self_check: bool) -> int:
    """Serve until interrupted; with a check, only if that went well, and without a terminal only for it."""
    import asyncio

    from toolyard.serve.mcp.http.listening import listening
    from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

    approver = ClientApprover()
    async with open_application(options, approver=approver) as app:
        known_agent(app.agents(), agent)
        show_problems(app.problems(of_requests=False))
        try:
            async with listening(ToolServer(app, approver, agent=agent), address) as found:
                show_address(app, found)
                if self_check and not await check_tools(found):
                    return 1
                show_block(found)
                if self_check and not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
                    return 0
                show_note("Ctrl-C ends it", "faint")
                await asyncio.get_running_loop().create_future()
        except OSError as error:
            advice = (
                "--port 0 takes any that is free"
                if error.errno == errno.EADDRINUSE
                else "--host takes an address of this machine"
            )
            where = f"{address.host}:{address.port}"
            raise click.UsageError(f"cannot listen on {where}: {error.strerror}; {advice}") from error
    return 0


def show_address(app: AgentApplication, address: Address) -> None:
    """What a person needs to connect a client; the address is the answer."""
    show_text(address.url)
    others = app.agents()
    if len(others) > 1:
        show_note(f"agents: {', '.join(f'{address.url}/{name}' for name in others)}")
    show_note(f"token: {address.token}" if address.token else "no token: every program of this machine may call")


async def check_tools(address: Address) -> bool:
    """Call each tool once through a client, and say what came of it."""
    from toolyard.serve.mcp.self_check import check_each_tool

    signs = {True: "ok", False: "failed", None: "-"}
    checked = [one async for one in check_each_tool(address, Path.cwd())]
    if not checked:
        show_note("there are no tools to call", "error")
        return False
    show_rows([[signs[one.went_well], one.tool, one.text] for one in checked])
    return all(one.went_well is not False for one in checked)


def show_block(address: Address) -> None:
    """What to paste into a client's settings, in the form that most take."""
    from toolyard.serve.mcp.clients import NAME

    headers = {"headers": {"Authorization": f"Bearer {address.token}"}} if address.token else {}
    show_json({"mcpServers": {NAME: {"type": "http", "url": address.url, **headers}}})
    show_note("for one client: toolyard serve --print-config CLIENT --mcp http", "faint")
