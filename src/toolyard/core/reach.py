"""How far a call reaches: what the processes that do its work can change and whom they can speak to."""

from __future__ import annotations

from typing import Literal, get_args

Kept = Literal["not", "partly", "wholly"]
"""How well a sandbox keeps a call in."""
Reach = Literal["closed", "look", "work", "outside"]
"""From the least to the most. `closed` is a `look` that sees nothing of its owner's but the workspace."""
REACHES: tuple[Reach, ...] = get_args(Reach)
NAMED_REACHES: tuple[Reach, ...] = ("look", "work", "outside")
"""Those that people, rules and calls speak of; a `closed` look is a preset's own, for lines that nobody vouches for."""
REACH_DESCRIPTIONS: dict[Reach, str] = {
    "closed": "as look, and nothing can be seen but the workspace and the programs of the system",
    "look": "nothing can be changed but temporary files, and no host can be reached",
    "work": "the workspace can be changed, and hosts can be reached as configured",
    "outside": "everything that its owner can do, outside of any sandbox",
}


def named(reach: Reach) -> Reach:
    """The reach as people know it."""
    return "look" if reach == "closed" else reach


def is_beyond(reach: Reach, other: Reach) -> bool:
    """Whether one reaches further than the other."""
    return REACHES.index(reach) > REACHES.index(other)


def nearest_of(*reaches: Reach) -> Reach:
    """The least of them."""
    return min(reaches, key=REACHES.index)


def furthest_of(*reaches: Reach) -> Reach:
    """The most of them."""
    return max(reaches, key=REACHES.index)
