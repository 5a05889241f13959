"""The ways to build a sandbox, and how a keeper is started in each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.process.sandbox.backends.bubblewrap import find_bubblewrap
from toolyard.process.sandbox.backends.kernel import landlock_version
from toolyard.process.sandbox.backends.landlock import grants
from toolyard.process.sandbox.backends.seccomp import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, filter_program

if TYPE_CHECKING:
    from toolyard.process.private_folders import SharedFolder
    from toolyard.process.sandbox.backends.bubblewrap import Bubblewrap
    from toolyard.process.sandbox.layout import Layout


Backend = Literal["bubblewrap", "bubblewrap-pids", "landlock"]
BACKENDS: tuple[Backend, ...] = ("bubblewrap", "bubblewrap-pids", "landlock")
"""In the order of preference. With process numbers of its own a sandbox hides other processes, but what is told of its
processes by number means nothing outside; where Landlock keeps signals in, that is not needed."""
HIDING: tuple[Backend, ...] = ("bubblewrap-pids", "bubblewrap", "landlock")
"""The same for who wants the others hidden."""
SCOPES_SINCE = 6
"""The version of Landlock that keeps signals in."""


class Openings(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox lets through on purpose."""

    network: bool = False
    proxy: bool = False
    """Whether there is a way to named hosts, which inside is a port of its own."""
    unix_sockets: bool = False


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How a keeper is started in a sandbox."""

    backend: Backend
    words: tuple[str, ...] = ()
    """What comes before the keeper's own command line."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the keeper gives up by itself."""
    own_pids: bool = False
    proxy: bool = False
    tmp: str = "/tmp"  # noqa: S108 - inside it is nobody else's
    """Where temporary files go."""
    lasting: str
    """The file whose absence says that there is nothing to clean up after it."""

    def encoded_options(self) -> dict[str, Any]:
        """The options as the keeper takes them, which knows paths as bytes."""
        paths = {name: [os.fsencode(path) for path in self.options[name]] for name in ("readable", "writable")}
        return self.options | paths


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine has to build sandboxes of."""

    bubblewrap: Bubblewrap | None
    landlock: int

    def lacking(self, backend: Backend) -> str | None:
        """Why a backend cannot even be tried."""
        if filter_program([]) is None:
            return f"system calls of {os.uname().machine} are not known"
        if backend == "landlock":
            return None if self.landlock else "the kernel has no Landlock"
        if self.bubblewrap is None:
            return "bubblewrap (bwrap) is not installed"
        if backend == "bubblewrap" and self.landlock < SCOPES_SINCE:
            return "the kernel's Landlock does not keep signals in"
        return None

    def confinement(self, backend: Backend, layout: Layout, openings: Openings, folder: SharedFolder) -> Confinement:
        """The way into a sandbox with this layout."""
        if backend == "landlock":
            return landlock_confinement(layout, openings, folder)
        if self.bubblewrap is None:
            raise ValueError("there is no bubblewrap")
        own_pids = backend == "bubblewrap-pids"
        words = self.bubblewrap.words(layout, folder=folder, network=openings.network, own_pids=own_pids)
        families = [AF_INET, AF_INET6, AF_NETLINK, *([AF_UNIX] if openings.unix_sockets else [])]
        program = filter_program(families, own_pids=own_pids, own_ipc=True)
        options = give_up(program, scopes=self.landlock >= SCOPES_SINCE)
        return Confinement(
            backend=backend,
            words=(self.bubblewrap.path, *words, "--"),
            options=options,
            own_pids=own_pids,
            proxy=openings.proxy and not openings.network,
            lasting=folder.lasting,
        )


def landlock_confinement(layout: Layout, openings: Openings, folder: SharedFolder) -> Confinement:
    """Without namespaces: a network cannot be had for itself, so that there is all of it or none."""
    readable, writable = grants(layout.rules)
    families = [
        AF_NETLINK,
        *([AF_INET, AF_INET6] if openings.network else []),
        *([AF_UNIX] if openings.unix_sockets else []),
    ]
    options = give_up(filter_program(families), scopes=True) | {
        "readable": [*readable, folder.handouts],
        "writable": [*writable, folder.exchange, folder.tmp],
        "files": True,
        "tcp": not openings.network,
        "drop_capabilities": os.geteuid() == 0,
    }
    return Confinement(backend="landlock", options=options, tmp=folder.tmp, lasting=folder.lasting)


def give_up(program: bytes | None, *, scopes: bool) -> dict[str, Any]:
    return {
        "readable": [],
        "writable": [],
        "files": False,
        "scopes": scopes,
        "tcp": False,
        "filter": program or b"",
        "drop_capabilities": False,
        "processes": None,
    }


def available() -> Means:
    """What this machine has."""
    return Means(bubblewrap=find_bubblewrap(), landlock=landlock_version())
