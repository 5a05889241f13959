"""A Node package or module as a source of tools: loaded again when it changes, its last good version kept meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.problems import Problem
from toolyard.kinds.node_module.build import is_ready_as_it_is, make_ready, ready_folder
from toolyard.kinds.node_module.listing import listing_cache, listing_key, open_hosts, read_listing
from toolyard.kinds.node_module.package import (
    NodePackage,
    Snapshot,
    main_file,
    nothing_there,
    problem_of,
    read,
    tree_now,
    with_exports,
)
from toolyard.kinds.node_module.reference import NodeFile, NodeFolder, NodeGit
from toolyard.kinds.node_module.settings import NodeModuleSettings
from toolyard.kinds.node_module.tool import NodeModuleTool
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.files.walk import Tree
    from toolyard.kinds.node_module.hosts import NodeHosts
    from toolyard.kinds.node_module.listing import NodeListing
    from toolyard.kinds.node_module.package import NodeFault
    from toolyard.plugins.host import Host

MANY_FILES = 500
"""Of a package with more, only so often is every file looked at again."""
LOOK_AGAIN = 1.0


class NodeSource:
    """One package or single module, followed through its changes."""

    def __init__(self, reference: NodeFile | NodeFolder | NodeGit, host: Host) -> None:
        self.reference = reference
        self._faults: list[Problem] = []
        """What is wrong with it as it is now."""
        self._notes: list[Problem] = []
        self._host = host
        self._settings = host.settings(NodeModuleSettings)
        self._here = None if isinstance(reference, NodeGit) else reference
        """What is on this machine; of a repository only when it was fetched."""
        self._look_again = False
        """Whether a repository may have moved on since it was fetched."""
        self._tools: list[NodeModuleTool] = []
        self._tree: Tree = {}
        """What was there when it was last loaded, or found to be faulty."""
        self._looked_at = 0.0
        self._hosts: NodeHosts | None = None
        self._retired: list[NodeHosts] = []
        self._loading: asyncio.Lock | None = None

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with it, and what was done otherwise than one might expect when it was fetched."""
        return [*self._faults, *self._notes]

    @property
    def file(self) -> Path:
        if self._here is not None:
            return main_file(self._here)
        return Path(self.reference.git.shown if isinstance(self.reference, NodeGit) else "")

    @property
    def conditions(self) -> object:
        host = self._host
        remote = (host.policy.allow_remote, host.policy.allowed_git_hosts)
        made_with = (host.processes.build, self._settings, host.plugin_cache.root, host.interpreter("node"))
        return (host.runner, *remote, *made_with)

    def adopt(self, newer: NodeSource) -> None:
        """A repository is looked at again after each reload."""
        self.reference, self._host = newer.reference, newer._host
        self._look_again = isinstance(newer.reference, NodeGit)

    def plugins(self) -> Sequence[Plugin]:
        """Each tool is a plugin of its own, on or off by itself."""
        return [
            Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool], config_keys=tool.listed.config_keys)
            for tool in self._tools
        ]

    def tools(self) -> Sequence[NodeModuleTool]:
        return self._tools

    def own_file(self, tool: NodeModuleTool) -> Path:
        """A tool's module in the author's own folder; the descriptor when it is only in a copy that was built."""
        module = self.file.parent / tool.entry
        return module if module.is_file() else self.file

    def is_current(self) -> bool:
        if not self._tree or self._here is None or self._look_again:
            return False
        now = time.monotonic()
        if len(self._tree) > MANY_FILES and now - self._looked_at < LOOK_AGAIN:
            return True
        self._looked_at = now
        return tree_now(self._here) == self._tree

    async def load(self, *, without_running: bool = False) -> bool:
        """Make it ready and ask its modules what they are, unless somebody just did."""
        if without_running:
            return self._load_known()
        self._loading = self._loading or asyncio.Lock()
        async with self._loading:
            here = None if self.is_current() else await self._fetched()
            snapshot = self._read(here) if here and not self.is_current() else None
            if snapshot is not None:
                package = self._package(snapshot) or await self._make_ready(snapshot)
                if package is not None:
                    await self._host.children("look").choose_sandbox()
                    listing, faults = await read_listing(package, self._host)
                    self._accept(snapshot, package, listing, faults)
        return True

    def _load_known(self) -> bool:
        """Load it if it is ready and its tools are known by its content; True also when there is nothing to load."""
        if self._here is None or self._look_again:
            return False
        snapshot = self._read(self._here)
        if snapshot is None:
            return True
        package = self._package(snapshot)
        listing = listing_cache(self._host).get(listing_key(package, self._host)) if package else None
        if package is None or listing is None:
            return False
        self._accept(snapshot, package, listing, [])
        return True

    async def aclose(self) -> None:
        self._retire_hosts()
        retired, self._retired = self._retired, []
        await asyncio.gather(*(hosts.aclose() for hosts in retired))

    async def _fetched(self) -> NodeFile | NodeFolder | None:
        """What is here, a repository fetched first; a problem says why there is none."""
        wanted = self.reference
        if isinstance(wanted, NodeGit) and (self._here is None or self._look_again):
            found = await self._host.fetcher.fetch_folder(wanted.git, wanted.subdirectory)
            self._look_again = False
            if isinstance(found, Problem):
                last = "; the last good version stays in use" if self._tools else ""
                self._faults = [replace(found, message=found.message + last, where=wanted.at.position())]
            else:
                what = {"id": wanted.id, "entry": wanted.entry, "export": wanted.export}
                self._notes = [note.at(wanted.at.position()) for note in found.notes]
                self._here = NodeFolder(folder=str(found.folder), at=wanted.at, **what)
        return self._here

    def _read(self, here: NodeFile | NodeFolder) -> Snapshot | None:
        """What is there now. When that is nothing to go on with, a problem says why, and what worked stays."""
        tree = tree_now(here)
        if not tree:
            self._tree, self._tools = {}, []
            self._retire_hosts()
            self._faults = [nothing_there(here)]
            return None
        snapshot, self._faults = read(here, tree)
        if snapshot is None:
            self._tree = tree
        return snapshot

    def _package(self, snapshot: Snapshot) -> NodePackage | None:
        """The package where it is, or its copy if that is ready."""
        if is_ready_as_it_is(snapshot.facts, self._settings):
            return package_in(snapshot.folder, snapshot)
        folder = ready_folder(snapshot, self._host)
        return package_in(str(folder), snapshot) if folder else None

    async def _make_ready(self, snapshot: Snapshot) -> NodePackage | None:
        ready = await make_ready(snapshot, self._host)
        if isinstance(ready, Path):
            return package_in(str(ready), snapshot)
        self._tree, self._faults = snapshot.tree, [*self._faults, *ready]
        return None

    def _accept(
        self, snapshot: Snapshot, package: NodePackage, listing: NodeListing, faults: Sequence[NodeFault]
    ) -> None:
        """These are the tools now, unless they are the ones there were; what worked stays where nothing works."""
        self._tree = snapshot.tree
        self._faults = [*self._faults, *(problem_of(fault, snapshot, package) for fault in faults)]
        package = with_exports(package, [tool.id for tool in listing.tools])
        same = self._hosts is not None and self._hosts.package == package and bool(self._tools)
        if not listing.tools or (same and not faults):
            return
        self._retire_hosts()
        hosts = self._hosts = open_hosts(self._host, package)
        declared = {tool.id: tool for tool in package.tools}
        self._tools = [NodeModuleTool(listed=tool, declared=declared[tool.id], hosts=hosts) for tool in listing.tools]

    def _retire_hosts(self) -> None:
        """Let calls under way come to their end, and take no more in these hosts."""
        hosts, self._hosts = self._hosts, None
        if hosts:
            hosts.retire()
            self._retired = [each for each in (*self._retired, hosts) if each.running]


def package_in(folder: str, snapshot: Snapshot) -> NodePackage:
    """The package in its own folder, or in that of a copy, whose name says by what it was made ready."""
    as_it_is = folder == snapshot.folder
    content = snapshot.fingerprint if as_it_is else Path(folder).parent.name
    return NodePackage(root=folder, tools=snapshot.facts.tools, fingerprint=content)
