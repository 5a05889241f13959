"""A Node package or module as a source of tools: loaded again when it changes, its last good version kept meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Problem
from toolyard.kinds.node_module.build import is_ready_as_it_is, make_ready, ready_folder
from toolyard.kinds.node_module.hosts import NodeHosts
from toolyard.kinds.node_module.listing import listing_key, read_listing
from toolyard.kinds.node_module.reading import Reading, located, look_now, main_file, nothing_there, read
from toolyard.kinds.node_module.tool import NodeModuleTool
from toolyard.kinds.node_module.workshop import NodePackage
from toolyard.plugins.source import Plugin
from toolyard.plugins.spec import NodeFile, NodeFolder, NodeGit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from toolyard.files.folder_content import Look
    from toolyard.kinds.node_module.listing import NodeFault, NodeListing
    from toolyard.kinds.node_module.package_manager import NodePolicy
    from toolyard.kinds.node_module.workshop import NodeWorkshop
    from toolyard.plugins.acquire.build import Builders


Fetch: TypeAlias = "Callable[[str, str | None, str | None], Awaitable[Path | Problem]]"
"""From a repository's address, reference and sub-folder to a folder that holds it, or why there is none."""

MANY_FILES = 500
"""Of a package with more, only so often is every file looked at again."""
LOOK_AGAIN = 1.0


class NodeShop(msgspec.Struct, frozen=True, kw_only=True):
    """Where packages are made ready and run; equal shops do it alike."""

    workshop: NodeWorkshop
    builders: Builders
    policy: NodePolicy


