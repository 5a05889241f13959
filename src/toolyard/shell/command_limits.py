"""The limits of a shell, those that a command has instead, and saying which of them was reached."""

from __future__ import annotations

import contextlib
import resource
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.process.cgroups import ControlGroup
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.process_tree import processor_seconds
from toolyard.shell.limits_hit import which_limit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["CommandLimits"]

EVERY_LIMIT = Limits(cpu_seconds=0, memory_bytes=0, file_bytes=0, open_files=0, processes=0)


class CommandLimits:
    """What holds for the command that a shell runs now."""

    def __init__(self, limits: Limits) -> None:
        self.any = limits != NO_LIMITS
        self._now = limits
        self._group = ControlGroup()
        self._first: dict[int, int] = {}
        """The limits that the shell started with, as far as a command may have others."""

    def make_group(self) -> Limits:
        """Limit all processes together where that can be; tell what is left for each of them."""
        limits = self._now
        if limits.memory_bytes is not None or limits.processes is not None:
            self._group = ControlGroup.create(memory_bytes=limits.memory_bytes, processes=limits.processes)
        return replace(
            limits,
            memory_bytes=None if self._group.holds("memory") else limits.memory_bytes,
            processes=None if self._group.holds("pids") else limits.processes,
        )

    @property
    def folders(self) -> Sequence[Path]:
        """Those of the group."""
        return self._group.folders

    def add(self, pid: int) -> None:
        """Take a shell into the group."""
        with contextlib.suppress(OSError):
            self._group.add(pid)

    def remove_group(self) -> None:
        """Nothing is left in it."""
        self._group.remove()

    def change(self, shell: int, limits: Limits) -> None:
        """Let the next command have limits of its own, which its processes keep; the shell has other ones after it.

        Only the lower, soft half of each can be set, for nobody could raise the other again.
        """
        if limits is self._now or limits == self._now:
            return
        self._now = limits
        self.any = limits != NO_LIMITS
        wanted = dict(limits.as_rlimits())
        for which, given in self._first_of(shell).items():
            value = wanted.get(which, given)
            if which == resource.RLIMIT_CPU and which in wanted:
                value += round(processor_seconds(shell))
            with contextlib.suppress(OSError, ValueError):
                _, most = resource.prlimit(shell, which)
                least = value if most == resource.RLIM_INFINITY else min(value, most)
                resource.prlimit(shell, which, (most if value == resource.RLIM_INFINITY else least, most))

    def hit(self, status: int, output: str) -> str | None:
        """Which limit a command that failed has run into, if one of ours."""
        return which_limit(self._now, self._group.hits(), status, output)

    def _first_of(self, shell: int) -> dict[int, int]:
        if not self._first:
            for which, _ in EVERY_LIMIT.as_rlimits():
                self._first[which], _ = resource.prlimit(shell, which)
        return self._first
