"""Which states of the workspace belong to which turns, and what going back would do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import CallBegan, Rewound, TurnEnded, TurnStarted
from toolyard.agents.sessions.history import last_way_back, read_history, turn_starts
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.checkpoints.store import RestoreOutcome
    from toolyard.agents.sessions.event_log import EventLog
    from toolyard.agents.sessions.events import Stored
    from toolyard.agents.sessions.history import History
    from toolyard.agents.workspace_states import WorkspaceStates


class WayBack(msgspec.Struct, frozen=True, kw_only=True):
    """Where to go back to."""

    to: int
    """The event before which the conversation goes on; of one that is taken back, its number."""
    files: str | None
    """The state that the files go back to; None when none was kept since."""
    paths: Sequence[str] = ()
    """Which files, if not all."""
    redoes: int = 0


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

    def way_back(self, to: int | None, *, files: bool, paths: Sequence[str] = ()) -> WayBack:
        """The way to before an event; without one, to before the last turn."""
        events = self._log.all_events()
        starts = turn_starts(read_history(events))
        if to is None and not starts:
            raise ProviderError("there is no turn to go back from", fault="setup")
        target = to if to is not None else starts[-1][1]
        if not 1 <= target <= self._log.last_seq:
            raise ProviderError(f"there is no event {target}; the last is {self._log.last_seq}", fault="setup")
        kept = state_before(events, target) if files else None
        return WayBack(to=target, files=kept, paths=[self._below(path) for path in paths])

    def way_forward(self) -> WayBack:
        """The way to where the last way back began."""
        last = last_way_back(self._log.all_events())
        if last is None or not isinstance(last.event, Rewound):
            raise ProviderError("nothing was gone back from since something was last said", fault="setup")
        return WayBack(to=last.seq, files=last.event.safety, paths=last.event.paths, redoes=last.seq)

    async def plan(self, way: WayBack) -> PlannedRewind:
        """What going a way would change."""
        changes = await self._states.preview(way.files, way.paths) if way.files and self._states else []
        return PlannedRewind(to=way.to, files=way.files, changes=changes)

    async def go(self, way: WayBack, *, conversation: bool = True) -> Rewind:
        """Bring the files to where a way leads, and have the conversation go on from there, if it is to."""
        session, restored = self._log.session, None
        if way.files and self._states:
            restored = await self._states.restore(way.files, session, way.paths)
        rewound = Rewound(
            to=way.to if conversation else self._log.last_seq + 1,
            files=way.files,
            safety=restored.safety.id if restored else None,
            paths=tuple(way.paths),
            redoes=way.redoes,
        )
        if conversation or restored:
            await self._log.record(rewound)
        return Rewind(to=way.to, files=way.files, restored=restored)

    def _below(self, path: str) -> str:
        """A path as states have it; ProviderError for one that is not below the workspace."""
        top = os.path.realpath(self._states.workspace) if self._states else os.getcwd()
        folder, name = os.path.split(os.path.abspath(path))
        found = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
        if found == "." or found.split(os.sep)[0] == os.pardir:
            raise ProviderError(f"'{path}' is no path below the workspace {top}", fault="setup")
        return found

    async def diff(self, turn: int | None) -> str:
        """What a turn changed, as a patch; of the last turn that kept a state, unless one is named."""
        history = read_history(self._log.all_events())
        if turn is not None and not 1 <= turn <= history.turn:
            raise ProviderError(f"there is no turn {turn}; the last is {history.turn}", fault="setup")
        kept = states_by_turn(history)
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
