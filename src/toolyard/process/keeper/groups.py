"""Removing control groups, for the keeper too, which imports next to nothing."""

from __future__ import annotations

import os


def remove_group(folder: bytes) -> None:
    """Remove a group; one that still has a process stays."""
    try:  # noqa: SIM105 - contextlib takes longer to import than all this
        os.rmdir(folder)
    except OSError:
        pass
