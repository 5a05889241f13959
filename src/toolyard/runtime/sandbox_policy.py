"""From a configuration to the sandbox of an application's tools."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.config.settings import SandboxSettings
from toolyard.core.problems import Problem
from toolyard.plugins.acquire.build import Builders
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.policy import BACKENDS, HIDING_BACKENDS, SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import Json
    from toolyard.process.sandbox.policy import Backend


PACKAGE = Path(__file__).parent.parent
REFERENCE = re.compile(r"(?:\w+:)?([^#]+)")
"""A path in an entry of `plugins`, with what may stand before and after it."""
OF_THE_STORE = ("audit", "audit.head", "outputs", "shell-history")


class Surroundings(msgspec.Struct, frozen=True):
    """What a sandbox is built for."""

    configuration: Configuration
    sessions: Path
    cache: Path
    """The user's cache folder."""
    cwd: str

    @property
    def folder(self) -> Path:
        """That of the configuration file, where its paths start."""
        return self.configuration.document.path.parent

    @property
    def entries(self) -> list[Json]:
        """The plugins of all agents."""
        layers = [layer.value for agent in self.configuration.agents() for layer in self.configuration.layers(agent)]
        lists = {id(value): value for layer in layers if isinstance(value := layer.get("plugins"), list)}
        return [entry for value in lists.values() for entry in value]

    def workspace(self) -> list[str]:
        """The folders that tools work in."""
        named = working_directories(self.configuration.value, self.cwd)
        return [self.cwd, *named, *project_of(self.folder)]

    def installed(self) -> list[str]:
        """Where plugins are installed, and what was downloaded for that."""
        plugins = self.configuration.plugin_cache(self.cache)
        return [str(plugins), str(self.configuration.policy.pip_cache(plugins))]


def damage(configuration: Configuration) -> str:
    """A section that cannot be read may have forbidden something; it is not taken for one that does not."""
    if not configuration.problems:
        return ""
    from toolyard.config.shape import first_fault

    section = configuration.value.get("sandbox", {})
    where = first_fault(section, SandboxSettings, ("sandbox",), configuration.document)
    return f"the configuration of the sandbox is damaged ({where})" if where else ""


def tools_sandbox(around: Surroundings) -> Sandbox | None:
    """What keeps the tools in; None when the configuration says that nothing shall."""
    settings = around.configuration.sandbox
    policy = SandboxPolicy(
        damaged=damage(around.configuration),
        mode="require" if settings.mode == "require" else "auto",
        properties=tuple(settings.properties),
        network=settings.network,
        hosts=tuple(settings.hosts),
        unix_sockets=settings.unix_sockets,
        processes=settings.processes,
        backends=backends(settings),
    )
    return None if settings.mode == "off" and not policy.damaged else Sandbox(policy, places_for(around))


def backends(settings: SandboxSettings) -> tuple[Backend, ...]:
    """What may be tried, best first."""
    if sys.platform != "linux":
        return ()
    return HIDING_BACKENDS if settings.hide_processes else BACKENDS


def builders_beside(tools: Sandbox | None, *, allow_remote: bool) -> Builders:
    """Who installs and builds plugins: what that runs reaches other machines only if that is allowed."""
    if tools is None:
        return Builders()
    policy = replace(tools.policy, network=allow_remote, hosts=(), unix_sockets=False)
    places = replace(tools.paths, workspace=(), protected=(), also_writable=())
    return Builders(sandbox=(policy, places))


def sandbox_problems(around: Surroundings) -> list[Problem]:
    """What is wrong with the section, or with what it shall protect, beyond the kinds of its values."""
    return [*bad_hosts(around.configuration), *code_in_reach(around)]


def bad_hosts(configuration: Configuration) -> Iterator[Problem]:
    if not configuration.sandbox.hosts:
        return
    from toolyard.process.sandbox.hosts import invalid_hosts

    hint = "a host is written example.com, *.example.com or example.com:8443"
    where = configuration.document.position(("sandbox", "hosts"))
    for text in invalid_hosts(configuration.sandbox.hosts):
        message = f"'sandbox.hosts': '{text}' is no host"
        yield Problem(code="sandbox_host", message=message, hint=hint, where=where)


def code_in_reach(around: Surroundings) -> Iterator[Problem]:
    """A plugin that is the workspace itself cannot be kept from being written."""
    if around.configuration.sandbox.mode == "off":
        return
    roots = [os.path.realpath(path) for path in around.workspace()]
    for path in dict.fromkeys(code_to_guard(around)):
        if any(is_inside(root, path) for root in roots):
            yield Problem(
                code="sandbox_code_in_reach",
                message=f"tools can write {path}, a plugin that runs in the application, outside of their sandbox",
                hint="start in another folder, or name the plugin's folder in sandbox.writable if that is meant",
                where=around.configuration.document.position(("plugins",)),
                severity="warning",
            )


def places_for(around: Surroundings) -> SandboxPaths:
    configuration, sessions, folder = around.configuration, around.sessions, around.folder
    settings = configuration.sandbox
    workspace = around.workspace()
    ours = [str(configuration.document.path), *user_folders(), str(around.cache), *around.installed()]
    return SandboxPaths(
        home=os.path.expanduser("~"),
        workspace=workspace,
        protected=[*store_parts(sessions, workspace), *ours, *code_to_guard(around)],
        readable=[
            *(str(folder), str(around.cache), str(sessions), *around.installed()),
            *plugin_paths(around.entries, folder),
        ],
        also_readable=absolute(settings.readable, folder),
        also_writable=absolute(settings.writable, folder),
        also_hidden=absolute(settings.hidden, folder),
    )


def code_paths(around: Surroundings) -> Iterator[str]:
    """Where Python plugins are on this machine: they run in the application itself, outside of every sandbox."""
    for entry in around.entries:
        match entry:
            case str() if entry.startswith("path:"):
                name = entry.removeprefix("path:")
            case str() if entry.startswith("git+"):
                name = entry.removeprefix("git+").partition("#")[0].removeprefix("file://")
            case {"path": str(name)}:
                pass
            case {"git": str(name)}:
                name = name.removeprefix("file://")
            case _:
                continue
        path = os.path.realpath(os.path.join(around.folder, os.path.expanduser(name)))
        if name and os.path.exists(path):
            yield path


def code_to_guard(around: Surroundings) -> list[str]:
    """Those that a tool must not write; not those that the configuration lets it write by name."""
    opened = [os.path.realpath(path) for path in absolute(around.configuration.sandbox.writable, around.folder)]
    return [path for path in code_paths(around) if not any(is_inside(path, one) for one in opened)]


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


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
        for folder in ("audit", "outputs"):
            (sessions / folder).mkdir(parents=True, exist_ok=True)
        for file in ("audit.head", "shell-history"):
            (sessions / file).touch(0o600)
        return [str(sessions / name) for name in OF_THE_STORE]
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
