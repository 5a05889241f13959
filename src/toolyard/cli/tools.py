"""`toolyard tools`: what an agent has."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from toolyard.cli.names import agent_option
from toolyard.cli.opening import agent_of, open_application
from toolyard.cli.render import relative, show_json, show_note, show_problems, show_rows
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.app import AgentApplication
    from toolyard.cli.main import Places
    from toolyard.core.tool import WireFormat

__all__ = ["tools"]

FORMATS = ["table", "json", "openai", "responses", "anthropic", "mcp"]


@click.command()
@agent_option
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="A table, or a wire format.")
@click.option("--all", "everything", is_flag=True, help="Also what did not load, and why.")
@click.pass_obj
def tools(places: Places, agent: str | None, form: str, everything: bool) -> int:
    """List the tools of an agent."""
    return run_to_end(list_tools(places, agent, form, everything))


async def list_tools(places: Places, agent: str | None, form: str, everything: bool) -> int:
    async with open_application(places) as app:
        agent = agent_of(app, agent)
        match form:
            case "table":
                show_table(app, agent, everything)
            case "json":
                show_json(tool_rows(app, agent, everything))
            case _:
                show_wire_format(app, agent, cast("WireFormat", form))
        problems = app.problems()
        show_problems(problems)
        return 2 if any(problem.severity == "error" for problem in problems) else 0


def show_table(app: AgentApplication, agent: str, everything: bool) -> None:
    rows = tool_rows(app, agent, everything)
    cells = [[row["name"], row["kind"], row["state"], row["description"] or row["reason"]] for row in rows]
    if cells:
        show_rows(cells if everything else [[name, kind, text] for name, kind, _, text in cells])
    elif not app.problems():
        show_note("no tools: add plugins to the configuration, or start one with `toolyard tool new NAME`")


def tool_rows(app: AgentApplication, agent: str, everything: bool) -> list[dict[str, str]]:
    """Every tool with where it comes from; with `everything` also what is not there, and why."""
    loaded = [
        row(tool.spec.name, tool.kind, description=tool.spec.description, origin=app.origin(tool.spec.name))
        for tool in app.tools(agent)
    ]
    return [*loaded, *missing_rows(app)] if everything else loaded


def missing_rows(app: AgentApplication) -> Iterator[dict[str, str]]:
    for problem in app.problems():
        if problem.code.startswith(("bash_", "manifest_", "plugin_", "tool_name_taken")):
            name = relative(str(problem.where.file)) if problem.where else "-"
            yield row(name, "-", origin=str(problem.where or ""), reason=f"{problem.code}: {problem.message}")


def row(name: str, kind: str, *, origin: str, description: str = "", reason: str = "") -> dict[str, str]:
    state = "off" if reason else "on"
    return {
        "name": name,
        "kind": kind,
        "state": state,
        "description": description,
        "origin": origin,
        "reason": reason,
    }


def show_wire_format(app: AgentApplication, agent: str, form: WireFormat) -> None:
    from toolyard.core.formats import export

    exported = export((tool.spec for tool in app.tools(agent)), form)
    show_json(exported.tools)
    for problem in exported.problems:
        left_out = "; the tool is left out" if problem.fatal else ""
        show_note(f"{problem.tool}: {problem.message}{left_out}", "error" if problem.fatal else "warning")
        show_note(f"  hint: {problem.hint}", "faint")
