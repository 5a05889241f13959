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

from toolyard.core.problems import Position, Problem
from toolyard.errors import ProcessError
from toolyard.files.folder_content import copy_folder, links_outside
from toolyard.kinds.node_module.package_manager import (
    build_steps,
    find_manager,
    needs_build,
    needs_install,
    needs_manager,
)
from toolyard.plugins.acquire.build_once import build_once
from toolyard.process.child import ChildRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.node_module.package import PackageFacts
    from toolyard.kinds.node_module.package_manager import Manager, NodePolicy, Step
    from toolyard.kinds.node_module.reading import Reading
    from toolyard.kinds.node_module.workshop import NodeWorkshop
    from toolyard.plugins.acquire.build import Builders


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
OFFLINE = {"NPM_CONFIG_OFFLINE": "true", "YARN_ENABLE_NETWORK": "false", "COREPACK_ENABLE_NETWORK": "0"}
"""Variables by which they use what they have, and ask nobody for more."""


def own_folders(policy: NodePolicy) -> dict[str, str]:
    """Where package managers keep what they downloaded: beside the copies, since nothing else can be written."""
    folders = {
        name: os.path.join(policy.downloads, folder)
        for name, folder in (
            ("NPM_CONFIG_CACHE", "npm"),
            ("NPM_CONFIG_STORE_DIR", "pnpm"),
            ("YARN_CACHE_FOLDER", "yarn"),
            ("YARN_GLOBAL_FOLDER", "yarn-global"),
            ("COREPACK_HOME", "corepack"),
        )
    }
    return folders if policy.allow_remote else {**folders, **OFFLINE}


def is_ready_as_it_is(facts: PackageFacts, policy: NodePolicy) -> bool:
    """Whether the package can be used where it is, since there is nothing to install or to build."""
    return not needs_install(facts, policy) and not needs_build(facts, policy)


def ready_folder(reading: Reading, policy: NodePolicy, shop: NodeWorkshop) -> Path:
    """Where the package is, or will be, ready: another place for another content, policy or Node."""
    decided = json.dumps({**msgspec.structs.asdict(policy), "cache": "", "allow_remote": None}, sort_keys=True)
    parts = (reading.fingerprint, decided, shop.node.identity)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", reading.facts.name).strip("-.")[:60] or "package"
    return Path(policy.cache, "node", f"{name}-{key}")


async def make_ready(
    reading: Reading, policy: NodePolicy, shop: NodeWorkshop, builders: Builders
) -> Path | Sequence[Problem]:
    """Copy, install and build, unless that was done before; the folder, or why there is none."""
    target = ready_folder(reading, policy, shop)
    if outside := links_outside(reading.folder, reading.look):
        return [leads_outside(reading, name) for name in outside]
    build = Build(reading, policy, shop, builders)
    try:
        problems = await build_once(target, build.make)
    except OSError as error:
        return [unwritable(error, target.parent)]
    return problems or target


class Build(msgspec.Struct, frozen=True):
    """One package on its way to be ready."""

    reading: Reading
    policy: NodePolicy
    shop: NodeWorkshop
    builders: Builders

    async def make(self, folder: Path) -> Sequence[Problem]:
        """Fill a folder; what stood against it."""
        reading, policy = self.reading, self.policy
        manager = await self._manager(folder) if needs_manager(reading.facts, policy) else None
        if isinstance(manager, Problem):
            return [manager]
        await asyncio.to_thread(copy_folder, reading.folder, reading.look, str(folder))
        if not needs_install(reading.facts, policy):
            link_installed(Path(reading.folder), folder)
        for step in build_steps(reading.facts, policy, reading.look, manager):
            if problem := await self._take(step, folder):
                return [problem]
        return ()

    async def _manager(self, folder: Path) -> Manager | Problem:
        """The package manager; a yarn is asked which one it is."""
        manager = find_manager(self.reading.facts, self.policy, self.reading.look)
        if isinstance(manager, Problem) or manager.name != "yarn":
            return manager
        request = self._request([*manager.program, "--version"], self.reading.folder)
        try:
            outcome = await self.builders.run(request, folder, downloads=self.policy.downloads)
        except ProcessError:
            return manager
        return msgspec.structs.replace(manager, version=outcome.stdout.text.strip())

    async def _take(self, step: Step, folder: Path) -> Problem | None:
        """Run one command in the copy."""
        programs = os.pathsep.join((str(folder / "node_modules" / ".bin"), os.environ.get("PATH", os.defpath)))
        try:
            request = self._request(step.argv, folder, PATH=programs)
            outcome = await self.builders.run(request, folder, downloads=self.policy.downloads)
        except ProcessError as error:
            return self._failed(step, str(error))
        if outcome.timed_out:
            return self._failed(step, f"did not finish within {STEP_SECONDS} seconds")
        if outcome.exit_code != 0:
            said = f"{outcome.stdout.text}\n{outcome.stderr.text}".strip().splitlines()[-LAST_LINES:]
            return self._failed(step, "\n".join((f"exit code {outcome.exit_code}", *said)))
        return None

    def _request(self, argv: Sequence[str], cwd: str | Path, **variables: str) -> ChildRequest:
        return ChildRequest(
            argv=argv,
            cwd=cwd,
            env=self.shop.environment.current(),
            extra_env={**QUIET, **own_folders(self.policy), **variables},
            timeout=STEP_SECONDS,
            output_limit=OUTPUT_LIMIT,
        )

    def _failed(self, step: Step, reason: str) -> Problem:
        key = "node_install_deps" if step.code == "node_install" else "node_build"
        offline = step.code == "node_install" and not self.policy.allow_remote
        download = 'nothing was downloaded: that needs "plugin_policy": {"allow_remote": true}; ' if offline else ""
        return Problem(
            code=step.code,
            message=f"`{step.command}` failed: {reason}",
            hint=f'{download}try it in {self.reading.folder}; "plugin_policy": {{"{key}": false}} leaves it out',
            where=Position(file=self.reading.facts.document.path),
        )


def link_installed(source: Path, copy: Path) -> None:
    """Where nothing may be installed, a build uses what is installed in the package itself."""
    installed = source / "node_modules"
    if installed.is_dir():
        (copy / "node_modules").symlink_to(installed, target_is_directory=True)


def leads_outside(reading: Reading, name: str) -> Problem:
    return Problem(
        code="plugin_outside",
        message=f"'{name}' is a link that leads outside the package",
        hint="a package that is installed or built holds only files of its own",
        where=Position(file=Path(reading.folder, name)),
    )


def unwritable(error: OSError, cache: Path) -> Problem:
    return Problem(
        code="plugin_cache",
        message=f"the plugin cache cannot be written: {error.strerror or error}",
        hint='name a folder that you may write to: "plugin_cache_dir": "./.plugin_cache"',
        where=Position(file=Path(error.filename) if isinstance(error.filename, str) else cache),
    )
