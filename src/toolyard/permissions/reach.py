"""How far a call reaches: what its preset says, what rules raise or lower, and what a question is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.reach import furthest_of, is_beyond, nearest_of
from toolyard.permissions.verdict import Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.reach import Reach
    from toolyard.permissions.verdict import Verdict


PRESET = "preset "
"""How the origin of a rule is called that nobody wrote but us."""
ONLY_READS = frozenset({"outside", "read"})
"""Doubts about what is read: a yes to them needs no further reach."""


def with_reach(verdict: Verdict, wanted: Reach | None, usual: Reach) -> Verdict:
    """The verdict with the reach that it is about, where processes do the work.

    A line has one reach: the least of what its parts may. Where a rule lets a part reach further than the others may, a
    person decides on all of it; what only passes on text goes along with the others.
    """
    if wanted is not None and is_beyond(wanted, usual):
        return replace(verdict, reach=wanted, usual_reach=usual)
    if verdict.decision != "allow":
        return replace(verdict, reach=wanted or reach_of_question(verdict, usual), usual_reach=usual)
    most = reaches_of(verdict.parts, usual)
    reach = nearest_of(*most, wanted) if wanted else nearest_of(*most) if most else usual
    further = [part for part in verdict.parts if is_beyond(meant_reach(part, verdict.parts, reach, usual), reach)]
    if further and wanted is None:
        return undecided(verdict, further[0], reach, usual)
    return replace(verdict, reach=reach, usual_reach=usual)


def meant_reach(part: Judged, parts: Sequence[Judged], reach: Reach, usual: Reach) -> Reach:
    """How far a part has to reach to do what it says.

    Somebody's own rule means the usual reach; a preset's rule for something that only lists must not take that away.
    """
    is_preset = str(part.origin).startswith(PRESET)
    if part.reach is not None:
        return reach if is_preset and (part.reach, reach) == ("look", "closed") else part.reach
    is_own = part.rule is not None and not is_preset
    is_lowered = any(other.reach == reach and str(other.origin).startswith(PRESET) for other in parts)
    return usual if is_own and is_lowered else reach


def reaches_of(parts: Sequence[Judged], usual: Reach) -> list[Reach]:
    """How far each part may reach that counts; outside, also what only passes text on: there is more of it."""
    most = [part.reach or usual for part in parts if part.rule and not part.streams_only]
    is_outside = bool(most) and nearest_of(*most) == "outside"
    return [part.reach or usual for part in parts if part.rule] if is_outside else most


def reach_of_question(verdict: Verdict, usual: Reach) -> Reach:
    """How far a call would reach that is asked about: enough to do what it says."""
    asked = {part.doubt for part in verdict.parts if part.decision == "ask"}
    return usual if asked and asked <= ONLY_READS else furthest_of(usual, "work")


def undecided(verdict: Verdict, further: Judged, reach: Reach, usual: Reach) -> Verdict:
    why = (
        f"a rule lets '{further.text}' reach '{further.reach or usual}', but other parts of the line may only '{reach}'"
    )
    doubt = Judged(text=further.text, kind="doubt", decision="ask", reason=why, doubt="reach")
    return replace(
        verdict,
        decision="ask",
        reason=why,
        rule=None,
        parts=(*verdict.parts, doubt),
        reach=further.reach or usual,
        usual_reach=usual,
    )
