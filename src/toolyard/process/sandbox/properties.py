"""What a sandbox promises, property by property, and what was found of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


Property = Literal[
    "writes", "attributes", "secrets", "protected", "network", "sockets", "processes", "temporary", "privileges"
]
PROPERTIES: tuple[Property, ...] = get_args(Property)
MEANINGS: dict[Property, str] = {
    "writes": "nothing outside the workspace can be written",
    "attributes": "of files outside the workspace, rights and times cannot be changed",
    "secrets": "keys, tokens and other secrets of the user and of root cannot be read",
    "protected": "in the workspace, git's hooks and configuration, rule files and the store cannot be written or made",
    "network": "nothing outside can be reached over a network",
    "sockets": "no socket and no shared memory of another process can be reached",
    "processes": "no other process can be signalled, traced, limited, slowed down or looked into",
    "temporary": "temporary files are the sandbox's own",
    "privileges": "no capabilities, no new privileges, no namespaces, no mounts, none left behind for others",
}


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend keeps in."""

    open: Mapping[Property, list[str]]
    """For each property the ways out that were found."""
    failure: str | None = None
    """Why it could not be tried at all."""

    @property
    def held(self) -> tuple[Property, ...]:
        """The properties that hold."""
        return () if self.failure else tuple(name for name in PROPERTIES if not self.open.get(name, ["untried"]))
