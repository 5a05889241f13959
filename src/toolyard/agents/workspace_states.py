"""When the state of a workspace is kept: once a turn, before the first call that may change something."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolyard.agents.checkpoints.packs import Damaged
from toolyard.agents.checkpoints.scan import TooMany
from toolyard.agents.checkpoints.store import CheckpointError, CheckpointStore
from toolyard.files.inside import is_inside
from toolyard.files.write_times import OpenSpan
from toolyard.process.sandbox.git.nested import NestedRepositories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.checkpoints.coverage import Coverage
    from toolyard.agents.checkpoints.store import Checkpoint, RestoreOutcome

log = logging.getLogger("toolyard.checkpoints")
Restoring = TypeVar("Restoring")
TICK = 0.02
"""By how much the kernel's time of a change may lag behind."""


class WorkspaceStates:
    """The kept states of one workspace, for all its sessions."""

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        coverage: Coverage | None = None,
        *,
        own: Sequence[Path] = (),
        guarded: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`own` are folders of the application; `guarded` tells what tools cannot change, which no state has."""
        self.workspace = workspace
        self._guarded = guarded
        self.refusal: str | None = None
        """Why no states are kept; None while they are."""
        self._store: CheckpointStore | None = None
        self._kept: dict[tuple[str, int], str] = {}
        self._lock = asyncio.Lock()
        try:
            self._store = CheckpointStore(folder, workspace, home=Path.home(), coverage=coverage, own=own)
        except CheckpointError as error:
            self.refusal = str(error)

    async def keep_for_turn(self, session: str, turn: int) -> str | None:
        """The state before the first call of a turn; kept once, however many calls there are."""
        async with self._lock:
            if (session, turn) not in self._kept:
                kept = await self._keep(session, f"before turn {turn}")
                if kept is None:
                    return None
                self._kept[session, turn] = kept.id
            return self._kept[session, turn]

    async def keep(self, session: str, label: str) -> str | None:
        """The state of now."""
        async with self._lock:
            kept = await self._keep(session, label)
            return kept.id if kept else None

    async def restore(self, id: str, session: str, paths: Sequence[str] = ()) -> RestoreOutcome:
        """Go back to a state, all of it or these paths."""
        store = self.store()
        async with self._lock:
            return await asyncio.to_thread(
                lambda: self._as_tools_would(
                    lambda: store.restore(store.find(id), paths, session=session, without=self.guarded())
                )
            )

    async def preview(self, id: str, paths: Sequence[str] = ()) -> list[Change]:
        """What going back to a state would change."""
        store, without = self.store(), self.guarded()
        async with self._lock:
            return await asyncio.to_thread(lambda: store.preview(store.find(id), paths, without=without))

    async def diff(self, before: str, after: str | None) -> str:
        """What changed from one state to another, or to now, as a patch."""
        store, without = self.store(), self.guarded()

        def work() -> str:
            later = store.find(after) if after else store.keep(label="looked at", without=without)
            return store.diff(store.find(before), later)

        async with self._lock:
            return await asyncio.to_thread(work)

    async def finish_restoring(self) -> RestoreOutcome | None:
        """Go on with a way back that was cut off."""
        store = self._store
        if store is None or store.unfinished() is None:
            return None
        return await asyncio.to_thread(lambda: self._as_tools_would(lambda: store.finish(without=self.guarded())))

    def _as_tools_would(self, restore: Callable[[], Restoring]) -> Restoring:
        """Restore, so that what comes back counts as written by tools, as it may have been: it is not obeyed unseen."""
        started = time.time()
        top = os.path.realpath(self.workspace)
        span = OpenSpan([top], {})
        try:
            return restore()
        finally:
            NestedRepositories([top], started).sweep(at_end=True)
            span.close(time.time() + TICK, {})

    def guarded(self) -> list[str]:
        """What tools cannot change, below the workspace: its owner may at any time, so that going back must not."""
        top = os.path.realpath(self.workspace)
        return [os.path.relpath(path, top) for path in self._guarded() if is_inside(path, top) and path != top]

    def store(self) -> CheckpointStore:
        """The store; CheckpointError with the reason when there is none."""
        if self._store is None:
            raise CheckpointError(self.refusal or "no states are kept")
        return self._store

    async def _keep(self, session: str, label: str) -> Checkpoint | None:
        """A state, or None when it cannot be kept, which is said once and does not stop the call."""
        store = self._store
        if store is None:
            return None
        try:
            return await asyncio.to_thread(lambda: store.keep(session=session, label=label, without=self.guarded()))
        except (CheckpointError, TooMany, Damaged, OSError) as error:
            log.warning("the state of %s could not be kept: %s", self.workspace, error)
            self.refusal = str(error)
            return None
