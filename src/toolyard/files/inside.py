"""Whether a path is inside a folder: as it is written, or where it leads."""

from __future__ import annotations

import os


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it, both as they are written."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def leads_inside(path: str, folder: str) -> bool:
    """Whether a path leads to something below a folder, all links followed."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real != root and is_inside(real, root)


def stays_inside(name: str) -> bool:
    """Whether a relative name stays below wherever it starts, as it is written."""
    normal = os.path.normpath(name)
    return bool(name) and not os.path.isabs(normal) and normal.split(os.sep)[0] != os.pardir
