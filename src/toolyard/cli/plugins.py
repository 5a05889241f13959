"""`toolyard plugins refresh`: fetch repositories again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolyard.cli.application import open_application
from toolyard.cli.render import show_json, show_note, show_problems, show_rows
from toolyard.cli.running import run_to_end
from toolyard.errors import UnknownPlugin

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions
    from toolyard.plugins.acquire.refetch import RepositoryNow


SHORT = 10
"""How much of a commit is shown."""


@click.group()
def plugins() -> None:
    """Look after plugins: refresh."""


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
