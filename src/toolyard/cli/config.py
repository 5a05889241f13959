"""`toolyard config check|show|explain|system-message|ui|schema`: what the configuration says, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolyard.cli.application import agent_option, enter_workspace, known_agent, open_application, read_config
from toolyard.cli.render import count, relative, show_json, show_line, show_note, show_problems, show_text
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions
    from toolyard.config.configuration import Configuration
    from toolyard.config.explain import LayerValue
    from toolyard.core.problems import Problem


MOST_SHOWN = 200
"""Characters of a value in an explanation."""
NO_MESSAGE = 'the plugin "path:${env:BUILTIN_PLUGINS}/feature-system-message" makes it of the key "system_message"'
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")


@click.group()
def config() -> None:
    """Look into the configuration: what is wrong with it, what it amounts to, and why."""


@config.command(short_help="Report every problem at once.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@json_option
@click.pass_obj
def check(options: GlobalOptions, strict: bool, as_json: bool) -> int:
    """Load everything that the configuration names and report every problem, as file:line:column.

    Exit status: 0 sound, 2 at fault.
    """
    return run_to_end(check_once(options, strict, as_json))


@config.command(short_help="Print what holds for an agent.")
@agent_option
@json_option
@click.pass_obj
def show(options: GlobalOptions, agent: str | None, as_json: bool) -> int:
    """Print all that holds for an agent as one JSON object.

    Mixins, layers and placeholders are resolved, defaults filled in, secrets hidden. Problems go to standard error,
    unless the answer is for programs.
    """
    from toolyard.config.explain import whole_config

    configuration = read_masked(options)
    show_json(whole_config(configuration, known_agent(configuration.agents(), agent)))
    if not as_json:
        show_problems(configuration.problems)
    return exit_code(configuration.problems)


@config.command(short_help="Say why a value is what it is.")
@click.argument("key")
@agent_option
@json_option
@click.pass_obj
def explain(options: GlobalOptions, key: str, agent: str | None, as_json: bool) -> int:
    """Print the value of KEY, every layer that set it, and which of them won.

    KEY is a path such as agents.default.model or plugin_policy.allow_bash_tools; just model means the agent's.
    """
    from toolyard.config.explain import explain as explain_key
    from toolyard.config.explain import nearest_key
    from toolyard.core.json_values import brief

    configuration = read_masked(options)
    agent = known_agent(configuration.agents(), agent)
    found = explain_key(configuration, key, agent)
    rows = [contribution_record(configuration, one) for one in found.contributions]
    if as_json:
        show_json({"key": found.key, "value": found.value, "set": bool(rows), "layers": rows})
    elif rows:
        show_text(f"{found.key} = {brief(found.value, MOST_SHOWN)}\n", "strong")
        for row in rows:
            show_text(contribution_line(row), "" if row["verdict"] != "overridden" else "faint")
    else:
        near = nearest_key(configuration, found.key, agent)
        show_note(f"nothing sets '{found.key}'", "warning", hint=f"did you mean '{near}'?" if near else "")
    return 0 if rows else 2


@config.command("system-message", short_help="Print what a model is told first.")
@agent_option
@click.pass_obj
def system_message(options: GlobalOptions, agent: str | None) -> int:
    """Print the system message that the plugins of an agent make for a request, as it would be sent now.

    Exit status: 0 made, 2 something in it is at fault, which is said on standard error.
    """
    return run_to_end(make_system_message(options, agent))


@config.command(short_help="Show what can be set for a session.")
@agent_option
@click.option("--session", metavar="ID", help="With the values that it has in this session.")
@click.option("--json", "as_json", is_flag=True, help="One object a line.")
@click.pass_obj
def ui(options: GlobalOptions, agent: str | None, session: str | None, as_json: bool) -> int:
    """Show the controls of an agent: plugins on and off, the model, and what its features add.

    `toolyard sessions set ID CONTROL=VALUE` sets them for a session, /set does in a chat.
    """
    return run_to_end(list_controls(options, agent, session, as_json))


@config.command(short_help="Print the JSON Schema of the file.")
def schema() -> int:
    """Print the JSON Schema of a configuration file, by which editors complete and check it.

    Save it beside the configuration and name it there: "$schema": "./toolyard.schema.json".
    """
    from toolyard.config.schema import config_schema
    from toolyard.kinds import KINDS
    from toolyard.plugins.entries import settings_of

    show_json(config_schema(settings_of(KINDS)))
    return 0


async def check_once(options: GlobalOptions, strict: bool, as_json: bool) -> int:
    options = enter_workspace(options)
    async with open_application(options) as app:
        problems = app.problems()
        if as_json:
            show_json([problem.as_mapping() for problem in problems])
        else:
            show_problems(problems, on_stdout=True)
            show_summary(problems, str(options.config))
        return exit_code(problems, strict=strict)


async def make_system_message(options: GlobalOptions, agent: str | None) -> int:
    async with open_application(options) as app:
        agent = known_agent(app.agents(), agent)
        made = await app.system_message(agent)
        if made.text:
            show_text(made.text.rstrip("\n") + "\n")
        elif not made.problems:
            show_note(f"agent '{agent}' has no system message", "warning", hint=NO_MESSAGE)
        problems = [*(one for one in app.problems(of_requests=False) if one.severity == "error"), *made.problems]
        show_problems(problems)
        return exit_code(problems)


async def list_controls(options: GlobalOptions, agent: str | None, session: str | None, as_json: bool) -> int:
    from toolyard.agents.sessions.database import StoreError
    from toolyard.cli.chat.controls import show_controls

    async with open_application(options) as app:
        try:
            name = known_agent(app.agents(), agent) if agent or not session else None
            schema = await app.ui_schema(name, session=session)
        except StoreError as error:
            raise click.UsageError(str(error)) from None
        if as_json:
            for control in schema.controls:
                show_line(control)
        else:
            show_controls(schema)
        show_problems(schema.problems)
        return exit_code(list(schema.problems))


def show_summary(problems: list[Problem], file: str) -> None:
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    found = ", ".join(count(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number)
    show_note(f"{relative(file)}: {found or 'no problems'}", "error" if errors else "warning" if warnings else "good")


def read_masked(options: GlobalOptions) -> Configuration:
    """The configuration without its secrets; nothing that it names is loaded."""
    from toolyard.runtime.redaction import masked

    configuration, names = read_config(options)
    return masked(configuration, names.get)


def exit_code(problems: tuple[Problem, ...] | list[Problem], *, strict: bool = False) -> int:
    return 2 if any(strict or problem.severity == "error" for problem in problems) else 0


def contribution_record(configuration: Configuration, one: LayerValue) -> dict[str, object]:
    document = configuration.written
    where = document.position(one.origin.pointer) if one.origin and document else None
    return {
        "layer": one.layer,
        "verdict": one.verdict,
        "value": one.value,
        "where": str(where or ""),
        "via": " → ".join(one.origin.chain) if one.origin else "",
    }


def contribution_line(row: dict[str, object]) -> str:
    from toolyard.core.json_values import brief

    place = f" ({relative(str(row['where']))})" if row["where"] else ""
    via = f" by {row['via']}" if row["via"] else ""
    return f"  {row['verdict']!s:10}  {row['layer']}{place}{via}: {brief(row['value'], MOST_SHOWN)}\n"
