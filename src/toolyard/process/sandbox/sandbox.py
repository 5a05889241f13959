"""The sandbox that an application's children run in: chosen by what it was seen to keep in, never by its name.

A keeper is started inside and starts everything else there, so that the sandbox is paid for once and a child in it
costs what it costs outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.errors import NoSandbox
from toolyard.process.cgroups import ControlGroup
from toolyard.process.private_folders import SharedFolder
from toolyard.process.sandbox.backends.backends import BACKENDS, Openings
from toolyard.process.sandbox.backends.bubblewrap import memory
from toolyard.process.sandbox.layout import lay_out
from toolyard.process.sandbox.mount_points import Placeholders, move_unwanted
from toolyard.process.sandbox.properties import PROPERTIES
from toolyard.process.sandbox.self_test.cache import SelfTest
from toolyard.process.sandbox.watch import Watch

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from toolyard.process.sandbox.backends.backends import Backend, Confinement
    from toolyard.process.sandbox.layout import Layout, Places
    from toolyard.process.sandbox.properties import Property
    from toolyard.process.sandbox.proxy import Decision, Proxy


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration wants of a sandbox."""

    mode: Literal["auto", "require"] = "auto"
    damaged: str = ""
    """Why it is not known what is wanted, and so nothing may be run."""
    properties: tuple[Property, ...] = PROPERTIES
    """What must hold with `require`."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    unix_sockets: bool = False
    processes: int = 4096
    """How many there may be inside at a time."""
    backends: tuple[Backend, ...] = BACKENDS


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """What children run in, and why."""

    mode: Literal["auto", "require"]
    backend: Backend | None
    """None when nothing on this machine keeps them in."""
    properties: Mapping[Property, bool]
    opened: tuple[Property, ...]
    """What the configuration itself gives up."""
    passed_over: Mapping[Backend, str]
    """Why the backends before it were not taken."""
    writable: tuple[str, ...]
    unguarded: tuple[str, ...]
    """What should be protected and cannot be."""
    refusal: str | None
    """Why nothing is run, when what is required does not hold."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A backend, what it keeps in, and why those before it were not taken."""

    backend: Backend | None
    held: tuple[Property, ...]
    passed_over: Mapping[Backend, str]

    @property
    def name(self) -> str:
        """In a few words, for the audit log."""
        if self.backend is None:
            return "none"
        lacking = [name for name in PROPERTIES if name not in self.held]
        return f"{self.backend} without {', '.join(lacking)}" if lacking else self.backend


