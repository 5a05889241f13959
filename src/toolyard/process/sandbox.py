"""The sandbox that an application's children run in: chosen by what it was seen to keep in, never by its name.

A keeper is started inside and starts everything else there, so that the sandbox is paid for once and a child in it
costs what it costs outside.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolyard.errors import NoSandbox
from toolyard.process.placeholders import Placeholders
from toolyard.process.private_folders import SharedFolder
from toolyard.process.sandbox_backends import BACKENDS, Openings
from toolyard.process.sandbox_cache import SelfTest
from toolyard.process.sandbox_layout import lay_out
from toolyard.process.sandbox_properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.process.sandbox_backends import Backend, Confinement
    from toolyard.process.sandbox_layout import Layout, Places
    from toolyard.process.sandbox_properties import Property

__all__ = ["Sandbox", "SandboxPolicy", "SandboxReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """What the configuration wants of a sandbox."""

    mode: Literal["auto", "require"] = "auto"
    properties: tuple[Property, ...] = PROPERTIES
    """What must hold with `require`."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    unix_sockets: bool = False
    backends: tuple[Backend, ...] = BACKENDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """What children run in, and why."""

    backend: Backend | None
    """None when nothing on this machine keeps them in."""
    properties: Mapping[Property, bool]
    passed_over: Mapping[Backend, str]
    """Why the backends before it were not taken."""
    writable: tuple[str, ...]
    unguarded: tuple[str, ...]
    """What should be protected and cannot be."""

    @property
    def name(self) -> str:
        """In a few words, for the audit log."""
        lacking = [name for name, holds in self.properties.items() if not holds]
        if self.backend is None:
            return "none"
        return f"{self.backend} without {', '.join(lacking)}" if lacking else self.backend


class Sandbox:
    """One sandbox: what it shall be, what it is, and what it needs outside while it lasts."""

    def __init__(self, policy: SandboxPolicy, places: Places) -> None:
        self.policy = policy
        self.places = places
        self.layout: Layout = lay_out(places)
        self._test: SelfTest | None = None
        self._failed: dict[Backend, str] = {}
        self._report: SandboxReport | None = None
        self._folder: SharedFolder | None = None
        self._placeholders: Placeholders | None = None

    def __eq__(self, other: object) -> bool:
        """Whether children in the other are in just such a one."""
        return isinstance(other, Sandbox) and (self.policy, self.places, self.layout) == (
            other.policy,
            other.places,
            other.layout,
        )

    __hash__ = None  # type: ignore[assignment]  # it changes while it lives

    def report(self) -> SandboxReport:
        """What children run in; the first time on a machine this takes a moment."""
        self._report = self._report or self._choose()
        return self._report

    def _choose(self) -> SandboxReport:
        """The first backend that keeps most; one that keeps everything ends the search."""
        best: Backend | None = None
        held: tuple[Property, ...] = ()
        passed_over: dict[Backend, str] = {}
        for backend in self.policy.backends:
            found = self._held(backend)
            if len(found) > len(held):
                best, held = backend, found
            if len(held) == len(PROPERTIES) - len(self._opened()):
                break
            passed_over[backend] = self._why_not(backend)
        return SandboxReport(
            backend=best,
            properties={name: name in held for name in PROPERTIES},
            passed_over={backend: reason for backend, reason in passed_over.items() if backend != best},
            writable=tuple(self.layout.writable()),
            unguarded=tuple(self.layout.unguarded),
        )

    def confinement(self) -> Confinement | None:
        """The way in; None when there is none and none is needed. NoSandbox when one is required and cannot be had."""
        report = self.report()
        self._demand(report)
        if report.backend is None:
            return None
        openings = Openings(
            network=self.policy.network, proxy=bool(self.policy.hosts), unix_sockets=self.policy.unix_sockets
        )
        if report.backend != "landlock":
            self._placeholders = self._placeholders or Placeholders(self.layout.placeholders)
        return self._tested().means.confinement(report.backend, self.layout, openings, self.folder())

    def refuse(self, backend: Backend, reason: str) -> None:
        """A backend that keeps everything in could not be started here: go on with the next."""
        self._failed[backend] = reason
        self._report = None

    def inside(self, confinement: Confinement, env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Variables that point to places which are not there inside, pointed to ones that are."""
        changed = dict(env)
        tmp = env.get(b"TMPDIR")
        lost = tmp is not None and self.layout.access(os.path.realpath(os.fsdecode(tmp))) != "write"
        if lost or confinement.backend == "landlock":
            changed[b"TMPDIR"] = os.fsencode(confinement.tmp)
        run = env.get(b"XDG_RUNTIME_DIR")
        if run is not None and self.layout.access(os.fsdecode(run)) in ("private", "hidden"):
            del changed[b"XDG_RUNTIME_DIR"]
        return changed

    def folder(self) -> SharedFolder:
        """What inside and outside share."""
        self._folder = self._folder or SharedFolder()
        return self._folder

    def close(self) -> None:
        """Remove what it needed outside."""
        if self._folder:
            self._folder.remove()
        if self._placeholders:
            self._placeholders.remove()
        self._folder = self._placeholders = None

    def _demand(self, report: SandboxReport) -> None:
        if self.policy.mode != "require":
            return
        wanted = [name for name in self.policy.properties if name not in self._opened()]
        missing = [name for name in wanted if not report.properties[name]]
        if missing:
            reasons = "; ".join(f"{backend}: {reason}" for backend, reason in report.passed_over.items())
            raise NoSandbox(f"no sandbox here keeps what is required: {', '.join(missing)} ({reasons})")
        if report.unguarded and "protected" in self.policy.properties:
            raise NoSandbox(f"a link cannot be protected: {', '.join(report.unguarded)}")

    def _held(self, backend: Backend) -> tuple[Property, ...]:
        if backend in self._failed or self._tested().means.lacking(backend):
            return ()
        return tuple(name for name in self._tested().result(backend).held if name not in self._opened())

    def _opened(self) -> list[Property]:
        """What the configuration itself gives up."""
        opened: dict[Property, bool] = {"network": self.policy.network, "sockets": self.policy.unix_sockets}
        return [name for name, given_up in opened.items() if given_up]

    def _why_not(self, backend: Backend) -> str:
        if reason := self._failed.get(backend) or self._tested().means.lacking(backend):
            return reason
        tested = self._tested().result(backend)
        return (
            tested.failure or f"it does not keep: {', '.join(name for name in PROPERTIES if name not in tested.held)}"
        )

    def _tested(self) -> SelfTest:
        self._test = self._test or SelfTest()
        return self._test
