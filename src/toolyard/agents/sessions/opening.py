"""The sessions of one application: opened one by one, each by one process, closed together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.agents.application_plugins import EventWatchers
from toolyard.agents.checkpoints.coverage import Coverage
from toolyard.agents.session import AgentSession, SessionParts
from toolyard.agents.sessions.claim import SessionClaim
from toolyard.agents.sessions.store import SessionStore
from toolyard.agents.workspace_states import WorkspaceStates
from toolyard.config.agent_settings import CheckpointSettings, settings_in

if TYPE_CHECKING:
    from toolyard.agents.application_plugins import EventWatcher
    from toolyard.core.tool import JsonObject
    from toolyard.permissions.verdict import Approver
    from toolyard.runtime.lifecycle import Lifecycle
    from toolyard.runtime.loaded import Loaded


class Sessions:
    """What all sessions of an application share."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._folder = lifecycle.options.sessions
        self._store: SessionStore | None = None
        self._open: dict[str, AgentSession] = {}
        self._states: dict[Path, WorkspaceStates] = {}
        self._watchers = EventWatchers()

    @property
    def store(self) -> SessionStore:
        """Made when it is first asked for."""
        if self._store is None:
            self._store = SessionStore(self._folder / "sessions.sqlite")
        return self._store

    async def open(
        self,
        agent: str | None,
        *,
        id: str | None = None,
        model: str | None = None,
        approver: Approver | None = None,
        metadata: JsonObject | None = None,
    ) -> AgentSession:
        """A new session, or one that goes on."""
        loaded = await self._lifecycle.current()
        row = self.store.session(id) if id else None
        name = agent or (row.agent if row else loaded.default_agent())
        loaded.agent(name)  # an agent that is not there is told before anything is written
        if row is None:
            row = await self.store.create(name, workspace=str(Path.cwd()))
        claim = SessionClaim(self._folder / "locks", row.id)
        parts = SessionParts(
            id=row.id,
            agent=name,
            store=self.store,
            claim=claim,
            lifecycle=self._lifecycle,
            end=self._end,
            approver=approver or self._lifecycle.options.approver,
            model=model,
            states=self._states_of(Path.cwd(), name),
            watchers=await self._watchers_of(loaded, name),
        )
        session = self._open[row.id] = AgentSession(parts)
        if metadata:
            await session.set_metadata(**metadata)
        return session

    async def aclose(self) -> None:
        """Close every session, then the store."""
        for session in list(self._open.values()):
            await session.aclose()
        await self._watchers.aclose()
        if self._store:
            self._store.close()

    async def _end(self, session: str) -> None:
        self._open.pop(session, None)
        await self._lifecycle.end_session(session)

    async def _watchers_of(self, loaded: Loaded, agent: str) -> list[EventWatcher]:
        catalog = loaded.agent(agent).catalog
        on = [found.plugin for id, found in catalog.plugins.items() if catalog.decisions[id].on]
        return await self._watchers.begin(on, loaded.configuration.for_agent(agent))

    def _states_of(self, workspace: Path, agent: str) -> WorkspaceStates | None:
        """The states of a workspace, which all sessions that work there share; None when none are wanted."""
        config = self._lifecycle.known().configuration.for_agent(agent)
        settings = settings_in(config, "checkpoints", CheckpointSettings)
        if not settings.enabled:
            return None
        if workspace not in self._states:
            self._states[workspace] = WorkspaceStates(
                self._folder / "checkpoints",
                workspace,
                coverage_of(settings),
                own=[self._folder],
                guarded=self._guarded,
            )
        return self._states[workspace]

    def _guarded(self) -> list[str]:
        sandbox = self._lifecycle.known().host.children("work").sandbox
        return sandbox.layout.guards() if sandbox else []


def coverage_of(settings: CheckpointSettings) -> Coverage:
    return Coverage(
        largest_file=settings.largest_file_bytes,
        most_files=settings.most_files,
        total=settings.total_bytes,
        leave_out=frozenset(settings.leave_out),
    )