class NodeSource:
    """One package or single module, followed through its changes."""

    def __init__(self, spec: NodeFile | NodeFolder | NodeGit, shop: NodeShop, fetch: Fetch | None = None) -> None:
        self.key = spec
        self.conditions = shop
        self.problems: list[Problem] = []
        """What is wrong with it as it is now."""
        self._shop = shop.workshop
        self._policy = shop.policy
        self._fetch = fetch
        self._spec = None if isinstance(spec, NodeGit) else spec
        """What is here; of a repository only when it was fetched."""
        self._look_again = False
        """Whether a repository may have moved on since it was fetched."""
        self._tools: list[NodeModuleTool] = []
        self._look: Look = {}
        """What was there when it was last loaded, or found to be faulty."""
        self._looked_at = 0.0
        self._hosts: NodeHosts | None = None
        self._retired: list[NodeHosts] = []
        self._loading: asyncio.Lock | None = None

    @property
    def file(self) -> Path:
        """The module, or the descriptor of the package."""
        if self._spec is not None:
            return main_file(self._spec)
        return Path(self.key.git if isinstance(self.key, NodeGit) else "")

    def again(self, newer: NodeSource) -> NodeSource:
        """This source, in the place of the one that was made for a configuration that was read again."""
        self.key, self._fetch, self._look_again = newer.key, newer._fetch, isinstance(newer.key, NodeGit)
        return self

    def plugins(self) -> Sequence[Plugin]:
        """Each tool is a plugin of its own, on or off by itself."""
        return [
            Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool], config_keys=tool.listed.config_keys)
            for tool in self._tools
        ]

    def tools(self) -> Sequence[NodeModuleTool]:
        """The tools themselves."""
        return self._tools

    def own_file(self, tool: NodeModuleTool) -> Path:
        """A tool's module in the author's own folder; the descriptor when it is only in a copy that was built."""
        module = self.file.parent / tool.entry
        return module if module.is_file() else self.file

    def is_current(self) -> bool:
        """Whether every file is still what was read."""
        if not self._look or self._spec is None or self._look_again:
            return False
        now = time.monotonic()
        if len(self._look) > MANY_FILES and now - self._looked_at < LOOK_AGAIN:
            return True
        self._looked_at = now
        return look_now(self._spec) == self._look

    def load_known(self) -> bool:
        """Load it if it is ready and its tools are known by its content; tell whether, or there is nothing to load."""
        if self._spec is None or self._look_again:
            return False
        reading = self._read(self._spec)
        if reading is None:
            return True
        package = self._package(reading)
        listing = self._shop.cache.get(listing_key(package, self._shop)) if package else None
        if package is None or listing is None:
            return False
        self._accept(reading, package, listing, [])
        return True

    async def load(self) -> None:
        """Make it ready and ask its modules what they are, unless somebody just did."""
        self._loading = self._loading or asyncio.Lock()
        async with self._loading:
            spec = None if self.is_current() else await self._fetched()
            reading = self._read(spec) if spec and not self.is_current() else None
            if reading is None:
                return
            package = self._package(reading) or await self._make_ready(reading)
            if package is not None:
                listing, faults = await read_listing(package, self._shop)
                self._accept(reading, package, listing, faults)

    async def refresh(self) -> bool:
        """Load it again if it has changed; tell whether its tools did."""
        if self.is_current():
            return False
        before = self._tools
        if not self.load_known():
            await self.load()
        return self._tools is not before

    async def aclose(self) -> None:
        """End its processes."""
        self._retire_hosts()
        retired, self._retired = self._retired, []
        await asyncio.gather(*(hosts.aclose() for hosts in retired))

    async def _fetched(self) -> NodeFile | NodeFolder | None:
        """What is here, a repository fetched first; a problem says why there is none."""
        git = self.key
        if (self._spec is None or self._look_again) and isinstance(git, NodeGit) and self._fetch:
            found = await self._fetch(git.git, git.ref, git.subdirectory)
            self._look_again = False
            if isinstance(found, Problem):
                last = "; the last good version stays in use" if self._tools else ""
                self.problems = [replace(found, message=found.message + last)]
            else:
                what = {"id": git.id, "entry": git.entry, "export": git.export}
                self._spec = NodeFolder(folder=str(found), pointer=git.pointer, **what)
        return self._spec

    def _read(self, spec: NodeFile | NodeFolder) -> Reading | None:
        """What is there now. When that is nothing to go on with, a problem says why, and what worked stays."""
        look = look_now(spec)
        if not look:
            self._look, self._tools = {}, []
            self._retire_hosts()
            self.problems = [nothing_there(spec)]
            return None
        reading, self.problems = read(spec, look)
        if reading is None:
            self._look = look
        return reading

    def _package(self, reading: Reading) -> NodePackage | None:
        """The package where it is, or its copy if that is ready."""
        if is_ready_as_it_is(reading.facts, self._policy):
            return package_in(reading.folder, reading)
        folder = ready_folder(reading, self._policy, self._shop)
        return package_in(str(folder), reading) if folder.is_dir() else None

    async def _make_ready(self, reading: Reading) -> NodePackage | None:
        ready = await make_ready(reading, self._policy, self._shop, self.conditions.builders)
        if isinstance(ready, Path):
            return package_in(str(ready), reading)
        self._look, self.problems = reading.look, [*self.problems, *ready]
        return None

    def _accept(
        self, reading: Reading, package: NodePackage, listing: NodeListing, faults: Sequence[NodeFault]
    ) -> None:
        """These are the tools now, unless they are the ones there were; what worked stays where nothing works."""
        self._look = reading.look
        self.problems = [*self.problems, *(located(fault, reading, package) for fault in faults)]
        same = self._hosts is not None and self._hosts.package == package and bool(self._tools)
        if not listing.tools or (same and not faults):
            return
        self._retire_hosts()
        hosts = self._hosts = NodeHosts(self._shop, package)
        declared = {tool.id: tool for tool in package.tools}
        self._tools = [
            NodeModuleTool(listed=tool, declared=declared[tool.id], hosts=hosts, workshop=self._shop)
            for tool in listing.tools
        ]

    def _retire_hosts(self) -> None:
        """Let calls under way come to their end, and take no more in these hosts."""
        hosts, self._hosts = self._hosts, None
        if hosts:
            hosts.retire()
            self._retired = [each for each in (*self._retired, hosts) if each.running]


def package_in(folder: str, reading: Reading) -> NodePackage:
    """The package in its own folder, or in that of a copy, whose name says by what it was made ready."""
    as_it_is = folder == reading.folder
    content = reading.fingerprint if as_it_is else Path(folder).name
    return NodePackage(root=folder, tools=reading.facts.tools, fingerprint=content)
