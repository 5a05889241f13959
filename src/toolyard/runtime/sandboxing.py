"""From a configuration to the sandbox of an application's tools."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem
from toolyard.process.sandbox import Sandbox, SandboxPolicy
from toolyard.process.sandbox_backends import BACKENDS
from toolyard.process.sandbox_layout import Places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import Json

__all__ = ["sandbox_for", "sandbox_problems"]

PACKAGE = Path(__file__).parent.parent
REFERENCE = re.compile(r"(?:\w+:)?([^#]+)")
"""A path in an entry of `plugins`, with what may stand before and after it."""
OF_THE_STORE = ("audit", "audit.head", "outputs", "shell-history")


def sandbox_for(configuration: Configuration, *, sessions: Path, cache: Path, cwd: str) -> Sandbox | None:
    """What keeps the tools in; None when the configuration says that nothing shall."""
    settings = configuration.sandbox
    if settings.mode == "off":
        return None
    policy = SandboxPolicy(
        mode=settings.mode,
        properties=tuple(settings.properties),
        network=settings.network,
        hosts=tuple(settings.hosts),
        unix_sockets=settings.unix_sockets,
        backends=BACKENDS if sys.platform == "linux" else (),
    )
    return Sandbox(policy, places_for(configuration, sessions, cache, cwd))


def sandbox_problems(configuration: Configuration) -> list[ConfigProblem]:
    """What is wrong with the section, beyond the kinds of its values."""
    if not configuration.sandbox.hosts:
        return []
    from toolyard.process.proxy_hosts import bad_entries

    hint = "a host is written example.com, *.example.com or example.com:8443"
    where = configuration.document.position(("sandbox", "hosts"))
    return [
        ConfigProblem(code="sandbox_host", message=f"'sandbox.hosts': '{text}' is no host", hint=hint, where=where)
        for text in bad_entries(configuration.sandbox.hosts)
    ]


def places_for(configuration: Configuration, sessions: Path, cache: Path, cwd: str) -> Places:
    folder = configuration.document.path.parent
    settings = configuration.sandbox
    workspace = [cwd, *working_directories(configuration.value, cwd), *project_of(folder)]
    return Places(
        home=os.path.expanduser("~"),
        workspace=workspace,
        protected=[*store_parts(sessions, workspace), str(configuration.document.path), *user_folders(), str(cache)],
        readable=[str(folder), str(cache), str(sessions), *plugin_paths(configuration.value.get("plugins"), folder)],
        also_readable=absolute(settings.readable, folder),
        also_writable=absolute(settings.writable, folder),
        also_hidden=absolute(settings.hidden, folder),
    )


def project_of(folder: Path) -> list[str]:
    """The folder of a project's configuration is part of the workspace; that of the user's own is not."""
    ours = [Path(name) for name in user_folders()] + [PACKAGE]
    return [] if any(folder == one or one in folder.parents for one in ours) else [str(folder)]


def user_folders() -> list[str]:
    """Where the user's own configuration, grants, state and caches are."""
    bases = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state", "XDG_DATA_HOME": ".local/share"}
    home = os.path.expanduser("~")
    return [os.path.join(os.environ.get(name) or os.path.join(home, base), "toolyard") for name, base in bases.items()]


def store_parts(sessions: Path, workspace: list[str]) -> list[str]:
    """The store, or what of it must be protected when somebody works in it."""
    real = os.path.realpath(sessions)
    if any(os.path.realpath(place) == real for place in workspace):
        (sessions / "audit").mkdir(parents=True, exist_ok=True)
        (sessions / "audit.head").touch(0o600)
        return [str(sessions / name) for name in OF_THE_STORE if (sessions / name).exists()]
    return [str(sessions)]


def working_directories(value: Json, cwd: str) -> Iterator[str]:
    """The directories that tools start in, of every agent."""
    match value:
        case dict():
            for key, item in value.items():
                if key == "working_directory" and isinstance(item, str) and item:
                    yield os.path.join(cwd, item)
                elif key in ("agents", "providers") or isinstance(item, dict):
                    yield from working_directories(item, cwd)


def plugin_paths(value: Json, folder: Path) -> Iterator[str]:
    """Whatever in the entries of `plugins` names something that exists elsewhere: tools must be seen where they run."""
    match value:
        case dict() | list():
            for item in value.values() if isinstance(value, dict) else value:
                yield from plugin_paths(item, folder)
        case str() if found := REFERENCE.match(value):
            path = os.path.normpath(os.path.join(folder, os.path.expanduser(found[1])))
            if path.startswith(f"{folder}{os.sep}"):
                return
            if os.path.isdir(path):
                yield path
            elif os.path.isfile(path):
                yield from (os.path.dirname(path), path)


def absolute(paths: list[str], folder: Path) -> list[str]:
    return [os.path.abspath(os.path.join(folder, os.path.expanduser(path))) for path in paths]
