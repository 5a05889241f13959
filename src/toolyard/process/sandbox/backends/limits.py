"""Limits on all processes of a sandbox together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.process.cgroups import ControlGroup, kernel_version
from toolyard.process.sandbox.backends.bubblewrap import memory

if TYPE_CHECKING:
    from toolyard.process.sandbox.policy import Backend


COUNTED_INSIDE_SINCE = (5, 14)
"""The kernel that counts the processes of a user namespace by themselves, not with all others of the user."""


class SandboxLimits:
    """Limits on all processes of a sandbox: a control group where we may have one, else a limit that they inherit."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        # A little less than the machine has: whoever fills it is ended by the group, before others are by the kernel.
        self.group = ControlGroup.of_a_keeper(memory_bytes=memory() // 16 * 15, processes=processes)

    def inherited(self, backend: Backend) -> int | None:
        """The limit that processes inside must inherit because no group holds it; None where that would do harm."""
        is_counted_inside = backend != "landlock" and os.geteuid() != 0 and kernel_version() >= COUNTED_INSIDE_SINCE
        return self.processes if is_counted_inside and not self.group.holds("pids") else None
