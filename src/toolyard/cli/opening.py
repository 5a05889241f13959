"""Opens the application that the global options name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.app import AgentApplication
    from toolyard.cli.main import Places
    from toolyard.config.configuration import Configuration
    from toolyard.config.placeholders import Names
    from toolyard.permissions.verdict import Approver


DEFAULT_CONFIG = Path(__file__).parent.parent / "default_config.json"


def open_application(
    places: Places,
    *,
    approver: Approver | None = None,
    only: Literal["shell:command", "shell:session"] | None = None,
) -> AgentApplication:
    """An application, not yet entered. Paths that were typed are meant from where they were typed."""
    from toolyard.app import AgentApplication
    from toolyard.cli.render import reserve_stdout

    if only is None:
        reserve_stdout()
    settled = settle(places)
    return AgentApplication(str(settled.config), str(settled.sessions), approver=approver, only=only)


def settle(places: Places) -> Places:
    """The same places, absolute and seen from inside the workspace, so that they stay the same however often used."""
    from toolyard.cli.main import Places

    config, sessions = config_path(places).absolute(), sessions_dir(places).absolute()
    enter_workspace(places)
    return Places(config=str(config), sessions=str(sessions), workspace=None)


def read_config(places: Places) -> tuple[Configuration, Names]:
    """The configuration by itself, with where its names come from; nothing that it refers to is loaded."""
    from toolyard.config.configuration import builtin_names, read_configuration
    from toolyard.config.placeholders import Names
    from toolyard.kinds import KINDS
    from toolyard.plugins.entries import settings_of, stands_for

    path = Path(str(settle(places).config))
    names = Names(config_env={}, overrides={}, builtin=builtin_names(path, Path.cwd()), process=os.environ)
    return read_configuration(path, names, settings_of(KINDS), stands_for(KINDS)), names


def config_path(places: Places) -> Path:
    """The configuration in use: the one named, the folder's, the user's, the built-in one."""
    if places.config is not None:
        return Path(places.config)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for path in (Path("toolyard.json"), Path(home) / "toolyard" / "toolyard.json"):
        if path.is_file():
            return path
    return DEFAULT_CONFIG


def sessions_dir(places: Places) -> Path:
    """Where sessions are kept: the folder named, or the user's own, outside every workspace."""
    if places.sessions is not None:
        return Path(places.sessions)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "toolyard" / "sessions"


def enter_workspace(places: Places) -> None:
    if places.workspace is not None:
        try:
            os.chdir(places.workspace)
        except OSError as error:
            raise click.UsageError(f"--workspace {places.workspace}: {error.strerror}") from error


def agent_of(app: AgentApplication, agent: str | None) -> str:
    """The agent that was named, or the only sensible one."""
    return known_agent(app.agents(), agent)


def known_agent(known: Sequence[str], agent: str | None) -> str:
    """One of those there are; without a name the one called `default`, else the first."""
    if agent is None:
        return "default" if "default" in known else known[0]
    if agent not in known:
        raise click.UsageError(f"there is no agent '{agent}'; known: {', '.join(known)}")
    return agent
