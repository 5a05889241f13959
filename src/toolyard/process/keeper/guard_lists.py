"""The files by which an application tells its guard what is guarded, and the guard what became of it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SEPARATOR = b"\0"


def told_beside(listed: str) -> str:
    """Where it is told what was replaced."""
    return f"{listed}.replaced"


def paths_in(listed: str) -> tuple[list[str], list[str]]:
    """The paths that a file names, and after an empty one the folders above them; none where no file is named."""
    if not listed:
        return [], []
    with open(listed, "rb") as file:
        guarded, _, above = file.read().partition(SEPARATOR * 2)
    return split(guarded), split(above)


def split(paths: bytes) -> list[str]:
    return [os.fsdecode(path) for path in paths.split(SEPARATOR) if path]


def list_of(guarded: Iterable[str], above: Iterable[str]) -> bytes:
    """What such a file holds."""
    paths = (b"".join(os.fsencode(path) + SEPARATOR for path in some) for some in (guarded, above))
    return SEPARATOR.join(paths)
