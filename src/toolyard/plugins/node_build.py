"""A Node package made ready: copied into the plugin cache, installed and built by policy, once for each content."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.problems import ConfigProblem, Position
from toolyard.errors import ProcessError
from toolyard.plugins.build_once import build_once
from toolyard.plugins.folder_content import copy_folder, links_outside
from toolyard.plugins.node_manager import build_steps, find_manager, needs_build, needs_install, needs_manager
from toolyard.process.child import ChildRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.node_workshop import NodeWorkshop
    from toolyard.plugins.node_manager import Manager, NodePolicy, Step
    from toolyard.plugins.node_package import PackageFacts
    from toolyard.plugins.node_reading import Reading

__all__ = ["is_ready_as_it_is", "make_ready", "ready_folder"]

STEP_SECONDS = 600
OUTPUT_LIMIT = 1 << 16
LAST_LINES = 12
QUIET = {
    "CI": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "YARN_NODE_LINKER": "node-modules",
}
"""Variables by which package managers ask nothing, and install to where Node looks."""


def is_ready_as_it_is(facts: PackageFacts, policy: NodePolicy) -> bool:
    """Whether the package can be used where it is, since there is nothing to install or to build."""
    return not needs_install(facts, policy) and not needs_build(facts, policy)


def ready_folder(reading: Reading, policy: NodePolicy, shop: NodeWorkshop) -> Path:
    """Where the package is, or will be, ready: another place for another content, policy or Node."""
    decided = json.dumps({**msgspec.structs.asdict(policy), "cache": ""}, sort_keys=True)
    parts = (reading.fingerprint, decided, shop.node.identity)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", reading.facts.name).strip("-.")[:60] or "package"
    return Path(policy.cache, "node", f"{name}-{key}")


async def make_ready(reading: Reading, policy: NodePolicy, shop: NodeWorkshop) -> Path | Sequence[ConfigProblem]:
    """Copy, install and build, unless that was done before; the folder, or why there is none."""
    target = ready_folder(reading, policy, shop)
    if outside := links_outside(reading.folder, reading.look):
        return [leads_outside(reading, name) for name in outside]
    manager = await manager_for(reading, policy, shop) if needs_manager(reading.facts, policy) else None
    if isinstance(manager, ConfigProblem):
        return [manager]
    steps = build_steps(reading.facts, policy, reading.look, manager)

    async def make(folder: Path) -> Sequence[ConfigProblem]:
        await asyncio.to_thread(copy_folder, reading.folder, reading.look, str(folder))
        if not needs_install(reading.facts, policy):
            link_installed(Path(reading.folder), folder)
        for step in steps:
            if problem := await take(step, folder, reading, shop):
                return [problem]
        return ()

    try:
        problems = await build_once(target, make)
    except OSError as error:
        return [unwritable(error, target.parent)]
    return problems or target


async def manager_for(reading: Reading, policy: NodePolicy, shop: NodeWorkshop) -> Manager | ConfigProblem:
    """The package manager; a yarn is asked which one it is."""
    manager = find_manager(reading.facts, policy, reading.look)
    if isinstance(manager, ConfigProblem) or manager.name != "yarn":
        return manager
    try:
        outcome = await shop.children.run(
            ChildRequest(
                argv=[*manager.program, "--version"],
                cwd=reading.folder,
                env=shop.environment.current(),
                extra_env=QUIET,
                timeout=STEP_SECONDS,
            )
        )
    except ProcessError:
        return manager
    return msgspec.structs.replace(manager, version=outcome.stdout.text.strip())


def link_installed(source: Path, copy: Path) -> None:
    """Where nothing may be installed, a build uses what is installed in the package itself."""
    installed = source / "node_modules"
    if installed.is_dir():
        (copy / "node_modules").symlink_to(installed, target_is_directory=True)


async def take(step: Step, folder: Path, reading: Reading, shop: NodeWorkshop) -> ConfigProblem | None:
    """Run one command in the copy."""
    programs = os.pathsep.join((str(folder / "node_modules" / ".bin"), os.environ.get("PATH", os.defpath)))
    request = ChildRequest(
        argv=step.argv,
        cwd=folder,
        env=shop.environment.current(),
        extra_env={**QUIET, "PATH": programs},
        timeout=STEP_SECONDS,
        output_limit=OUTPUT_LIMIT,
    )
    try:
        outcome = await shop.children.run(request)
    except ProcessError as error:
        return failed(step, reading, str(error))
    if outcome.timed_out:
        return failed(step, reading, f"did not finish within {STEP_SECONDS} seconds")
    if outcome.exit_code != 0:
        said = f"{outcome.stdout.text}\n{outcome.stderr.text}".strip().splitlines()[-LAST_LINES:]
        return failed(step, reading, "\n".join((f"exit code {outcome.exit_code}", *said)))
    return None


def failed(step: Step, reading: Reading, reason: str) -> ConfigProblem:
    key = "node_install_deps" if step.code == "node_install" else "node_build"
    return ConfigProblem(
        code=step.code,
        message=f"`{step.command}` failed: {reason}",
        hint=f'try it in {reading.folder}; "plugin_policy": {{"{key}": false}} leaves it out',
        where=Position(file=reading.facts.document.path),
    )


def leads_outside(reading: Reading, name: str) -> ConfigProblem:
    return ConfigProblem(
        code="plugin_outside",
        message=f"'{name}' is a link that leads outside the package",
        hint="a package that is installed or built holds only files of its own",
        where=Position(file=Path(reading.folder, name)),
    )


def unwritable(error: OSError, cache: Path) -> ConfigProblem:
    return ConfigProblem(
        code="plugin_cache",
        message=f"the plugin cache cannot be written: {error.strerror or error}",
        hint='name a folder that you may write to: "plugin_cache_dir": "./.plugin_cache"',
        where=Position(file=Path(error.filename) if isinstance(error.filename, str) else cache),
    )
