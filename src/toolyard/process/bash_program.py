"""The bash of this machine, which runs tool files, commands and sessions alike."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

__all__ = ["BashProgram", "find_bash"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BashProgram:
    """An interpreter on disk."""

    path: str
    identity: str
    """Changes when another bash takes its place."""


def find_bash() -> BashProgram | None:
    """The bash on PATH."""
    path = shutil.which("bash")
    if path is None:
        return None
    real = os.path.realpath(path)
    stat = os.stat(real)
    return BashProgram(path=os.path.abspath(path), identity=f"{real}:{stat.st_mtime_ns}:{stat.st_size}")
