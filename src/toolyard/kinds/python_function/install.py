"""Installing Python projects into a folder, with uv or pip, and without a network where policy wants none."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.core.problems import Problem
from toolyard.files.door import LARGEST_CONFIGURATION, Door, FileRefused
from toolyard.files.removal import remove_tree
from toolyard.files.walk import copy, digest, scan, tree_problem
from toolyard.kinds.python_function.reference import pip_cache
from toolyard.kinds.python_function.settings import PythonSettings
from toolyard.plugins.acquire.cache import LAYOUT, fingerprint, read_record
from toolyard.process.child import ChildRequest
from toolyard.process.interpreter import find_program, safe_path
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.settings import PluginPolicy
    from toolyard.files.walk import Tree
    from toolyard.plugins.host import Host

log = logging.getLogger("toolyard.builds")
MOST_ATTEMPTS = 3
NOT_ACCEPTED = "plugin_not_accepted"
LONGEST_REASON = 600
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
RUN_FROM = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pip', run_name='__main__')"


class Installer(msgspec.Struct, frozen=True, kw_only=True):
    """A program that installs."""

    name: Literal["uv", "pip"]
    argv: tuple[str, ...]
    wheel: Path | None = None
    """pip as it comes with Python, for environments that were made without it; to be unpacked first."""

    def unpacked(self, folder: Path) -> Installer:
        """The same, from the folder that its wheel was unpacked into."""
        return Installer(name=self.name, argv=(sys.executable, "-P", "-c", RUN_FROM, str(folder), "install"))


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A Python project as it can be imported."""

    roots: Sequence[Path]
    """The folders to import from."""
    notes: Sequence[Problem] = ()


class Installation:
    """A project, with those beside it that it needs, on its way to folders that can be imported from."""

    def __init__(self, project: Path, beside: Sequence[Path], host: Host) -> None:
        self._projects = [project, *beside]
        self._host = host
        self._settings = host.settings(PythonSettings)
        self._trees: list[Tree] = []
        self._digests: list[str] = []

    async def run(self, name: str) -> Installed | Problem:
        """Look at the files, and take what was made of them before, or make it."""
        policy = self._host.policy
        if refused := await asyncio.to_thread(self._look):
            return refused
        key = fingerprint(LAYOUT, "python", str(self._projects[0]), self._digests, self._conditions())
        made = await self._host.plugin_cache.provide(name, key, self._make, patience=policy.install_timeout_seconds)
        if isinstance(made, Problem):
            return made
        record = read_record(made)
        if isinstance(record, Problem):
            return record
        notes = [Problem(**note) for note in record.get("notes", ())]
        return Installed(roots=list(import_roots(made, record["roots"])), notes=notes)

    def _look(self) -> Problem | None:
        self._trees = [scan(str(project)) for project in self._projects]
        for project, tree in zip(self._projects, self._trees, strict=True):
            if wrong := tree_problem(str(project), tree, most_bytes=self._host.policy.install_max_bytes):
                return wrong
        trees = zip(self._projects, self._trees, strict=True)
        try:
            self._digests = [digest(str(top), tree, only_accepted=True) for top, tree in trees]
        except (FileNotFoundError, FileRefused) as error:
            if isinstance(error, FileRefused) and error.errno == errno.EACCES:
                return error.problem(NOT_ACCEPTED)
            return changing(self._projects[0])
        except OSError as error:
            message = f"{error.filename} cannot be read: {error.strerror}"
            return Problem(code="plugin_unreadable", message=message, hint="check its permissions")
        return None

    def _conditions(self) -> list[Any]:
        """What decides, beside the files themselves, what comes of an installation."""
        project, settings = self._projects[0], self._settings
        if not has_packaging(project):
            return []
        chosen = [settings.install_deps, settings.pip_args, self._host.policy.allow_remote]
        return [sys.implementation.cache_tag, sys.platform, *chosen, can_build_here(project)]

    async def _make(self, folder: Path) -> dict[str, Any] | Problem:
        """Copy the projects exactly as they were looked at, and install the copies, or use them as they are."""
        copies = [folder / "source" / str(index) for index in range(len(self._projects))]
        for top, tree, copied, number in zip(self._projects, self._trees, copies, self._digests, strict=True):
            if not await asyncio.to_thread(copy_exactly, str(top), tree, copied, number):
                return changing(top)
        record: dict[str, Any] = {"source": str(self._projects[0]), "python": sys.version.split()[0]}
        as_they_are = record | {"with": "copy", "roots": [f"source/{copied.name}" for copied in copies]}
        return await self._install(folder, copies, as_they_are) if has_packaging(copies[0]) else as_they_are

    async def _install(self, folder: Path, copies: Sequence[Path], record: dict[str, Any]) -> dict[str, Any] | Problem:
        """Install the copies; what cannot be built here, and needs nothing else, is used as it is."""
        installer = await find_unpacked(self._host)
        if isinstance(installer, Problem):
            return installer
        packaged = [copied for copied in copies if has_packaging(copied)]
        work = folder / "work"
        for copied in packaged:  # building may write to them
            await asyncio.to_thread(shutil.copytree, copied, work / copied.name, symlinks=True)
        projects = [work / copied.name for copied in packaged]
        log.info("%s: installing it with %s", self._projects[0], installer.name)
        failed = await install_projects(projects, folder / "site", work, installer, self._host)
        await asyncio.to_thread(remove_tree, str(work))
        if failed is None:
            for copied in packaged:
                await asyncio.to_thread(remove_tree, str(copied))
            bare = [f"source/{copied.name}" for copied in copies if copied not in packaged]
            return record | {"with": installer.name, "roots": ["site", *bare]}
        if self._settings.install_deps or self._host.policy.allow_remote:
            return failed
        note = {
            "code": "plugin_used_as_it_is",
            "message": f"it could not be built and is used as its source tree is: {failed.message}",
            "hint": failed.hint,
            "severity": "warning",
        }
        return record | {"notes": [note]}


