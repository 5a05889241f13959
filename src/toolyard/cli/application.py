"""The application that the global options name, and the options that name one of its agents or tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.config.configuration import Configuration
    from toolyard.config.placeholders import Names
    from toolyard.permissions.verdict import Approver


DEFAULT_CONFIG = Path(__file__).parent.parent / "default_config.json"


def open_application(
    options: GlobalOptions,
    *,
    approver: Approver | None = None,
    only: Literal["shell:command", "shell:session"] | None = None,
    session: str | None = None,
) -> AgentApplication:
    """An application, not yet entered; the current folder is its workspace from now on."""
    from toolyard.app import AgentApplication
    from toolyard.cli.render import reserve_stdout
    from toolyard.files.door import FileRefused

    if only is None:
        reserve_stdout()
        show_log()
    options = enter_workspace(options)
    places = str(options.config), str(options.sessions)
    try:
        return AgentApplication(*places, approver=approver, only=only, session=session)
    except FileRefused as refused:
        raise click.UsageError(f"--sessions {places[1]}: {refused.strerror}; name the folder itself") from refused


def show_log() -> None:
    """Tell who waits what is fetched, installed and built, which may take minutes; problems are shown otherwise."""
    import logging

    class BuildHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from toolyard.cli.render import show_note

            show_note(record.getMessage(), "faint")

    logging.getLogger("toolyard.problems").addHandler(logging.NullHandler())
    log = logging.getLogger("toolyard.builds")
    if not log.handlers:
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(BuildHandler())


def enter_workspace(options: GlobalOptions) -> GlobalOptions:
    """Go into the workspace; the same options with absolute paths, so that they mean the same from there."""
    config, sessions = config_path(options).absolute(), sessions_dir(options).absolute()
    if options.workspace is not None:
        try:
            os.chdir(options.workspace)
        except OSError as error:
            raise click.UsageError(f"--workspace {options.workspace}: {error.strerror}") from error
    return options._replace(config=str(config), sessions=str(sessions), workspace=None)


def read_config(options: GlobalOptions) -> tuple[Configuration, Names]:
    """The configuration by itself, with where its names come from; nothing that it refers to is loaded."""
    from toolyard.config.configuration import builtin_names, read_configuration
    from toolyard.config.placeholders import Names
    from toolyard.files.working_folder import working_folder
    from toolyard.kinds import KINDS
    from toolyard.plugins.entries import settings_of, stands_for

    path = Path(str(enter_workspace(options).config))
    names = Names(config_env={}, overrides={}, builtin=builtin_names(path, Path(working_folder())), process=os.environ)
    return read_configuration(path, names, settings_of(KINDS), stands_for(KINDS)), names


def config_path(options: GlobalOptions) -> Path:
    """The configuration in use: the one named, the folder's, the user's, the built-in one."""
    from toolyard.files.user_folders import user_folder

    if options.config is not None:
        return Path(options.config)
    candidates = (Path("toolyard.json"), user_folder("config") / "toolyard.json")
    # Whatever is there: one that cannot be obeyed is a problem, and must not give way to one that forbids less.
    return next((path for path in candidates if os.path.lexists(path)), DEFAULT_CONFIG)


def sessions_dir(options: GlobalOptions) -> Path:
    """Where sessions are kept: the folder named, or the user's own, outside every workspace."""
    from toolyard.files.user_folders import user_folder

    return Path(options.sessions) if options.sessions is not None else user_folder("state") / "sessions"


def sessions_place(options: GlobalOptions) -> Path:
    """The same where it is by its owner's links alone; UsageError when it is not to be used."""
    from toolyard.files.door import FileRefused
    from toolyard.files.own.ownership import real_place
    from toolyard.files.own.sessions_folder import SessionsFolder

    named = sessions_dir(options).absolute()
    try:
        place = Path(real_place(str(named)))
        if place.exists():
            SessionsFolder(place).use()
    except FileRefused as refused:
        raise click.UsageError(f"--sessions {named}: {refused.strerror}; {refused.hint}") from None
    return place


def known_agent(known: Sequence[str], agent: str | None) -> str:
    """One of those there are; without a name the one called `default`, else the first."""
    if agent is None:
        return "default" if "default" in known else known[0]
    if agent not in known:
        raise click.UsageError(f"there is no agent '{agent}'; known: {', '.join(known)}")
    return agent


def complete_tool(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    from click.shell_completion import CompletionItem

    app = application_of(ctx)
    specs = app.tool_specs() if app else []
    found = [spec for spec in specs if spec.name.startswith(incomplete)]
    # The shells read one line for each tool.
    return [CompletionItem(spec.name, help=" ".join(spec.description.split())) for spec in found]


def complete_agent(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    app = application_of(ctx)
    return [name for name in (app.agents() if app else []) if name.startswith(incomplete)]


def application_of(ctx: click.Context) -> AgentApplication | None:
    """The application that the line so far means; None when it means none, since a shell wants no messages."""
    from toolyard.cli.main import GlobalOptions

    typed = ctx.find_root().params
    try:
        return open_application(GlobalOptions(**{name: typed.get(name) for name in GlobalOptions._fields}))
    except (click.ClickException, OSError):
        return None


agent_option = click.option(
    "--agent",
    metavar="A",
    shell_complete=complete_agent,
    help="Which agent; default the one called 'default', else the first.",
)
tool_argument = click.argument("tool", shell_complete=complete_tool)
