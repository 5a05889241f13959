"""Installing Python projects into a folder, with uv or pip, and without a network where policy wants none."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.core.problems import Problem
from toolyard.process.child import ChildRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.settings import PluginPolicy
    from toolyard.plugins.acquire.build import Builders


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
        return Installer(name=self.name, argv=(sys.executable, "-c", RUN_FROM, str(folder), "install"))


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What to install where; the projects are folders of ours, which building may write to."""

    projects: Sequence[Path]
    target: Path
    work: Path
    """A folder for whatever building leaves behind."""
    pip_cache: Path
    policy: PluginPolicy


def has_packaging(folder: str | Path) -> bool:
    """Whether a folder says how to install it."""
    if any(os.path.exists(os.path.join(folder, name)) for name in ("setup.py", "setup.cfg")):
        return True
    pyproject = read_pyproject(folder)
    return "project" in pyproject or "build-system" in pyproject or "poetry" in pyproject.get("tool", {})


def find_installer(*, for_pip_args: bool) -> Installer | Problem:
    """uv, or else pip; the other way round where there are arguments, which are meant for pip."""
    uv, pip = uv_installer(), pip_installer()
    hint = "install uv, or pip: python -m ensurepip"
    none = Problem(code="plugin_installer_missing", message="there is neither uv nor pip", hint=hint)
    return (pip or uv or none) if for_pip_args else (uv or pip or none)


def pip_installer() -> Installer | None:
    if importlib.util.find_spec("pip"):
        return Installer(name="pip", argv=(sys.executable, "-m", "pip", "install"))
    wheel = bundled_pip()
    return Installer(name="pip", argv=(), wheel=wheel) if wheel else None


def uv_installer() -> Installer | None:
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    program = beside if os.access(beside, os.X_OK) else shutil.which("uv")
    argv = (program, "pip", "install", "--python", sys.executable) if program else ()
    return Installer(name="uv", argv=argv) if program else None


def bundled_pip() -> Path | None:
    """The wheel from which `ensurepip` installs; some distributions leave it out."""
    found = importlib.util.find_spec("ensurepip")
    folder = Path(found.origin).parent / "_bundled" if found and found.origin else None
    return next(iter(sorted(folder.glob("pip-*.whl"))), None) if folder else None


async def install_projects(wanted: Installation, installer: Installer, builders: Builders) -> Problem | None:
    """Install; the refusal says why not, in the installer's last words."""
    (wanted.work / "home").mkdir(parents=True, exist_ok=True)
    (wanted.work / "tmp").mkdir(exist_ok=True)
    policy = wanted.policy
    request = ChildRequest(
        argv=[*installer.argv, *options(wanted, installer), *policy.pip_args, "--", *map(str, wanted.projects)],
        cwd=wanted.work,
        env=installer_environment(policy),
        extra_env=variables(wanted),
        timeout=policy.install_timeout_seconds,
        # With dependencies there may be libraries of any size; without, nothing grows beyond the project itself.
        limits=Limits(file_bytes=None if policy.install_deps else policy.install_max_bytes),
    )
    outcome = await builders.run(request, wanted.target.parent, downloads=wanted.pip_cache)
    if outcome.timed_out:
        message = f"{installer.name} did not finish within {policy.install_timeout_seconds:g} seconds"
        hint = "raise plugin_policy.install_timeout_seconds"
        return Problem(code="plugin_install_failed", message=message, hint=hint)
    if outcome.exit_code:
        reason = shortened(outcome.stderr.text or outcome.stdout.text)
        message = f"{installer.name} could not install it: {reason}"
        return Problem(code="plugin_install_failed", message=message, hint=hint_for(policy))
    return None


def options(wanted: Installation, installer: Installer) -> list[str]:
    policy = wanted.policy
    chosen = ["--target", str(wanted.target), "--cache-dir", str(wanted.pip_cache), "--quiet"]
    if not policy.install_deps:
        chosen.append("--no-deps")
    if not policy.allow_remote:
        chosen.append("--offline" if installer.name == "uv" else "--no-index")
        if all(map(can_build_here, wanted.projects)):
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
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            import tomllib

            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def installer_environment(policy: PluginPolicy) -> dict[bytes, bytes]:
    return ParentEnvironment(passed=policy.pass_env).current()


def variables(wanted: Installation) -> dict[str, str]:
    """A place for temporary files that goes with the installation.

    What builds without a network needs nothing of the user's home folder, and gets an empty one.
    """
    chosen = {"TMPDIR": str(wanted.work / "tmp"), "PIP_REQUIRE_VIRTUALENV": "0"}
    if not wanted.policy.allow_remote:
        chosen |= {"HOME": str(wanted.work / "home"), "UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}
    return chosen


def hint_for(policy: PluginPolicy) -> str:
    if policy.allow_remote:
        return "install it by hand to see more: pip install --target /tmp/try FOLDER"
    return (
        "plugin_policy.allow_remote is false, so nothing was downloaded; allow it, or name a folder of wheels: "
        '"pip_args": ["--find-links", "DIR"]'
    )


def shortened(text: str) -> str:
    """The last words of an installer, which say what went wrong."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))
    ]
    joined = " ".join(lines)
    return joined if len(joined) <= LONGEST_REASON else "…" + joined[-LONGEST_REASON:]
