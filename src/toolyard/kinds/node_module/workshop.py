"""What all Node tools of an application share: the program, the conditions they run under, and who runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.process.companion import CompanionRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.files.content_cache import ContentCache
    from toolyard.kinds.node_module.listing import NodeListing
    from toolyard.process.child import Children
    from toolyard.process.interpreter import Interpreter


HOST = Path(__file__).with_name("host.mjs")
PARENTS_CHANNEL = (b"NODE_CHANNEL_FD", b"NODE_CHANNEL_SERIALIZATION_MODE")
"""Where an application was itself started by Node: the descriptor is not for its tools."""


class NodeConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Under which conditions Node tools run; the same for every package of a configuration."""

    timeout: float = 60
    pass_env: Sequence[str] = ()
    limits: Limits = msgspec.field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWorkshop:
    """Where Node tools are read and run; equal workshops do it alike."""

    node: Interpreter
    children: Children
    conditions: NodeConditions
    cache: ContentCache[NodeListing]
    environment: ParentEnvironment = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", ParentEnvironment(passed=self.conditions.pass_env))


class DeclaredTool(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool is in its package."""

    id: str
    entry: str
    """A file, relative to the package."""
    export: str | None = None


class NodePackage(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one package, ready to be run."""

    root: str
    tools: tuple[DeclaredTool, ...]
    fingerprint: str
    """Of its content."""


def host_request(shop: NodeWorkshop, package: NodePackage) -> CompanionRequest:
    """How a host is started. Lines travel by descriptors of their own, so that tools may print as they like.

    Memory is limited by Node itself, which reserves more addresses than it ever uses; processor time is not, because a
    host serves many calls, and each of those has its time limit.
    """
    limits, memory = shop.conditions.limits, shop.conditions.limits.memory_bytes
    options = [] if memory is None else [f"--max-old-space-size={max(memory >> 20, 16)}"]
    env = {name: value for name, value in shop.environment.current().items() if name not in PARENTS_CHANNEL}
    return CompanionRequest(
        argv=[shop.node.path, *options, str(HOST), "3", "4"],
        cwd=package.root,
        env=env,
        limits=Limits(file_bytes=limits.file_bytes, open_files=limits.open_files, processes=limits.processes),
        private=True,
    )
