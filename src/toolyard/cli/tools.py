"""`toolyard tools`: what an agent has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import click

from toolyard.cli.application import agent_option, known_agent, open_application
from toolyard.cli.render import relative, show_json, show_note, show_problems, show_rows
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.core.tool import WireFormat


NOT_ABOUT_LOADING = (
    *("audit_", "config_", "env_", "file_", "grants_", "mixin_", "permissions_", "provider_"),
    *("plugin_id_", "plugin_enablement", "plugins_are_ids", "tool_name_taken"),
)
"""Beginnings of the codes of problems other than that something did not load."""
FORMATS = ["table", "json", "openai", "responses", "anthropic", "mcp"]


@click.command()
@agent_option
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="A table, or a wire format.")
@click.option("--all", "everything", is_flag=True, help="Every plugin and tool, on or off, and why.")
@click.option("--tokens", is_flag=True, help="What each definition costs a request, by an estimate; the dearest first.")
@click.option("--watch", is_flag=True, help="List them again whenever they change, until interrupted.")
@click.pass_obj
def tools(options: GlobalOptions, agent: str | None, form: str, everything: bool, tokens: bool, watch: bool) -> int:
    """List the tools of an agent."""
    if tokens:
        return run_to_end(list_costs(options, agent, form))
    return run_to_end(list_tools(options, agent, form, everything, watch))


async def list_costs(options: GlobalOptions, agent: str | None, form: str) -> int:
    """Say what fills a model's context before anybody has said a word."""
    from toolyard.agents.context_window import CHARACTERS_PER_TOKEN

    async with open_application(options) as app:
        agent = known_agent(app.agents(), agent)
        wire = cast("WireFormat", form if form not in ("table", "json") else "openai")
        rows = cost_rows(app, agent, wire)
        if form == "json":
            show_json(rows)
        else:
            total = sum(row["tokens"] for row in rows)
            show_rows([*([str(row["tokens"]), row["name"]] for row in rows), [str(total), "all of them"]])
        method = f"the characters of each definition as {wire} sends it, divided by {CHARACTERS_PER_TOKEN:g}"
        show_note(f"an estimate: {method}; a model's own count may differ by a fifth", "faint")
        show_problems(app.problems(of_requests=False))
    return 0


def cost_rows(app: AgentApplication, agent: str, wire: WireFormat) -> list[dict[str, Any]]:
    from toolyard.agents.context_window import CHARACTERS_PER_TOKEN
    from toolyard.core.wire.formats import export_one

    costs = {
        tool.spec.name: int(len(json.dumps(export_one(tool.spec, wire), ensure_ascii=False)) / CHARACTERS_PER_TOKEN)
        for tool in app.tools(agent)
    }
    return [{"name": name, "tokens": costs[name]} for name in sorted(costs, key=lambda name: -costs[name])]


async def list_tools(options: GlobalOptions, agent: str | None, form: str, everything: bool, watch: bool) -> int:
    async with open_application(options) as app:
        changes = app.watch() if watch else None
        code = show_tools(app, known_agent(app.agents(), agent), form, everything)
        if changes:
            show_note("watching; Ctrl-C ends it", "faint")
            async for _ in changes:
                show_note("\nsomething changed", "faint")
                show_tools(app, known_agent(app.agents(), agent), form, everything)
        return code


def show_tools(app: AgentApplication, agent: str, form: str, everything: bool) -> int:
    match form:
        case "table":
            show_table(app, agent, everything)
        case "json":
            show_json(all_rows(app, agent) if everything else tool_rows(app, agent))
        case _:
            show_wire_format(app, agent, cast("WireFormat", form))
    problems = app.problems(of_requests=False)
    show_problems(problems)
    return 2 if any(problem.severity == "error" for problem in problems) else 0


def show_table(app: AgentApplication, agent: str, everything: bool) -> None:
    rows = all_rows(app, agent) if everything else tool_rows(app, agent)
    if everything and len(app.agents()) > 1:
        others = ", ".join(name for name in app.agents() if name != agent)
        show_note(f"agent '{agent}'; others with --agent: {others}", "faint")
    if everything and rows:
        show_rows([[row["name"] or "-", row["kind"], row["state"], row["plugin"], why(row)] for row in rows])
    elif rows:
        show_rows([[row["name"], row["kind"], row["description"]] for row in rows])
    elif not app.problems(of_requests=False):
        show_note("no tools: add plugins to the configuration, or start one with `toolyard tool new NAME`")


def tool_rows(app: AgentApplication, agent: str) -> list[dict[str, str]]:
    return [
        {
            "name": tool.spec.name,
            "kind": tool.kind,
            "state": "on",
            "description": tool.spec.description,
            "origin": app.origin(tool.spec.name, agent),
            "reason": "",
        }
        for tool in app.tools(agent)
    ]


def all_rows(app: AgentApplication, agent: str) -> list[dict[str, str]]:
    """Every plugin and tool, on or off, why, and where that was decided; at last what did not load."""
    loaded = [
        {
            "name": found.tool.spec.name if found.tool else "",
            "plugin": found.plugin,
            "kind": found.kind,
            "state": "on" if found.on else "off",
            "description": found.tool.spec.description if found.tool else "",
            "origin": found.origin,
            "reason": found.reason,
            "where": str(found.where or ""),
        }
        for found in app.plugins(agent)
    ]
    return [*loaded, *failed_rows(app)]


def failed_rows(app: AgentApplication) -> Iterator[dict[str, str]]:
    """A row for each problem that says that something did not load."""
    for problem in app.problems(of_requests=False):
        named = problem.where and problem.where.file != app.config_path
        # The syntax of a descriptor has the codes of a configuration's.
        if not problem.code.startswith(NOT_ABOUT_LOADING) or (named and problem.code.startswith("config_")):
            yield {
                "name": relative(str(problem.where.file)) if problem.where and named else "",
                "plugin": "-",
                "kind": "-",
                "state": "off",
                "description": "",
                "origin": str(problem.where or ""),
                "reason": f"{problem.code}: {problem.message}",
                "where": str(problem.where or ""),
            }


def why(row: dict[str, str]) -> str:
    return f"{row['reason']} ({relative(row['where'])})" if row["where"] else row["reason"]


def show_wire_format(app: AgentApplication, agent: str, form: WireFormat) -> None:
    from toolyard.core.wire.formats import export

    exported = export((tool.spec for tool in app.tools(agent)), form)
    show_json(exported.tools)
    for problem in exported.problems:
        left_out = "; the tool is left out" if problem.fatal else ""
        style = "error" if problem.fatal else "warning"
        show_note(f"{problem.tool}: {problem.message}{left_out}", style, hint=problem.hint)
