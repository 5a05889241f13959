"""Which states of the workspace belong to which turns, and what going back would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import CallBegan, TurnEnded, TurnStarted
from toolyard.agents.sessions.history import turn_starts
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.checkpoints.store import RestoreOutcome
    from toolyard.agents.sessions.events import Stored
    from toolyard.agents.sessions.history import History


class PlannedRewind(msgspec.Struct, frozen=True, kw_only=True):
    """What going back would do."""

    to: int
    files: str | None
    """The state that the files would go back to; None when none was kept since."""
    changes: Sequence[Change]


class Rewind(msgspec.Struct, frozen=True, kw_only=True):
    """What going back did."""

    to: int
    files: str | None
    restored: RestoreOutcome | None


def rewind_target(history: History, to: int | None) -> int:
    """The event to go back to before; without one, that at which the last turn begins."""
    starts = turn_starts(history)
    if to is None and not starts:
        raise ProviderError("there is no turn to go back from", fault="setup")
    return to if to is not None else starts[-1][1]


def state_before(events: Sequence[Stored], seq: int) -> str | None:
    """The state that was kept before the first call from an event on."""
    kept = (one.event.checkpoint for one in events if one.seq >= seq and isinstance(one.event, CallBegan))
    return next((state for state in kept if state), None)


def states_by_turn(history: History) -> dict[int, tuple[str, str | None]]:
    """The states before and after each turn that may have changed something."""
    turn, kept = 0, dict[int, tuple[str, str | None]]()
    for one in history.events:
        match one.event:
            case TurnStarted():
                turn = one.event.turn
            case CallBegan(checkpoint=str(state)):
                kept.setdefault(turn, (state, None))
            case TurnEnded(checkpoint=str(state)) if turn in kept:
                kept[turn] = kept[turn][0], state
            case _:
                pass
    return kept
