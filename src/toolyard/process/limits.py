"""What a child may use at most."""

from __future__ import annotations

import resource

import msgspec
from msgspec.structs import fields, replace

MOST_SECONDS = 10**9
"""Thirty years; the kernel counts in nanoseconds, and beyond some centuries it starts again from nothing."""
MOST = 1 << 62
"""No machine has more of anything else, and the kernel's own numbers end not far above."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Resource limits of one child; None means the application's own."""

    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    """Address space. Programs that reserve much and use little (Node, Java) need gigabytes of it."""
    file_bytes: int | None = None
    open_files: int | None = None
    processes: int | None = None
    """Of the whole user, where there is no control group; nothing to root."""
    output_bytes: int | None = None
    """What one command may print; we count that ourselves."""

    def replaced_by(self, others: Limits) -> Limits:
        """These limits, with those of the others in place of theirs where the others have one."""
        said = {field.name: getattr(others, field.name) for field in fields(others)}
        return replace(self, **{name: value for name, value in said.items() if value is not None})

    def as_rlimits(self) -> list[tuple[int, int]]:
        """The resource and its limit, for `setrlimit`."""
        if self == NO_LIMITS:  # as most children have them
            return []
        limits = (
            (resource.RLIMIT_CPU, self.cpu_seconds, MOST_SECONDS),
            (resource.RLIMIT_AS, self.memory_bytes, MOST),
            (resource.RLIMIT_FSIZE, self.file_bytes, MOST),
            (resource.RLIMIT_NOFILE, self.open_files, MOST),
            (resource.RLIMIT_NPROC, self.processes, MOST),
        )
        # Never below zero: to the kernel -1 would mean no limit at all.
        return [(which, min(max(value, 0), most)) for which, value, most in limits if value is not None]


NO_LIMITS = Limits()
