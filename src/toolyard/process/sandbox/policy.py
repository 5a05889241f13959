"""What a configuration wants of a sandbox, what a sandbox can promise, and the report on what it keeps."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.sandbox_properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.reach import Kept
    from toolyard.core.sandbox_properties import SandboxProperty


Backend = Literal["bubblewrap", "bubblewrap-pids", "landlock"]
BACKENDS: tuple[Backend, ...] = ("bubblewrap", "bubblewrap-pids", "landlock")
"""In the order of preference. With process numbers of its own a sandbox hides other processes, but the number of one of
its processes means nothing outside; where Landlock keeps signals in, that is not needed."""
HIDING_BACKENDS: tuple[Backend, ...] = ("bubblewrap-pids", "bubblewrap", "landlock")
"""The order for those who want other processes hidden."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration wants of a sandbox."""

    mode: Literal["auto", "require"] = "auto"
    damaged: str = ""
    """Why it is not known what is wanted, and so nothing may be run."""
    properties: tuple[SandboxProperty, ...] = PROPERTIES
    """What must hold with `require`."""
    looking: bool = False
    """Whether nothing can be written but temporary files."""
    closed: bool = False
    """Whether nothing can be seen either but the workspace and the system's own programs."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    """Hosts that can be reached through the proxy."""
    proxy: bool = False
    """Whether there is a proxy although no host is named: it refuses at once, or somebody is asked."""
    unix_sockets: bool = False
    processes: int = 4096
    """How many there may be inside at a time."""
    backends: tuple[Backend, ...] = BACKENDS

    @property
    def given_up(self) -> tuple[SandboxProperty, ...]:
        opened: dict[SandboxProperty, bool] = {"network": self.network, "sockets": self.unix_sockets}
        return tuple(name for name, is_open in opened.items() if is_open)


class BackendChoice(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The backend of a sandbox, the properties that hold, and why the backends before it were not taken."""

    backend: Backend | None
    held: tuple[SandboxProperty, ...]
    passed_over: Mapping[Backend, str]

    @cached_property
    def name(self) -> str:
        """In a few words, for the audit log."""
        if self.backend is None:
            return "none"
        lacking = [name for name in PROPERTIES if name not in self.held]
        return f"{self.backend} without {', '.join(lacking)}" if lacking else self.backend


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """What children run in, and why."""

    mode: Literal["auto", "require"]
    backend: Backend | None
    """None when nothing on this machine keeps them in."""
    properties: Mapping[SandboxProperty, bool]
    opened: tuple[SandboxProperty, ...]
    """What the configuration itself gives up."""
    passed_over: Mapping[Backend, str]
    """Why the backends before it were not taken."""
    writable: tuple[str, ...]
    unguarded: tuple[str, ...]
    """What should be protected and cannot be."""
    closed: tuple[str, ...] = ()
    """Folders with too much to look for root's own files there, of which nothing can be read inside."""
    refusal: str | None
    """Why nothing is run, when what is required does not hold."""

    @property
    def lacking(self) -> list[SandboxProperty]:
        """What it does not keep although nobody gave it up, or not here."""
        kept = {**self.properties, "protected": self.properties["protected"] and not self.unguarded}
        return [name for name, holds in kept.items() if not holds and name not in self.opened]

    @property
    def keeps(self) -> Kept:
        """How much of what a sandbox can keep it does, but for what the configuration gives up."""
        return "not" if self.backend is None else "partly" if self.lacking else "wholly"
