"""The order in which mixins can be expanded, and the circles that leave some without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["in_order", "references_in_circles"]


def in_order(refs: Mapping[str, Sequence[str]]) -> list[str]:
    """Each name after those it refers to; a name that leads into a circle has no such place and is left out."""
    waits_for = {name: len(set(found)) for name, found in refs.items()}
    users: dict[str, list[str]] = {name: [] for name in refs}
    for name, found in refs.items():
        for ref in set(found):
            users[ref].append(name)
    order = [name for name, number in waits_for.items() if number == 0]
    for name in order:  # grows while we go over it
        for user in users[name]:
            waits_for[user] -= 1
            if waits_for[user] == 0:
                order.append(user)
    return order


def references_in_circles(
    refs: Mapping[str, Sequence[str]], order: Sequence[str]
) -> Iterator[tuple[Sequence[str], list[tuple[str, str]]]]:
    """For each group of names that lead to one another: a circle in it, and every reference inside the group."""
    placed = set(order)
    left = [name for name in refs if name not in placed]
    reach = {name: reachable(name, refs, placed) for name in left}
    done: set[str] = set()
    for name in left:
        if name in reach[name] and name not in done:
            group = {other for other in reach[name] if name in reach[other]}
            done |= group
            yield circle(name, refs, group), [(one, ref) for one in group for ref in refs[one] if ref in group]


def reachable(name: str, refs: Mapping[str, Sequence[str]], outside: set[str]) -> set[str]:
    """The names that one leads to, itself only if by a circle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = {ref for ref in refs[waiting.pop()] if ref not in outside} - found
        found |= new
        waiting += new
    return found


def circle(name: str, refs: Mapping[str, Sequence[str]], group: set[str]) -> Sequence[str]:
    """The shortest way from a name back to itself, the name at both ends."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    for way in ways:  # grows while we go over it
        for ref in refs[way[-1]]:
            if ref == name:
                return (*way, name)
            if ref in group and ref not in seen:
                seen.add(ref)
                ways.append((*way, ref))
    raise ValueError(f"{name} does not lead back to itself")
