"""The sessions of one application: opened one by one, each by one process, closed together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.agents.application_plugins import EventWatchers, told_to
from toolyard.agents.checkpoints.coverage import Coverage
from toolyard.agents.model_choice import settings_in
from toolyard.agents.session import AgentSession, SessionParts
from toolyard.agents.sessions.claim import LOCKS, SessionClaim
from toolyard.agents.sessions.database import StoreError
from toolyard.agents.sessions.questions import subagent_session
from toolyard.agents.sessions.store import SessionStore
from toolyard.agents.workspace_states import WorkspaceStates
from toolyard.config.agent_settings import CheckpointSettings
from toolyard.files.door import FileRefused

if TYPE_CHECKING:
    from toolyard.agents.sessions.store import SessionRow
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
            try:
                self._lifecycle.sessions.use()
            except FileRefused as refused:
                raise StoreError(f"{refused.strerror}") from None
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
        session = self._opened(row, name, approver=approver or self._lifecycle.options.approver, model=model)
        await self._watch(session, loaded)
        if metadata:
            await session.set_metadata(**metadata)
        return session

    def caller(self, session: str) -> AgentSession | None:
        """The session that a call comes from, if it is one of these."""
        return self._open.get(session)

    async def open_subagent(self, agent: str, caller: AgentSession | None, call_id: str) -> AgentSession:
        """The session in which an agent works on a call of another: a new one, or that of before it was cut off."""
        parent = caller.id if caller else None
        id = subagent_session(caller.id, caller.answer_seq(), call_id) if caller else None
        if id and self.store.has(id):
            row = self.store.session(id)
        else:
            row = await self.store.create(agent, id=id, workspace=str(Path.cwd()), parent=parent)
        approver = caller.approver if caller else self._lifecycle.options.approver
        return self._opened(row, agent, approver=approver, caller=caller)

    def _opened(
        self,
        row: SessionRow,
        agent: str,
        *,
        approver: Approver | None,
        model: str | None = None,
        caller: AgentSession | None = None,
    ) -> AgentSession:
        claim = SessionClaim(self._folder / LOCKS, row.id)
        parts = SessionParts(
            id=row.id,
            agent=agent,
            store=self.store,
            claim=claim,
            lifecycle=self._lifecycle,
            end=self._end,
            approver=approver,
            model=model,
            states=self._states_of(Path.cwd(), agent),
            caller=caller,
        )
        session = self._open[row.id] = AgentSession(parts)
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

    async def _watch(self, session: AgentSession, loaded: Loaded) -> None:
        """Have the agent's application plugins hear what happens in a session."""
        catalog = loaded.agent(session.agent).catalog
        on = [found.plugin for id, found in catalog.plugins.items() if catalog.decisions[id].on]
        if watchers := await self._watchers.begin(on, loaded.configuration.for_agent(session.agent)):
            session.observe(told_to(watchers, session.plugin_context))

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
