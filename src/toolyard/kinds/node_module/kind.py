"""The kind of Node tools: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.node_module.reference import (
    SUFFIXES,
    NodeFile,
    NodeFolder,
    NodeGit,
    NodeOptions,
    names_nothing,
    read_git,
    read_options,
    read_path,
)
from toolyard.kinds.node_module.settings import NodeModuleSettings
from toolyard.plugins.acquire.git_reference import split_reference
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json
    from toolyard.kinds.node_module.author import NodeAuthoring
    from toolyard.kinds.node_module.source import NodeSource
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Reference


class NodeModules(Kind):
    """The modules of Node packages as tools."""

    name = "node"
    spellings = ("node:PATH", "node+git:URL#REF", '{"node_tool": {"path": FOLDER}}')
    suffixes = SUFFIXES
    modes = ()
    settings = NodeModuleSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        match entry:
            case str() if entry.startswith("node:"):
                return read_path(entry.removeprefix("node:"), at)
            case str() if entry.startswith("node+git:"):
                url, ref = split_reference(entry.removeprefix("node+git:"))
                return read_git(NodeOptions(git=url, ref=ref), at) if url else names_nothing("node+git:", at)
            case {"node_tool": options}:
                return read_options(options, at)
        return None

    def refusal(self, reference: Reference, host: Host) -> Problem | None:
        if host.interpreter("node") is not None:
            return None
        from toolyard.process.interpreter import why_missing

        hint = "install Node 20 or newer and put it on PATH"
        return reference.at.problem("node_missing", why_missing("node", "Node"), hint)

    def source(self, reference: NodeFile | NodeFolder | NodeGit, host: Host) -> NodeSource:
        from toolyard.kinds.node_module.source import NodeSource

        return NodeSource(reference, host)

    @property
    def author(self) -> NodeAuthoring:
        from toolyard.kinds.node_module.author import NodeAuthoring

        return NodeAuthoring()
