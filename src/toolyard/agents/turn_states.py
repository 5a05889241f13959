"""Which states of the workspace belong to which turns, and what going back would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import CallBegan, TurnEnded, TurnStarted
from toolyard.agents.sessions.history import read_history, turn_starts
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.checkpoints.store import RestoreOutcome
    from toolyard.agents.sessions.event_log import EventLog
    from toolyard.agents.sessions.events import Stored
    from toolyard.agents.sessions.history import History
    from toolyard.agents.workspace_states import WorkspaceStates


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


class TurnStates:
    """The states of the workspace that belong to the turns of a session; none where none are kept."""

    def __init__(self, log: EventLog, states: WorkspaceStates | None) -> None:
        self._log = log
        self._states = states

    def target(self, to: int | None) -> int:
        """The event to go back to before; without one, that at which the last turn begins."""
        starts = turn_starts(read_history(self._log.all_events()))
        if to is None and not starts:
            raise ProviderError("there is no turn to go back from", fault="setup")
        return to if to is not None else starts[-1][1]

    async def plan(self, target: int, *, files: bool) -> PlannedRewind:
        """What going back to before an event would change."""
        kept = state_before(self._log.all_events(), target) if files else None
        changes = await self._states.preview(kept) if kept and self._states else []
        return PlannedRewind(to=target, files=kept, changes=changes)

    async def rewind(self, target: int, *, files: bool) -> Rewind:
        """Bring the files to what they were before an event, if they are to go back."""
        kept = state_before(self._log.all_events(), target) if files else None
        restored = await self._states.restore(kept, self._log.session) if kept and self._states else None
        return Rewind(to=target, files=kept, restored=restored)

    async def restore(self, id: str) -> RestoreOutcome:
        """Bring the files to a state that was kept."""
        if self._states is None:
            raise ProviderError("no states of the workspace are kept", fault="setup")
        return await self._states.restore(id, self._log.session)

    async def diff(self, turn: int | None) -> str:
        """What a turn changed, as a patch; of the last turn that kept a state, unless one is named."""
        kept = states_by_turn(read_history(self._log.all_events()))
        if self._states is None or not kept or (turn is not None and turn not in kept):
            return ""
        return await self._states.diff(*kept[turn if turn is not None else max(kept)])

    async def keep_end(self, turn: int) -> str | None:
        """The state at the end of a turn before which one was kept."""
        if self._states is None or not kept_in_last_turn(self._log.history()):
            return None
        return await self._states.keep(self._log.session, f"after turn {turn}")


def state_before(events: Sequence[Stored], seq: int) -> str | None:
    """The state that was kept before the first call from an event on."""
    kept = (one.event.checkpoint for one in events if one.seq >= seq and isinstance(one.event, CallBegan))
    return next((state for state in kept if state), None)


def kept_in_last_turn(history: History) -> bool:
    """Whether a state was kept before the turn that began last, which may have changed something then."""
    for one in reversed(history.events):
        match one.event:
            case CallBegan(checkpoint=str()):
                return True
            case TurnStarted():
                return False
            case _:
                pass
    return False


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
