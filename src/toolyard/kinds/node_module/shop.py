"""Everything that Node tools need, out of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.files.content_cache import ContentCache
from toolyard.kinds.node_module.listing import NodeListing
from toolyard.kinds.node_module.package_manager import NodePolicy
from toolyard.kinds.node_module.source import NodeShop
from toolyard.kinds.node_module.workshop import NodeConditions, NodeWorkshop
from toolyard.process.interpreter import find_interpreter
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.configuration import Configuration
    from toolyard.plugins.workshops import Crews


def open_listing_cache(folder: Path | None) -> ContentCache[NodeListing]:
    """What tools said of themselves, by the content of their packages."""
    return ContentCache(folder / "node-tools.json" if folder else None, NodeListing)


def make_node_shop(
    configuration: Configuration, crews: Crews, cache: ContentCache[NodeListing], cache_dir: Path
) -> NodeShop | None:
    """The shop of a configuration; None without a Node."""
    node = find_interpreter("node")
    if node is None:
        return None
    policy, limits = configuration.policy, configuration.limits
    conditions = NodeConditions(
        timeout=policy.node_timeout_seconds,
        pass_env=tuple(policy.pass_env),
        limits=Limits(
            memory_bytes=limits.memory_bytes,
            file_bytes=limits.file_bytes,
            open_files=limits.open_files,
            processes=limits.processes,
        ),
    )
    workshop = NodeWorkshop(node=node, children=crews.tools, conditions=conditions, cache=cache)
    return NodeShop(
        workshop=workshop,
        builders=crews.builders,
        policy=NodePolicy(
            cache=str(configuration.plugin_cache(cache_dir)),
            install_deps=policy.node_install_deps,
            build=policy.node_build,
            package_manager=policy.node_package_manager,
            allow_install_scripts=policy.node_allow_install_scripts,
            build_command=policy.node_build_command,
            allow_remote=policy.allow_remote,
        ),
    )
