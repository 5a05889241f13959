"""A layout as grants for Landlock, which has no exceptions: what is granted on a folder holds for all below it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from toolyard.process.sandbox.draft import Access


DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))


def grants(rules: dict[str, Access]) -> tuple[list[str], list[str]]:
    """The paths to be read, and those to be written too.

    A folder with something hidden in it is granted by its other entries, so that nothing new can be made in it. What
    should be read only below a folder that can be written cannot be kept so.
    """
    readable: list[str] = []
    writable: list[str] = [*DEVICES]
    walk("/", "read", rules, readable, writable)
    return readable, writable


def walk(path: str, access: Access, rules: dict[str, Access], readable: list[str], writable: list[str]) -> None:
    """Grant a path, or its entries one by one when not all of them are granted."""
    access = rules.get(path, access)
    below = [rule for other, rule in rules.items() if other != path and is_inside(other, path)]
    whole = all(rule in ("write", "read") for rule in below) if access == "write" else not below
    if path == "/dev":
        return
    if access == "write" and whole:
        writable.append(path)
    elif access == "read" and whole:
        readable.append(path)
    elif below or access in ("read", "write"):
        for entry in entries_of(path):
            walk(entry, access, rules, readable, writable)


def entries_of(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:
        return []
