"""Where a repository ends that was not fetched whole: git takes the commits that are named there for the first ones.

So a line hides what is behind a commit, and git removes for good what nothing leads to.
"""

from __future__ import annotations

import re

from toolyard.process.sandbox.git.refs import COMMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.process.sandbox.git.outgoing.objects import ObjectHandover

MOST_LINES = 10_000


def with_new_ends(outside: bytes, inside: bytes, objects: ObjectHandover) -> bytes:
    """With the commits that a fetch inside ended at: of which no parent is there."""
    new = commits_in(inside) - commits_in(outside)
    parents = objects.parents_of(new)
    there = objects.there(one for each in parents.values() for one in each)
    return written(commits_in(outside) | {one for one in new if parents.get(one) and not there & {*parents[one]}})


def without_old_ends(outside: bytes, inside: bytes, objects: ObjectHandover) -> bytes:
    """Without the commits that more was fetched behind inside: all of it has to be there."""
    gone = commits_in(outside) - commits_in(inside)
    parents = objects.parents_of(gone)
    missing = set(objects.missing(one for each in parents.values() for one in each))
    passed = {one for one in gone if parents.get(one) and not missing & {*parents[one]}}
    return written(commits_in(outside) - passed)


def behind(outside: bytes, inside: bytes, objects: ObjectHandover) -> set[str]:
    """What has to be handed over before the ends are: the new ones, and what comes after those that are none now."""
    gone = objects.parents_of(commits_in(outside) - commits_in(inside))
    return (commits_in(inside) - commits_in(outside)).union(*gone.values())


def commits_in(data: bytes) -> set[str]:
    lines = data.decode("ascii", "replace").splitlines()[:MOST_LINES]
    return {line for line in lines if re.fullmatch(COMMIT, line)}


def written(commits: Iterable[str]) -> bytes:
    return "".join(f"{one}\n" for one in sorted(commits)).encode()
