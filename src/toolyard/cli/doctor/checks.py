"""What the doctor looks at; each check gives rows and changes nothing."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.cli.render import count, relative
from toolyard.config.layers import mapping
from toolyard.config.placeholders import ENV
from toolyard.core.reach import NAMED_REACHES, REACH_DESCRIPTIONS
from toolyard.core.sandbox_properties import PROPERTY_DESCRIPTIONS
from toolyard.errors import ProcessError
from toolyard.process.child import Children, ChildRequest
from toolyard.process.environment import ParentEnvironment, looks_like_credential
from toolyard.process.interpreter import find_program, safe_path, why_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.problems import Problem
    from toolyard.core.reach import Kept
    from toolyard.core.sandbox_properties import SandboxProperty
    from toolyard.process.sandbox.policy import SandboxReport


VERSION_TIMEOUT = 20.0
VERSION = re.compile(r"\d+(?:\.\d+)+")
INSTALLERS = {
    "apt-get": "sudo apt-get install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "apk": "sudo apk add",
    "brew": "brew install",
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    status: Literal["ok", "warning", "failure"]
    detail: str
    hint: str = ""
    """What to type next."""


class RequiredProgram(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    program: str
    purpose: str
    package: str
    least: tuple[int, ...] = ()
    without: Literal["warning", "failure"] = "warning"


PROGRAMS = (
    RequiredProgram(
        check="bash",
        program="bash",
        purpose="every bash tool and shell",
        package="bash",
        least=(4, 4),
        without="failure",
    ),
    RequiredProgram(check="git", program="git", purpose="plugins from git", package="git"),
    RequiredProgram(check="node", program="node", purpose="Node tools", package="nodejs", least=(20,)),
    RequiredProgram(check="npm", program="npm", purpose="installing Node tools", package="npm"),
    RequiredProgram(check="uv", program="uv", purpose="installing Python plugins fast; pip does it too", package="uv"),
    RequiredProgram(check="bubblewrap", program="bwrap", purpose="the strongest sandbox", package="bubblewrap"),
)


async def check_programs() -> list[Row]:
    """Python itself, and the programs on PATH with their versions."""
    python = Row(check="python", status="ok", detail=f"{platform.python_version()} ({sys.executable})")
    children = Children()
    try:
        return [python, *await asyncio.gather(*(check_program(program, children) for program in PROGRAMS))]
    finally:
        await children.aclose()


async def check_program(wanted: RequiredProgram, children: Children) -> Row:
    path = which(wanted.program)
    if path is None:
        detail = f"{why_missing(wanted.program)}; needed for {wanted.purpose}"
        return Row(check=wanted.check, status=wanted.without, detail=detail, hint=install_hint(wanted.package))
    version = await version_of(path, children)
    if version is None:
        detail, hint = f"{path} does not tell its version", f"{wanted.program} --version"
        return Row(check=wanted.check, status="warning", detail=detail, hint=hint)
    if tuple(map(int, version.split("."))) < wanted.least:
        detail = f"{version} ({path}); at least {'.'.join(map(str, wanted.least))} is needed for {wanted.purpose}"
        return Row(check=wanted.check, status=wanted.without, detail=detail, hint=install_hint(wanted.package))
    return Row(check=wanted.check, status="ok", detail=f"{version} ({path})")


async def version_of(path: str, children: Children) -> str | None:
    environment = ParentEnvironment().with_extra({"PATH": safe_path()})
    request = ChildRequest(argv=[path, "--version"], cwd="/", env=environment, timeout=VERSION_TIMEOUT)
    try:
        outcome = await children.run(request)
    except ProcessError:
        return None
    found = VERSION.search(outcome.stdout.text)
    return found[0] if found and outcome.exit_code == 0 else None


def which(program: str) -> str | None:
    """The absolute path of a program, as the application would find it."""
    return find_program(program, or_ours=program not in ("git", "bwrap"))


def install_hint(package: str) -> str:
    if package == "uv":
        return f"{sys.executable} -m pip install uv"
    installer = next((words for name, words in INSTALLERS.items() if shutil.which(name)), "install")
    return f"{installer} {package}"


def check_sandbox(report: SandboxReport | None) -> Iterator[Row]:
    """The sandbox, then each of its properties; whether one holds was tried out, not looked up."""
    if report is None:
        hint = "toolyard config explain sandbox.mode"
        yield Row(check="sandbox", status="warning", detail="off: nothing keeps tools in", hint=hint)
        yield from preset_rows("not", ())
        return
    yield sandbox_row(report)
    yield from reach_rows(report)
    yield from preset_rows(report.keeps, report.lacking)
    for name in report.properties if report.backend else ():
        yield property_row(name, report)
    for path in report.unguarded:
        yield Row(check="sandbox protected", status="warning", detail=f"{path} cannot be protected, it can be written")
    if report.closed:
        which = f"{report.closed[0]} and {len(report.closed) - 1} others" if report.closed[1:] else report.closed[0]
        detail = f"cannot be read inside, since there is too much to look for files that are root's alone: {which}"
        yield Row(check="sandbox secrets", status="warning", detail=detail)


def sandbox_row(report: SandboxReport) -> Row:
    reasons = "; ".join(f"{backend}: {reason}" for backend, reason in report.passed_over.items())
    if report.refusal:
        return Row(check="sandbox", status="failure", detail=report.refusal, hint=sandbox_hint())
    if report.backend is None:
        detail = f"none: nothing keeps tools in ({reasons or f'there is none for {sys.platform}'})"
        return Row(check="sandbox", status="warning", detail=detail, hint=sandbox_hint())
    passed = f" (passed over: {reasons})" if reasons else ""
    return Row(check="sandbox", status="ok", detail=f"{report.backend}{passed}")


def reach_rows(report: SandboxReport) -> Iterator[Row]:
    """What each reach means here, and what is left of the presets where nothing keeps it."""
    if report.backend is not None:
        for reach in NAMED_REACHES:
            yield Row(check=f"reach {reach}", status="ok", detail=REACH_DESCRIPTIONS[reach])
        return
    detail = "not kept: every call reaches everything that you do"
    yield Row(check="reach look, work", status="warning", detail=detail, hint=sandbox_hint())
    detail = "by its words alone: a command that looks runs unasked, and all else is asked about"
    yield Row(check="preset read-only", status="warning", detail=detail, hint=sandbox_hint())


def preset_rows(keeps: Kept, lacking: Sequence[SandboxProperty]) -> Iterator[Row]:
    """In three lines, what runs here unasked where no preset is named, and what is asked about."""
    if keeps == "wholly":
        preset = "sandboxed, where none is named: what stays inside runs unasked"
        unasked = "commands, scripts, tests and installs, which can change the workspace and temporary files alone"
        asked = "the reach outside, hosts that are not named, and what your rules ask about or deny"
    elif keeps == "partly":
        preset = f"workspace, where none is named: the sandbox does not keep {', '.join(lacking)}"
        unasked = 'commands that look or make files in the workspace; with "preset": "sandboxed", all that stay in'
        asked = "everything else, as scripts, tests and installs are, once permissions are configured"
    else:
        preset = "workspace, where none is named: nothing keeps in what runs"
        unasked = "commands that look; everything as long as no permissions are configured"
        asked = "everything else, once they are"
    status: Literal["ok", "warning"] = "ok" if keeps == "wholly" else "warning"
    for check, detail in (("preset", preset), ("unasked", unasked), ("asked about", asked)):
        yield Row(check=check, status=status, detail=detail, hint="" if keeps == "wholly" else sandbox_hint())


def property_row(name: SandboxProperty, report: SandboxReport) -> Row:
    check, meaning = f"sandbox {name}", PROPERTY_DESCRIPTIONS[name]
    if report.properties[name]:
        return Row(check=check, status="ok", detail=meaning)
    if name in report.opened:
        return Row(check=check, status="ok", detail=f"given up by the configuration: {meaning}")
    return Row(check=check, status="warning", detail=f"not kept: {meaning}", hint=sandbox_hint())


def sandbox_hint() -> str:
    if sys.platform != "linux":
        return "run tools on Linux, in a virtual machine or a container"
    return install_hint("bubblewrap") if which("bwrap") is None else "allow user namespaces: docs/security.md"


def check_configuration(problems: Sequence[Problem], configuration: Configuration) -> Iterator[Row]:
    """How many problems there are; `config check` tells them."""
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    file = relative(str(configuration.document.path))
    found = [count(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
    yield Row(
        check="configuration",
        status="failure" if errors else "warning" if warnings else "ok",
        detail=f"{file}: {', '.join(found) or 'no problems'}",
        hint="toolyard config check" if problems else "",
    )


def check_folders(configuration: Configuration, sessions: Path) -> Iterator[Row]:
    """Whether the folders of plugins, sessions and the audit log can be written."""
    from toolyard.files.own.ownership import real_place
    from toolyard.files.own.sessions_folder import SessionsFolder
    from toolyard.files.user_folders import user_folder

    yield check_folder("plugin cache", configuration.plugin_cache(user_folder("cache")), "change plugin_cache_dir")
    try:
        place = Path(real_place(str(sessions)))
        if place.exists():
            SessionsFolder(place).use()
    except OSError as error:
        hint = getattr(error, "hint", "") or "toolyard --sessions DIR …"
        yield Row(check="sessions", status="failure", detail=f"{sessions}: {error.strerror}", hint=hint)
        return
    for check, folder in (("sessions", place), ("audit log", place / "audit")):
        yield check_folder(check, folder, "toolyard --sessions DIR …")


def check_folder(check: str, folder: Path, hint: str) -> Row:
    """Whether a folder can be written to, or made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        return Row(check=check, status="failure", detail=f"{folder}: {existing} is not a folder", hint=hint)
    if not os.access(existing, os.W_OK | os.X_OK):
        hint = f"chmod u+rwx {existing}"
        return Row(check=check, status="failure", detail=f"{folder} cannot be written to", hint=hint)
    if existing != folder:
        return Row(check=check, status="ok", detail=f"{folder} (made when it is needed)")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Row(check=check, status="ok", detail=str(folder))
    except OSError as error:
        detail = f"{folder} cannot be written to: {error.strerror}"
        return Row(check=check, status="failure", detail=detail, hint=hint)


