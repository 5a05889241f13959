"""From a configuration to the sandbox of an application's tools."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.config.settings import SandboxSettings
from toolyard.config.workspace import absolute, user_folders, workspace_of
from toolyard.core.problems import Problem
from toolyard.files.inside import is_inside
from toolyard.files.own.entering import enter, entered, open_within
from toolyard.files.own.ownership import known_below
from toolyard.files.own.sessions_folder import LOCKED_FILES, LOCKED_FOLDERS, OUTPUTS
from toolyard.files.user_folders import user_folder
from toolyard.plugins.acquire.build import BuildRunner
from toolyard.process.cgroups import can_end_groups
from toolyard.process.sandbox.draft import closed_above
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.packages.caches import cache_folder
from toolyard.process.sandbox.policy import BACKENDS, HIDING_BACKENDS, SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox
from toolyard.runtime.output_folders import output_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.reach import Kept
    from toolyard.files.own.sessions_folder import SessionsFolder
    from toolyard.plugins.kind import Reference
    from toolyard.process.common_folder import CommonFolder
    from toolyard.process.sandbox.policy import Backend


PYCACHE = "__pycache__"
"""An empty one has no effect, so that it can be guarded before there is any."""


class SandboxInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox is built from."""

    configuration: Configuration
    references: Sequence[Reference]
    """All that the configuration names, known before anything of it is run."""
    sessions: SessionsFolder
    stores: Sequence[str]
    """Our own folders of plugins and of what they are made of: to be read, never to be written."""
    cwd: str
    guessed: Sequence[str] = ()
    """What entries with a fault may mean, which will be obeyed once they are mended."""

    @property
    def folder(self) -> Path:
        """That of the configuration file, where its paths start."""
        return self.configuration.document.path.parent

    def workspace(self) -> list[str]:
        """The folders that tools work in."""
        return workspace_of(self.configuration.value, str(self.folder), self.cwd)

    def writable(self) -> list[str]:
        """All the folders that tools work in."""
        return [*self.workspace(), *absolute(self.configuration.sandbox.writable, self.folder)]

    def guarded(self) -> list[str]:
        """What will be obeyed outside, references and files; not what the configuration lets tools write by name."""
        return [root for root in self._roots() if os.path.exists(root) or closed_above(root) or self._is_made(root)]

    def unwanted(self) -> list[str]:
        """What references would obey if it came to be."""
        return [
            root for root in self._roots() if not (os.path.lexists(root) or closed_above(root) or self._is_made(root))
        ]

    def _is_made(self, root: str) -> bool:
        """Whether an empty one is made in its place: it has no effect, or the configuration names it."""
        return os.path.basename(root) == PYCACHE or root in map(os.path.realpath, self.configuration.files)

    def _roots(self) -> list[str]:
        opened = [os.path.realpath(path) for path in absolute(self.configuration.sandbox.writable, self.folder)]
        named = [root for reference in self.references for root in (*reference.roots, *self._scripts_of(reference))]
        roots = {os.path.realpath(root) for root in (*self.configuration.files, *named, *self.guessed)}
        # In one order, whoever names them first: a sandbox is another one only when it keeps something else.
        return sorted(root for root in roots if not any(is_inside(root, one) for one in opened))

    def scripts(self) -> list[str]:
        """Those of all tools."""
        return sorted({os.path.realpath(path) for reference in self.references for path in self._scripts_of(reference)})

    def _scripts_of(self, reference: Reference) -> Iterator[str]:
        """Its scripts that are there; a folder that somebody works in cannot be kept from being written."""
        workspace = [os.path.realpath(path) for path in self.workspace()]
        for path in reference.scripts:
            if "\0" in path:  # which no file is called
                continue
            real = os.path.realpath(path)
            if os.path.exists(real) and not any(is_inside(one, real) for one in workspace):
                yield path


def damage(configuration: Configuration) -> str:
    """A section that cannot be read may have forbidden something; it is not taken for one that does not."""
    if not configuration.problems:
        return ""
    from toolyard.config.shape import first_fault

    section = configuration.value.get("sandbox", {})
    where = first_fault(section, SandboxSettings, ("sandbox",), configuration.document)
    return f"the configuration of the sandbox is damaged ({where})" if where else ""


