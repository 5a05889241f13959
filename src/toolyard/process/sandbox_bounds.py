"""What everything in a sandbox may use together, so that a bomb inside takes the sandbox and not the machine."""

from __future__ import annotations

import contextlib
import os
import platform
from typing import TYPE_CHECKING

from toolyard.process.cgroups import ControlGroup
from toolyard.process.sandbox_bubblewrap import memory

if TYPE_CHECKING:
    from toolyard.process.sandbox_backends import Backend

__all__ = ["Bounds"]

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
