"""Finding the repositories of submodules in a git folder."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_REPOSITORIES, DEEPEST = 64, 6
"""The most submodules that git inside has for itself: each takes some mounts, whose number is limited."""


def modules_of(git: str) -> Iterator[str | None]:
    """The repositories of submodules, which may lie in folders of their own; None for what lies too deep."""
    waiting = [(os.path.join(git, "modules"), 0)]
    looked_at = 0
    while waiting:
        folder, depth = waiting.pop()
        names = entries_of(folder)
        looked_at += 1
        if depth > DEEPEST or looked_at > MOST_REPOSITORIES * DEEPEST:
            yield None
            return
        if "HEAD" in names and "config" in names:
            yield folder
            names = ["modules"] if "modules" in names else []
        below = (os.path.join(folder, name) for name in names)
        waiting += [(path, depth + 1) for path in below if os.path.isdir(path) and not os.path.islink(path)]


def entries_of(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
