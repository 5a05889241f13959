"""The verdict on a whole line, and on each part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.core.visible_text import escaped
from toolyard.permissions.verdict import Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.reading import Reading
    from toolyard.core.events import Decision
    from toolyard.permissions.rules import Rule


MOST_SHOWN = 200


class LineVerdict(msgspec.Struct, kw_only=True):
    """What the rules say of a line."""

    decision: Decision
    reason: str
    reading: Reading
    parts: tuple[Judged, ...]
    rules: tuple[Rule, ...] = ()
    """The rules that allowed its parts."""
    needs_second_reading: bool = False
    """Whether another reader has to see the same commands before it is allowed."""


def judged_as(
    decision: Decision, text: str, kind: str, reason: str, *, rule: Rule | None = None, doubt: str | None = None
) -> Judged:
    shown = escaped(text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " …")
    return Judged(
        text=shown,
        kind=kind,
        decision=decision,
        reason=escaped(reason),
        rule=rule.text if rule else None,
        origin=rule.origin if rule else None,
        doubt=doubt,
    )


def reason_for(decision: Decision, parts: Sequence[Judged]) -> str:
    """The reason of the first part that decides the line."""
    deciding = [part for part in parts if part.decision == decision]
    if not deciding:
        return "there is nothing to run"
    if decision == "allow":
        return " · ".join(dict.fromkeys(part.reason for part in deciding))
    more = f" (and {len(deciding) - 1} more)" if len(deciding) > 1 else ""
    return f"{deciding[0].text}: {deciding[0].reason}{more}"
