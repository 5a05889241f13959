"""The names of agents and tools, as arguments that a shell can complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolyard.cli.opening import open_application

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from toolyard.app import AgentApplication


def complete_tool(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """The tools whose names begin so."""
    from click.shell_completion import CompletionItem

    app = application_of(ctx)
    specs = app.tool_specs() if app else []
    found = [spec for spec in specs if spec.name.startswith(incomplete)]
    # The shells read one line for each tool.
    return [CompletionItem(spec.name, help=" ".join(spec.description.split())) for spec in found]


def complete_agent(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """The agents whose names begin so."""
    app = application_of(ctx)
    return [name for name in (app.agents() if app else []) if name.startswith(incomplete)]


def application_of(ctx: click.Context) -> AgentApplication | None:
    """The application that the line so far means; None when it means none, since a shell wants no messages."""
    from toolyard.cli.main import Places

    options = ctx.find_root().params
    try:
        return open_application(Places(**{name: options.get(name) for name in ("config", "sessions", "workspace")}))
    except (click.ClickException, OSError):
        return None


agent_option = click.option(
    "--agent",
    metavar="A",
    shell_complete=complete_agent,
    help="Which agent; default the one called 'default', else the first.",
)
tool_argument = click.argument("tool", shell_complete=complete_tool)