async def install(project: Path, *, name: str, beside: Sequence[Path], host: Host) -> Installed | Problem:
    """A Python project as importable folders, copied and installed once for each content and policy."""
    made: Installed | Problem = changing(project)
    for _ in range(MOST_ATTEMPTS):
        made = await Installation(project, beside, host).run(name)
        if isinstance(made, Installed) or made.code != "plugin_changing":
            break
    return made


def changing(project: Path) -> Problem:
    return Problem(code="plugin_changing", message=f"{project} is being written to")


def copy_exactly(root: str, tree: Tree, to: Path, number: str) -> bool:
    """Copy a tree that somebody may be writing to; False when the copy is not what was looked at."""
    try:
        copy(root, tree, to)
    except (FileNotFoundError, FileRefused):
        return False
    return digest(str(to), scan(str(to))) == number


def import_roots(folder: Path, names: Sequence[str]) -> Sequence[Path]:
    """The folders to import from; a source tree may keep its packages in `src`."""
    roots: list[Path] = []
    for name in names:
        root = folder / name
        source = root / "src"
        roots += [source, root] if name != "site" and source.is_dir() else [root]
    return roots


async def find_unpacked(host: Host) -> Installer | Problem:
    """What installs; the pip that comes with Python is unpacked once, since from its archive it is slow."""
    for_pip_args = bool(host.settings(PythonSettings).pip_args)
    installer = find_installer(host.configuration.door, for_pip_args=for_pip_args)
    if isinstance(installer, Problem) or installer.wheel is None:
        return installer
    wheel = installer.wheel

    async def make(folder: Path) -> dict[str, Any] | Problem:
        await asyncio.to_thread(shutil.unpack_archive, wheel, folder / "pip", "zip")
        return {"source": str(wheel)}

    key = fingerprint(LAYOUT, "pip", str(wheel))
    folder = await host.plugin_cache.provide("pip", key, make, patience=host.policy.install_timeout_seconds)
    return folder if isinstance(folder, Problem) else installer.unpacked(folder / "pip")


def has_packaging(folder: str | Path) -> bool:
    """Whether a folder says how to install it."""
    if any(os.path.exists(os.path.join(folder, name)) for name in ("setup.py", "setup.cfg")):
        return True
    pyproject = read_pyproject(folder)
    return "project" in pyproject or "build-system" in pyproject or "poetry" in pyproject.get("tool", {})


def find_installer(door: Door, *, for_pip_args: bool) -> Installer | Problem:
    """uv, or else pip; the other way round where there are arguments, which are meant for pip."""
    uv, pip = uv_installer(door), pip_installer()
    hint = "install uv, or pip: python -m ensurepip"
    none = Problem(code="plugin_installer_missing", message="there is neither uv nor pip", hint=hint)
    return (pip or uv or none) if for_pip_args else (uv or pip or none)


def pip_installer() -> Installer | None:
    if importlib.util.find_spec("pip"):
        return Installer(name="pip", argv=(sys.executable, "-P", "-m", "pip", "install"))
    wheel = bundled_pip()
    return Installer(name="pip", argv=(), wheel=wheel) if wheel else None


def uv_installer(door: Door) -> Installer | None:
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    program = beside if os.access(beside, os.X_OK) else find_program("uv", door)
    argv = (program, "pip", "install", "--python", sys.executable) if program else ()
    return Installer(name="uv", argv=argv) if program else None