class Sandbox:
    """One sandbox: what it shall be, what it is, and what it needs outside while it lasts."""

    def __init__(self, policy: SandboxPolicy, places: Places) -> None:
        self.policy = policy
        self.places = places
        self._layout: Layout | None = None
        self._test: SelfTest | None = None
        self._failed: dict[Backend, str] = {}
        self._choice: Choice | None = None
        self._folder: SharedFolder | None = None
        self._placeholders: Placeholders | None = None
        self._watch = Watch()
        self._bounds: Bounds | None = None
        self._lasts = False
        self._proxies: list[Proxy] = []
        self.on_decision: Callable[[Decision], None] | None = None
        """Hears who was reached, or was not, where hosts are named."""

    def __eq__(self, other: object) -> bool:
        """Whether children in the other are in just such a one."""
        return isinstance(other, Sandbox) and (self.policy, self.places) == (other.policy, other.places)

    __hash__ = None  # type: ignore[assignment]  # it changes while it lives

    @property
    def layout(self) -> Layout:
        """What its inside looks like."""
        self._layout = self._layout or lay_out(self.places)
        return self._layout

    @property
    def name(self) -> str:
        """What it is, for the audit log."""
        return self.choose().name

    @property
    def is_missing(self) -> bool:
        """Whether nothing on this machine keeps children in."""
        return self.choose().backend is None

    @property
    def is_chosen(self) -> bool:
        """Whether it is known which backend it is."""
        return self._choice is not None

    def is_known(self) -> bool:
        """Whether it can be chosen without trying anything out."""
        for backend in self.policy.backends:
            if not self._tested().knows(backend):
                return False
            if len(self._held(backend)) == len(PROPERTIES) - len(self._opened()):
                return True
        return True

    def is_stale(self) -> bool:
        """Whether it was built around files that others have replaced since, which then are protected no more."""
        return self._watch.changed()

    def choose(self) -> Choice:
        """The first backend that keeps most, or everything; the first time on a machine this takes a moment."""
        self._choice = self._choice or self._choose()
        return self._choice

    def report(self) -> SandboxReport:
        """What children run in, for a person."""
        choice = self.choose()
        return SandboxReport(
            mode=self.policy.mode,
            backend=choice.backend,
            properties={name: name in choice.held for name in PROPERTIES},
            opened=tuple(self._opened()),
            passed_over=choice.passed_over,
            writable=tuple(self.layout.writable()),
            unguarded=tuple(self.layout.unguarded),
            refusal=self.refusal(),
        )

    def confinement(self) -> Confinement | None:
        """The way in; None when there is none and none is needed. NoSandbox when one is required and cannot be had."""
        choice = self.choose()
        if reason := self.refusal():
            raise NoSandbox(reason)
        if choice.backend is None:
            return None
        openings = Openings(
            network=self.policy.network, proxy=bool(self.policy.hosts), unix_sockets=self.policy.unix_sockets
        )
        if choice.backend != "landlock":
            self._guard()
        confinement = self._tested().means.confinement(choice.backend, self.layout, openings, self.folder())
        self._bounds = self._bounds or Bounds(self.policy.processes)
        confinement.options["processes"] = self._bounds.inherited(choice.backend)
        self._last()
        return confinement

    def admit(self, pid: int) -> None:
        """A keeper is inside: bound what it can start."""
        if self._bounds:
            self._bounds.admit(pid)

    def _guard(self) -> None:
        """Put there what must not come to be otherwise, and remember which files are protected and hidden."""
        self._placeholders = self._placeholders or Placeholders(self.layout.placeholders)
        put = {path for path, _ in self._placeholders.put}
        self._layout = self.layout.without({path for path, _ in self.layout.placeholders} - put)
        self._watch.close()
        self._watch = Watch(exactly=self._layout.guards(), roughly=self._layout.secrets)

    def _last(self) -> None:
        """Write down what has to be removed if we are killed."""
        put = self._placeholders.put if self._placeholders else []
        names = [(path, None if content is None else content.decode()) for path, content in put]
        with open(self.folder().lasting, "w", encoding="utf-8") as file:
            groups = self._bounds.folders if self._bounds else []
            json.dump({"placeholders": names, "unwanted": list(self.layout.unwanted), "groups": groups}, file)
        self._lasts = True

    def sweep(self) -> dict[str, str]:
        """Move away what was made inside and would be obeyed outside; where each went."""
        return move_unwanted(self.layout.unwanted) if self._lasts else {}

    def leave(self) -> None:
        """Everything inside is about to end, and what is outside will be removed by us."""
        if self._folder:
            with contextlib.suppress(OSError):
                os.unlink(self._folder.lasting)

    def refusal(self) -> str | None:
        """Why nothing may be run: something is required that no backend keeps in, or nobody knows what is."""
        if self.policy.damaged:
            return self.policy.damaged
        return self._unmet(self.choose()) if self.policy.mode == "require" else None

    def refuse(self, backend: Backend, reason: str) -> None:
        """A backend that keeps everything in could not be started here: go on with the next."""
        self._failed[backend] = reason
        self._choice = None

    def serve(self, port: socket.socket) -> None:
        """Answer those inside who want to reach a host."""
        from toolyard.process.sandbox.hosts import Hosts
        from toolyard.process.sandbox.proxy import Proxy

        self._proxies.append(Proxy(Hosts(self.policy.hosts), self.on_decision))
        self._proxies[-1].start(port.dup())

    def inside(
        self, confinement: Confinement, env: Mapping[bytes, bytes], *, proxy_port: int | None = None
    ) -> dict[bytes, bytes]:
        """Variables that point to places which are not there inside, pointed to ones that are."""
        changed = dict(env)
        tmp = env.get(b"TMPDIR")
        lost = tmp is not None and self.layout.access(os.path.realpath(os.fsdecode(tmp))) != "write"
        if lost or confinement.backend == "landlock":
            changed[b"TMPDIR"] = os.fsencode(confinement.tmp)
        run = env.get(b"XDG_RUNTIME_DIR")
        if run is not None and self.layout.access(os.fsdecode(run)) in ("private", "hidden"):
            del changed[b"XDG_RUNTIME_DIR"]
        return changed if proxy_port is None else changed | proxy_variables(proxy_port, self.policy.hosts)

    def folder(self) -> SharedFolder:
        """What inside and outside share."""
        self._folder = self._folder or SharedFolder()
        return self._folder

    async def aclose(self) -> None:
        """Everything inside has ended: remove what it needed outside."""
        proxies, self._proxies = self._proxies, []
        for proxy in proxies:
            await proxy.aclose()
        self.sweep()
        self._lasts = False
        if self._folder:
            self._folder.remove()
        if self._placeholders:
            self._placeholders.remove()
        self._watch.close()
        if self._bounds:
            self._bounds.remove()
        self._folder = self._placeholders = self._bounds = None

    def _choose(self) -> Choice:
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
        reasons = {backend: reason for backend, reason in passed_over.items() if backend != best}
        return Choice(backend=best, held=held, passed_over=reasons)

    def _unmet(self, choice: Choice) -> str | None:
        wanted = [name for name in self.policy.properties if name not in self._opened()]
        if missing := [name for name in wanted if name not in choice.held]:
            reasons = "; ".join(f"{backend}: {reason}" for backend, reason in choice.passed_over.items())
            return f"no sandbox here keeps what is required: {', '.join(missing)} ({reasons})"
        if self.layout.unguarded and "protected" in wanted:
            return f"this cannot be protected by the sandbox: {', '.join(self.layout.unguarded)}"
        return None

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


