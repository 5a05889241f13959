"""`toolyard tools`: what an agent has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import click

from toolyard.cli.opening import agent_of, open_application
from toolyard.cli.render import relative, show_json, show_note, show_problems, show_rows

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.main import Places
    from toolyard.core.tool import WireFormat

__all__ = ["tools"]

FORMATS = ["table", "json", "openai", "responses", "anthropic", "mcp"]


@click.command()
@click.option("--agent", metavar="A", help="Which agent; default the only one, or 'default'.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="A table, or a wire format.")
@click.option("--all", "everything", is_flag=True, help="Also what did not load, and why.")
@click.pass_obj
def tools(places: Places, agent: str | None, form: str, everything: bool) -> int:
    """List the tools of an agent."""
    return asyncio.run(list_tools(places, agent, form, everything))


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
    if not rows:
        show_note("no tools: add plugins to the configuration, or start one with `toolyard tool new NAME`")
        return
    cells = [[row["name"], row["kind"], row["state"], row["description"] or row["reason"]] for row in rows]
    show_rows(cells if everything else [[name, kind, text] for name, kind, _, text in cells])


def tool_rows(app: AgentApplication, agent: str, everything: bool) -> list[dict[str, str]]:
    """Every tool with where it comes from; with `everything` also what is not there, and why."""
    rows = [
        {
            "name": tool.spec.name,
            "kind": tool.kind,
            "state": "on",
            "description": tool.spec.description,
            "origin": app.origin(tool.spec.name),
            "reason": "",
        }
        for tool in app.tools(agent)
    ]
    if everything:
        rows += [
            {
                "name": relative(str(problem.where.file)) if problem.where else "-",
                "kind": "-",
                "state": "off",
                "description": "",
                "origin": str(problem.where or ""),
                "reason": f"{problem.code}: {problem.message}",
            }
            for problem in app.problems()
            if problem.code.startswith(("bash_", "plugin_", "tool_name_taken"))
        ]
    return rows


def show_wire_format(app: AgentApplication, agent: str, form: WireFormat) -> None:
    from toolyard.core.formats import export

    exported = export((tool.spec for tool in app.tools(agent)), form)
    show_json(exported.tools)
    for problem in exported.problems:
        show_note(f"{problem.tool}: {problem.message}", "error" if problem.fatal else "warning")
        show_note(f"  hint: {problem.hint}", "faint")