def bundled_pip() -> Path | None:
    """The wheel from which `ensurepip` installs; some distributions leave it out."""
    found = importlib.util.find_spec("ensurepip")
    folder = Path(found.origin).parent / "_bundled" if found and found.origin else None
    return next(iter(sorted(folder.glob("pip-*.whl"))), None) if folder else None


async def install_projects(
    projects: Sequence[Path], target: Path, work: Path, installer: Installer, host: Host
) -> Problem | None:
    """Install folders of ours, which building may write to; the problem says why not, in the installer's last words."""
    (work / "home").mkdir(parents=True, exist_ok=True)
    (work / "tmp").mkdir(exist_ok=True)
    policy, settings = host.policy, host.settings(PythonSettings)
    downloads = pip_cache(settings.pip_cache_dir, host.plugin_cache.root, host.configuration.document.folder)
    chosen = ["--target", str(target), "--cache-dir", str(downloads), "--quiet"]
    chosen += options(projects, installer, settings, allow_remote=policy.allow_remote)
    if installer.name == "uv" and host.configuration.door.is_writable(str(work)):
        chosen.append("--no-config")  # else it takes one from any folder above, where tools may have put it
    request = ChildRequest(
        argv=[*installer.argv, *chosen, *settings.pip_args, "--", *map(str, projects)],
        cwd=work,
        env={name: value for name, value in host.runner.environment.current().items() if name != b"PYTHONPATH"},
        extra_env={"PATH": safe_path(host.configuration.door), **variables(work, allow_remote=policy.allow_remote)},
        timeout=policy.install_timeout_seconds,
        # With dependencies there may be libraries of any size; without, nothing grows beyond the project itself.
        limits=Limits(file_bytes=None if settings.install_deps else policy.install_max_bytes),
    )
    outcome = await host.processes.build.run(request, target.parent, downloads=downloads)
    if outcome.timed_out:
        message = f"{installer.name} did not finish within {policy.install_timeout_seconds:g} seconds"
        hint = "raise plugin_policy.install_timeout_seconds"
        return Problem(code="plugin_install_failed", message=message, hint=hint)
    if outcome.exit_code:
        reason = shortened(outcome.stderr.text or outcome.stdout.text)
        offline = "" if policy.allow_remote else "what it needs may not be downloaded (allow_remote is false), and "
        message = f"{offline}{installer.name} could not install it: {reason}"
        return Problem(code="plugin_install_failed", message=message, hint=hint_for(policy))
    return None


def options(
    projects: Sequence[Path], installer: Installer, settings: PythonSettings, *, allow_remote: bool
) -> list[str]:
    chosen = [] if settings.install_deps else ["--no-deps"]
    if not allow_remote:
        chosen.append("--offline" if installer.name == "uv" else "--no-index")
        if all(map(can_build_here, projects)):
            chosen.append("--no-build-isolation")
    if installer.name == "pip":
        chosen += ["--no-compile", "--no-input", "--disable-pip-version-check"]
    return chosen


def can_build_here(project: Path) -> bool:
    """Whether what builds a project is installed beside us: without a network it cannot be fetched for the occasion."""
    requirements = build_requirements(project)
    return bool(requirements) and all(map(is_installed, requirements))


def build_requirements(project: Path) -> list[str]:
    """The names of the packages that build a project."""
    system = read_pyproject(project).get("build-system")
    listed: Any = system.get("requires") or [] if isinstance(system, dict) else ["setuptools"]
    return [match[1] for each in listed if isinstance(each, str) and (match := REQUIREMENT.match(each))]


def is_installed(name: str) -> bool:
    import importlib.metadata

    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def read_pyproject(folder: str | Path) -> dict[str, Any]:
    try:
        content = Door.here().read(os.path.join(folder, "pyproject.toml"), largest=LARGEST_CONFIGURATION)
        import tomllib

        return tomllib.loads(content.text())
    except (OSError, ValueError):
        return {}


def variables(work: Path, *, allow_remote: bool) -> dict[str, str]:
    """A place for temporary files that goes with the installation.

    What builds without a network needs nothing of the user's home folder, and gets an empty one.
    """
    chosen = {"TMPDIR": str(work / "tmp"), "PIP_REQUIRE_VIRTUALENV": "0"}
    if not allow_remote:
        chosen |= {"HOME": str(work / "home"), "UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}
    return chosen


def hint_for(policy: PluginPolicy) -> str:
    if policy.allow_remote:
        return "install it by hand to see more: pip install --target /tmp/try FOLDER"
    return (
        'set "plugin_policy": {"allow_remote": true} to download it, or name a folder of wheels: '
        '"pip_args": ["--find-links", "DIR"]'
    )


def shortened(text: str) -> str:
    """The last words of an installer, which say what went wrong."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))
    ]
    joined = " ".join(lines)
    return joined if len(joined) <= LONGEST_REASON else "…" + joined[-LONGEST_REASON:]