def tools_sandbox(inputs: SandboxInputs, common: CommonFolder) -> Sandbox | None:
    """What keeps tools in that work; None when the configuration says that nothing shall."""
    policy = wanted_policy(inputs.configuration)
    return Sandbox(policy, sandbox_places(inputs), common) if policy else None


def how_kept(configuration: Configuration) -> Kept:
    """How well tools are kept in by what the configuration wants, without building it."""
    policy = wanted_policy(configuration)
    return Sandbox(policy, SandboxPaths(home="/", workspace=())).keeps if policy else "not"


def temporary_folders(configuration: Configuration, workspace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders for temporary files that tools would have for themselves, and what of others is seen in them."""
    policy = wanted_policy(configuration)
    paths = SandboxPaths(home=os.path.expanduser("~"), workspace=(workspace,))
    return Sandbox(policy, paths).temporary() if policy else ((), ())


def wanted_policy(configuration: Configuration) -> SandboxPolicy | None:
    """What the configuration wants of a sandbox; None when it wants none."""
    settings = configuration.sandbox
    policy = SandboxPolicy(
        damaged=damage(configuration),
        mode="require" if settings.mode == "require" else "auto",
        properties=tuple(settings.properties),
        network=settings.network,
        hosts=tuple(settings.hosts),
        proxy=True,
        unix_sockets=settings.unix_sockets,
        processes=settings.processes,
        backends=backends(settings),
    )
    return None if settings.mode == "off" and not policy.damaged else policy


def looking(tools: Sandbox, *, closed: bool = False) -> Sandbox:
    """What keeps tools in that may only look: the same to read, nothing to write, nobody to reach.

    A closed look has less to read: the workspace, and what programs need.
    """
    policy = replace(tools.policy, looking=True, closed=closed, network=False, hosts=(), unix_sockets=False)
    return Sandbox(policy, tools.paths, tools.common)


def backends(settings: SandboxSettings) -> tuple[Backend, ...]:
    """What may be tried, best first."""
    if sys.platform != "linux":
        return ()
    # Where there is no control group, only process numbers of their own let the kernel end all of them at once.
    return HIDING_BACKENDS if settings.hide_processes or not can_end_groups() else BACKENDS


def build_runner(tools: Sandbox | None, *, allow_remote: bool) -> BuildRunner:
    """Who installs and builds plugins: what that runs reaches other machines only if that is allowed."""
    if tools is None:
        return BuildRunner()
    policy = replace(tools.policy, network=allow_remote, hosts=(), unix_sockets=False)
    # Nor with what tools left in their caches.
    places = replace(tools.paths, workspace=(), protected=(), also_writable=(), caches="")
    return BuildRunner(sandbox=(policy, places))


def sandbox_problems(inputs: SandboxInputs) -> list[Problem]:
    """What is wrong with the section, or with what it shall protect, beyond the kinds of its values."""
    return [*bad_hosts(inputs.configuration), *code_in_reach(inputs)]


def bad_hosts(configuration: Configuration) -> Iterator[Problem]:
    if not configuration.sandbox.hosts:
        return
    from toolyard.process.sandbox.network.hosts import invalid_hosts
    from toolyard.process.sandbox.packages.host_groups import GROUPS

    hint = f"a host is written example.com, *.example.com or example.com:8443; groups are {', '.join(GROUPS)}"
    where = configuration.document.position(("sandbox", "hosts"))
    for text in invalid_hosts(configuration.sandbox.hosts):
        message = f"'sandbox.hosts': '{text}' is no host"
        yield Problem(code="sandbox_host", message=message, hint=hint, where=where)


def code_in_reach(inputs: SandboxInputs) -> Iterator[Problem]:
    """A plugin that is the workspace itself cannot be kept from being written."""
    if inputs.configuration.sandbox.mode == "off":
        return
    roots = [os.path.realpath(path) for path in inputs.workspace()]
    for path in inputs.guarded():
        if any(is_inside(root, path) for root in roots):
            yield Problem(
                code="sandbox_code_in_reach",
                message=f"tools can write {path}, a plugin that runs in the application, outside of their sandbox",
                hint="start in another folder, or name the plugin's folder in sandbox.writable if that is meant",
                where=inputs.configuration.document.position(("plugins",)),
                severity="warning",
            )


def open_roots(inputs: SandboxInputs, sandbox: Sandbox) -> Iterator[Problem]:
    """Folders of the interpreter or of programs that tools could write: nothing that they run can be kept in."""
    for path in sandbox.layout.open_roots:
        yield Problem(
            code="sandbox_root_in_reach",
            message=f"tools could write {path}, from where programs or modules are run outside of their sandbox",
            hint="start in another folder, take it off PATH, or out of sandbox.writable; until then no tool is run",
            where=inputs.configuration.document.position(("sandbox",)),
        )


def sandbox_places(inputs: SandboxInputs) -> SandboxPaths:
    configuration, sessions, folder = inputs.configuration, inputs.sessions.path, inputs.folder
    settings = configuration.sandbox
    workspace = inputs.workspace()
    stores = Stores.of(inputs)
    file = [] if configuration.in_memory else [str(configuration.document.path)]
    ours = [*file, *user_folders(), *inputs.stores]
    return SandboxPaths(
        home=os.path.expanduser("~"),
        workspace=workspace,
        protected=[*stores.outputs, *ours, *inputs.guarded()],
        edited=inputs.scripts(),
        unseen=[str(user_folder("state")), *stores.unseen],
        shown=stores.shown,
        unwanted=inputs.unwanted(),
        caches=cache_folder(workspace),
        readable=[
            *(str(folder), str(sessions), *inputs.stores),
            *plugin_paths(inputs.references, folder),
        ],
        also_readable=absolute(settings.readable, folder),
        also_writable=absolute(settings.writable, folder),
        also_hidden=absolute(settings.hidden, folder),
    )


class Stores(msgspec.Struct, frozen=True, kw_only=True):
    """What sandboxes have to do with sessions folders: our own, and those of other applications in the workspace."""

    outputs: list[str] = msgspec.field(default_factory=list)
    unseen: list[str] = msgspec.field(default_factory=list)
    shown: list[str] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, inputs: SandboxInputs) -> Stores:
        own = inputs.sessions
        with contextlib.suppress(OSError):
            user_folder("state").mkdir(parents=True, exist_ok=True, mode=0o700)
        if own.refusal is None:
            with contextlib.suppress(OSError):
                os.close(enter(output_folder(own.path, inputs.cwd), make=True, mode=0o777))
                if is_worked_in(own.path, inputs):
                    make_locked_parts(own.path)
        found = cls()
        for folder in (own.path, *(Path(one) for one in known_below(inputs.writable()) if one != str(own.path))):
            found.add(folder, inputs)
        return found

    def add(self, sessions: Path, inputs: SandboxInputs) -> None:
        """It is hidden as a whole, or what of it is ours alone when somebody works in it; but for what is read on."""
        outputs = output_folder(sessions, inputs.cwd)
        self.outputs.append(str(sessions / OUTPUTS))
        if is_worked_in(sessions, inputs):
            self.unseen.extend(str(sessions / name) for name in (*LOCKED_FOLDERS, *LOCKED_FILES))
        else:
            self.unseen.append(str(sessions))
        with contextlib.suppress(OSError):  # it is not there, or somebody has put a link in its place
            os.close(enter(outputs))
            self.shown.append(str(outputs))


def is_worked_in(sessions: Path, inputs: SandboxInputs) -> bool:
    return any(os.path.realpath(place) == str(sessions) for place in inputs.workspace())


def make_locked_parts(sessions: Path) -> None:
    """What is ours alone is made, so that it can be hidden."""
    with entered(sessions) as folder:
        for name in LOCKED_FILES:
            with contextlib.suppress(FileExistsError):
                os.close(open_within(folder, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        for name in LOCKED_FOLDERS:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)


def plugin_paths(references: Sequence[Reference], folder: Path) -> Iterator[str]:
    """Whatever is referred to and lies elsewhere: tools must be seen where they run."""
    for path in sorted({os.path.normpath(path) for reference in references for path in reference.paths}):
        if is_inside(path, str(folder)):
            continue
        if os.path.isdir(path):
            yield path
        elif os.path.isfile(path):
            yield from (os.path.dirname(path), path)