def check_recovered_work() -> Iterator[Row]:
    """Commits from inside that could not be handed over to their repositories."""
    from toolyard.process.sandbox.git.outgoing.recovered import recovered_work

    for one in recovered_work():
        detail = f"{', '.join(one.refs)} of {one.git} could not be handed over; kept in {one.place}"
        yield Row(check="git from inside", status="warning", detail=detail, hint=one.command)


def check_provider_keys(configuration: Configuration) -> Iterator[Row]:
    """Whether providers have their keys. A key's value is never looked at but for being there."""
    providers = mapping(configuration.value.get("providers"))
    written = mapping(mapping(configuration.document.value).get("providers"))
    if not providers:
        yield Row(check="providers", status="ok", detail="none are configured")
    for name, provider in providers.items():
        for key, value in mapping(provider).items():
            if isinstance(value, str) and looks_like_credential(key):
                yield check_key(f"providers.{name}.{key}", value, mapping(written.get(name)).get(key))


def check_key(key: str, value: str, written: object) -> Row:
    if value.strip():
        return Row(check=key, status="ok", detail="is set")
    names = ENV.findall(written) if isinstance(written, str) else []
    hint = f"export {names[0]}=…" if names else f"toolyard config explain {key}"
    return Row(check=key, status="warning", detail="is empty", hint=hint)