def proxy_variables(port: int, hosts: tuple[str, ...]) -> dict[bytes, bytes]:
    """By which programs know that there is a proxy, in all spellings that they look for."""
    names = (b"http_proxy", b"https_proxy", b"HTTP_PROXY", b"HTTPS_PROXY", b"ALL_PROXY", b"all_proxy")
    address = b"http://127.0.0.1:%d" % port
    # What is local is inside, unless it was named, and then it is meant to be outside.
    local = [name for name in ("localhost", "127.0.0.1", "::1") if not any(name in host for host in hosts)]
    direct = dict.fromkeys((b"no_proxy", b"NO_PROXY"), ",".join(local).encode())
    return {**dict.fromkeys(names, address), **direct, b"NODE_USE_ENV_PROXY": b"1"}


COUNTED_INSIDE_SINCE = (5, 14)
"""The kernel that counts the processes of a user namespace by themselves, not with all others of the user."""


class Bounds:
    """A control group around a sandbox where we may have one, else a limit that its processes inherit."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        # A little less than the machine has: whoever fills it is ended by the group, before others are by the kernel.
        self._group = ControlGroup.create(memory_bytes=memory() // 16 * 15, processes=processes)

    @property
    def folders(self) -> list[str]:
        """Those of the group, which have to be removed."""
        return [str(folder) for folder in self._group.folders]

    def inherited(self, backend: Backend) -> int | None:
        """The number of processes that those inside must see to themselves."""
        counted_inside = backend != "landlock" and os.geteuid() != 0 and kernel() >= COUNTED_INSIDE_SINCE
        return self.processes if counted_inside and not self._group.holds("pids") else None

    def admit(self, pid: int) -> None:
        """Put the first process inside under the bounds, before it starts any other."""
        with contextlib.suppress(OSError):
            self._group.add(pid)

    def remove(self) -> None:
        """All processes are gone."""
        self._group.remove()


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
