"""`toolyard plugins`: fetch repositories again, and look after the servers that tools are asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from toolyard.cli.application import open_application
from toolyard.cli.render import show_json, show_note, show_problems, show_rows
from toolyard.cli.running import run_to_end
from toolyard.errors import UnknownPlugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.cli.main import GlobalOptions
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.kind import HasServer, ServerStatus


SHORT = 10
"""How much of a commit is shown."""


@click.group()
def plugins() -> None:
    """Look after plugins: refresh, status, login, logout."""


@plugins.command(short_help="Fetch repositories again.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
@click.pass_obj
def refresh(options: GlobalOptions, names: tuple[str, ...], as_json: bool) -> int:
    """Fetch the git repositories of the configuration again, and use from now on what their branches mean by now.

    NAME is the id of a plugin or the name of its repository; without one, all are fetched. A remote reference is
    otherwise fetched once and stays what it was. Exit status: 0 done, 2 if one could not be fetched.
    """
    return run_to_end(refresh_once(options, names, as_json))


async def refresh_once(options: GlobalOptions, names: tuple[str, ...], as_json: bool) -> int:
    async with open_application(options) as app:
        try:
            found = await app.refresh_plugins(names)
        except UnknownPlugin as error:
            raise click.UsageError(str(error)) from error
        if as_json:
            show_json([as_row(one) for one in found])
        elif found:
            show_rows([[one.state, one.repository, commits(one)] for one in found])
        else:
            show_note("no plugin comes from a git repository")
        show_problems(app.problems(of_requests=False) + [one.problem for one in found if one.problem])
        return 2 if any(one.state == "failed" for one in found) else 0


@plugins.command(short_help="Say how MCP servers are doing.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
@click.pass_obj
def status(options: GlobalOptions, names: tuple[str, ...], as_json: bool) -> int:
    """Start or reach each MCP server of the configuration, and say how it is doing.

    NAME is the id of a server's plugin; without one, all are tried. Of one that fails, the error and the last of what
    it printed are shown. Exit status: 0 all are well, 1 if one failed.
    """
    return run_to_end(show_status(options, names, as_json))


async def show_status(options: GlobalOptions, names: tuple[str, ...], as_json: bool) -> int:
    async with open_application(options) as app:
        found = [await source.status(start=True) for source in chosen(await app.servers(), names)]
        if as_json:
            show_json([to_builtins(one) for one in found])
        elif found:
            show_rows([[one.state, one.name, f"{one.tools} tools", one.speaks or "-", starts(one)] for one in found])
        else:
            show_note("no plugin is an MCP server")
        for one in found:
            if one.last_error and not as_json:
                show_note(f"{one.name}: {one.last_error}", "error")
                for line in one.printed.splitlines():
                    show_note(f"  {line}", "faint")
        return 1 if any(one.state == "failed" for one in found) else 0


@plugins.command(short_help="Sign in to an MCP server.")
@click.argument("name")
@click.pass_obj
def login(options: GlobalOptions, name: str) -> int:
    """Sign in to the MCP server NAME by OAuth: open the address that is shown.

    What the server gives is kept in a file of your own that only you can read. Exit status: 0 done, 2 if it failed.
    """
    return run_to_end(sign_in(options, name))


async def sign_in(options: GlobalOptions, name: str) -> int:
    async with open_application(options) as app:
        (source,) = chosen(await app.servers(), (name,))
        problem = await source.login(lambda address: show_note(f"open this address to sign in:\n  {address}"))
        if problem:
            show_problems([problem])
            return 2
        show_note(f"you are signed in to '{name}'")
        return 0


@plugins.command(short_help="Forget a sign-in.")
@click.argument("name")
@click.pass_obj
def logout(options: GlobalOptions, name: str) -> int:
    """Forget what signing in to the MCP server NAME gave."""
    return run_to_end(sign_out(options, name))


async def sign_out(options: GlobalOptions, name: str) -> int:
    async with open_application(options) as app:
        (source,) = chosen(await app.servers(), (name,))
        show_note(f"signed out of '{name}'" if source.logout() else f"you were not signed in to '{name}'")
        return 0


def chosen(servers: Sequence[HasServer], names: Sequence[str]) -> list[HasServer]:
    """The servers of these names, or all."""
    known = {source.name: source for source in servers}
    for name in names:
        if name not in known:
            raise click.UsageError(f"no MCP server is called '{name}'; known: {', '.join(known) or 'none'}")
    return [known[name] for name in names] if names else list(servers)


def starts(one: ServerStatus) -> str:
    return f"{one.restarts} restarts" if one.restarts else ""


def commits(one: RepositoryNow) -> str:
    if one.state == "failed":
        return "-"
    return f"{one.before[:SHORT]} → {one.now[:SHORT]}" if one.state == "updated" else one.now[:SHORT]


def as_row(one: RepositoryNow) -> dict[str, object]:
    problem = one.problem.as_mapping() if one.problem else None
    return {
        "repository": one.repository,
        "plugins": list(one.plugins),
        "state": one.state,
        "before": one.before or None,
        "now": one.now or None,
        "problem": problem,
    }
