"""A Node package made ready: copied into the plugin cache, installed and built by policy, once for each content."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.problems import Position, Problem
from toolyard.errors import ProcessError
from toolyard.files.removal import remove_tree
from toolyard.files.walk import copy, links_outside
from toolyard.kinds.node_module.package_manager import (
    build_steps,
    find_manager,
    needs_build,
    needs_install,
    needs_manager,
)
from toolyard.kinds.node_module.settings import NodeModuleSettings
from toolyard.plugins.acquire.cache import LAYOUT, fingerprint
from toolyard.process.child import ChildRequest
from toolyard.process.interpreter import safe_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.node_module.package import PackageFacts, Snapshot
    from toolyard.kinds.node_module.package_manager import BuildStep, Manager
    from toolyard.plugins.host import Host
    from toolyard.process.child import ChildOutcome

log = logging.getLogger("toolyard.builds")
COPY = "package"
"""In a folder of the cache, the one with the package."""
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
UNSIGNED = ("No compatible signature found", "Cannot find matching keyid")
"""What corepack says of a package manager that its registry has not signed, or with a key that it does not know."""
DISTRUSTED = "install the package manager itself, or a newer corepack, or set COREPACK_INTEGRITY_KEYS=0; or "
DOWNLOADS = {
    "NPM_CONFIG_CACHE": "npm",
    "NPM_CONFIG_STORE_DIR": "pnpm",
    "YARN_CACHE_FOLDER": "yarn",
    "YARN_GLOBAL_FOLDER": "yarn-global",
    "COREPACK_HOME": "corepack",
}
"""Variables that say where package managers keep what they downloaded."""


def is_ready_as_it_is(facts: PackageFacts, settings: NodeModuleSettings) -> bool:
    """Whether the package can be used where it is, since there is nothing to install or to build."""
    return not needs_install(facts, settings) and not needs_build(facts, settings)


def ready_folder(snapshot: Snapshot, host: Host) -> Path | None:
    """The copy of the package that is ready, if there is one."""
    folder = host.plugin_cache.find(snapshot.facts.name, ready_key(snapshot, host))
    return folder / COPY if folder else None


def ready_key(snapshot: Snapshot, host: Host) -> str:
    """Another copy for another content, policy or Node; how long tools may take has no part in it."""
    settings = msgspec.structs.replace(host.settings(NodeModuleSettings), node_timeout_seconds=1)
    return fingerprint(LAYOUT, "node", snapshot.fingerprint, settings, host.interpreter("node"))


async def make_ready(snapshot: Snapshot, host: Host) -> Path | Sequence[Problem]:
    """Copy, install and build, unless that was done before; the folder, or why there is none."""
    if outside := links_outside(snapshot.folder, snapshot.tree):
        return [leads_outside(snapshot, name) for name in outside]
    build = Build(snapshot, host)
    key, limit = ready_key(snapshot, host), host.policy.install_timeout_seconds
    made = await host.plugin_cache.provide(snapshot.facts.name, key, build.make, patience=limit)
    return [made] if isinstance(made, Problem) else made / COPY


class Build:
    """One package on its way to be ready."""

    def __init__(self, snapshot: Snapshot, host: Host) -> None:
        self._snapshot = snapshot
        self._host = host
        self._settings = host.settings(NodeModuleSettings)
        self._downloads = host.plugin_cache.root / ".downloads"
        """Where package managers keep what they downloaded: beside the copies, since nothing else can be written."""

    async def make(self, folder: Path) -> dict[str, Any] | Problem:
        """Fill a folder; what is recorded of it, or what stood against it."""
        snapshot, settings, copied = self._snapshot, self._settings, folder / COPY
        manager = await self._manager(folder) if needs_manager(snapshot.facts, settings) else None
        if isinstance(manager, Problem):
            return manager
        await asyncio.to_thread(copy, snapshot.folder, snapshot.tree, copied)
        if not needs_install(snapshot.facts, settings):
            link_installed(Path(snapshot.folder), copied)
        for step in build_steps(snapshot.facts, settings, snapshot.tree, manager):
            if problem := await self._take(step, copied):
                return problem
        return {"source": snapshot.folder}

    async def _manager(self, folder: Path) -> Manager | Problem:
        """The package manager; a yarn is asked which one it is."""
        manager = find_manager(self._snapshot.facts, self._settings, self._snapshot.tree)
        if isinstance(manager, Problem) or manager.name != "yarn":
            return manager
        try:
            outcome = await self._run([*manager.program, "--version"], folder, cwd=self._snapshot.folder)
        except ProcessError:
            return manager
        return msgspec.structs.replace(manager, version=outcome.stdout.text.strip())

    async def _take(self, step: BuildStep, folder: Path) -> Problem | None:
        log.info("%s: running %s", self._snapshot.folder, step.command)
        programs = os.pathsep.join((str(folder / "node_modules" / ".bin"), safe_path(self._host.configuration.door)))
        try:
            outcome = await self._run(step.argv, folder, cwd=folder, PATH=programs)
        except ProcessError as error:
            return self._failed(step, str(error))
        if outcome.timed_out:
            return self._failed(step, f"did not finish within {STEP_SECONDS} seconds")
        if outcome.exit_code != 0:
            said = f"{outcome.stdout.text}\n{outcome.stderr.text}".strip().splitlines()[-LAST_LINES:]
            return self._failed(step, "\n".join((f"exit code {outcome.exit_code}", *said)))
        return None

    async def _run(self, argv: Sequence[str], folder: Path, *, cwd: str | Path, **variables: str) -> ChildOutcome:
        """Run a program of a build, with a home of its own: what one package leaves in it no other obeys."""
        build = self._host.processes.build
        if not build.sandbox:
            return await build.run(self._request(argv, cwd, **variables), folder, downloads=self._downloads)
        # The owner's settings are hidden there, and the first yarn stops at what it may not read.
        self._downloads.mkdir(parents=True, exist_ok=True)
        home = tempfile.mkdtemp(prefix="home-", dir=self._downloads)
        try:
            request = self._request(argv, cwd, HOME=home, **variables)
            return await build.run(request, folder, downloads=self._downloads)
        finally:
            remove_tree(home)

    def _request(self, argv: Sequence[str], cwd: str | Path, **variables: str) -> ChildRequest:
        folders = {name: str(self._downloads / folder) for name, folder in DOWNLOADS.items()}
        offline = {} if self._host.policy.allow_remote else OFFLINE
        return ChildRequest(
            argv=argv,
            cwd=cwd,
            env=self._host.runner.environment.current(),
            extra_env={**QUIET, **folders, **offline, **variables},
            timeout=STEP_SECONDS,
            output_limit=OUTPUT_LIMIT,
        )

    def _failed(self, step: BuildStep, reason: str) -> Problem:
        key = "node_install_deps" if step.code == "node_install" else "node_build"
        offline = step.code == "node_install" and not self._host.policy.allow_remote
        why = "what it depends on may not be downloaded (allow_remote is false), and " if offline else ""
        first = 'set "plugin_policy": {"allow_remote": true} to download it; or ' if offline else ""
        first += DISTRUSTED if any(words in reason for words in UNSIGNED) else ""
        return Problem(
            code=step.code,
            message=f"{why}`{step.command}` failed: {reason}",
            hint=f'{first}try it in {self._snapshot.folder}; "plugin_policy": {{"{key}": false}} leaves it out',
            where=Position(file=self._snapshot.facts.document.path),
        )


def link_installed(source: Path, copy: Path) -> None:
    """Where nothing may be installed, a build uses what is installed in the package itself."""
    installed = source / "node_modules"
    if installed.is_dir():
        (copy / "node_modules").symlink_to(installed, target_is_directory=True)


def leads_outside(snapshot: Snapshot, name: str) -> Problem:
    return Problem(
        code="plugin_outside",
        message=f"'{name}' is a link that leads outside the package",
        hint="a package that is installed or built holds only files of its own",
        where=Position(file=Path(snapshot.folder, name)),
    )
