"""A session goes, and with it the states of its workspace that no other session names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.agents.checkpoints.store import CheckpointError, CheckpointStore, workspace_name
from toolyard.agents.sessions.claim import LOCKS, SessionClaim
from toolyard.agents.sessions.events import CallBegan, Rewound, TurnEnded
from toolyard.agents.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.checkpoints.store import Checkpoint

FOLDER = "checkpoints"
"""Beside the file of the sessions."""


async def delete_session(store: SessionStore, id: str) -> int:
    """Remove a session; the number of bytes that its states had to themselves. SessionTaken while somebody uses it."""
    row = store.session(id)
    claim = SessionClaim(store.path.parent / LOCKS, row.id)
    try:
        await store.delete(row.id)
        claim.remove()
    finally:
        claim.release()
    return await asyncio.to_thread(collect_states, store.path, row.workspace)


def collect_states(sessions: Path, workspace: str) -> int:
    """Drop the states of a workspace that no session names any more; the number of bytes that were freed."""
    folder = sessions.parent / FOLDER
    if not workspace or not (folder / workspace_name(str(Path(workspace).resolve()))).is_dir():
        return 0
    store = SessionStore(sessions)  # of its own, since this takes time and is done in a thread
    try:
        states = CheckpointStore(folder, Path(workspace), home=Path.home())
        try:
            return states.collect(lambda kept: needed_by_sessions(store, kept))
        finally:
            states.close()
    except CheckpointError:
        return 0
    finally:
        store.close()


def needed_by_sessions(store: SessionStore, kept: Sequence[Checkpoint]) -> set[str]:
    """What any event of any session names, also those gone back from, and what was kept for a session that is there."""
    living = {row.id for row in store.sessions(subagents=True)}
    return {*named_states(store), *(one.id for one in kept if one.session in living)}


def named_states(store: SessionStore) -> Iterator[str]:
    for event in store.events_of("call_began", "turn_ended", "rewound"):
        match event:
            case CallBegan(checkpoint=id) | TurnEnded(checkpoint=id) if id:
                yield id
            case Rewound():
                yield from filter(None, (event.files, event.safety))
