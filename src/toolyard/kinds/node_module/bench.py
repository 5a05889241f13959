"""A Node package or module on the bench."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import Document, read_document
from toolyard.core.problems import Problem
from toolyard.plugins.spec import NodeFile, NodeFolder

if TYPE_CHECKING:
    from toolyard.kinds.node_module.source import NodeSource
    from toolyard.process.child import Children


SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")


def node_at(path: Path) -> NodeFile | NodeFolder | None:
    """What a path means: a module, or a folder whose package has tools for agents."""
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        return NodeFile(file=str(path), pointer=()) if path.suffix in SUFFIXES else None
    package = read_document(path / "package.json")
    broken = isinstance(package, Problem) and package.code != "config_unreadable"
    has_tools = isinstance(package, Document) and isinstance(package.value, dict) and "agent" in package.value
    return NodeFolder(folder=str(path), pointer=()) if has_tools or broken else None


def node_source(spec: NodeFile | NodeFolder, children: Children, timeout: float) -> NodeSource | Problem:
    """The source of its tools; a problem without a Node."""
    from toolyard.app import default_cache_dir
    from toolyard.kinds.node_module.package_manager import NodePolicy
    from toolyard.kinds.node_module.shop import open_listing_cache
    from toolyard.kinds.node_module.source import NodeShop, NodeSource
    from toolyard.kinds.node_module.workshop import NodeConditions, NodeWorkshop
    from toolyard.plugins.acquire.build import Builders
    from toolyard.process.interpreter import find_interpreter

    node = find_interpreter("node")
    if node is None:
        hint = "install Node 20 or newer and put it on PATH"
        return Problem(code="node_missing", message="there is no Node on PATH", hint=hint)
    conditions = NodeConditions(timeout=timeout)
    workshop = NodeWorkshop(node=node, children=children, conditions=conditions, cache=open_listing_cache(None))
    policy = NodePolicy(cache=str(default_cache_dir() / "plugins"))
    return NodeSource(spec, NodeShop(workshop=workshop, builders=Builders(), policy=policy))
