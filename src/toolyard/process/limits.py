"""What a child may use at most."""

from __future__ import annotations

import resource
from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one child; None means the application's own."""

    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    """Address space. Programs that reserve much and use little (Node, Java) need gigabytes of it."""
    file_bytes: int | None = None
    open_files: int | None = None

    def as_rlimits(self) -> list[tuple[int, int]]:
        """The pairs that the kernel understands."""
        pairs = (
            (resource.RLIMIT_CPU, self.cpu_seconds),
            (resource.RLIMIT_AS, self.memory_bytes),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_NOFILE, self.open_files),
        )
        return [(which, value) for which, value in pairs if value is not None]
