"""A conversation with an agent: what is said goes in, events come out, all of it kept."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.session_calls import Caller, RecordedCalls
from toolyard.agents.session_settings import SessionSettings
from toolyard.agents.sessions.event_log import EventLog
from toolyard.agents.sessions.events import (
    AnswerReceived,
    PromptGiven,
    TurnEnded,
)
from toolyard.agents.sessions.questions import open_questions
from toolyard.agents.turn_loop import Turn
from toolyard.agents.turn_states import PlannedRewind, Rewind, TurnStates
from toolyard.core.content import text_of
from toolyard.core.conversation import AssistantMessage, UserMessage, message_of
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from toolyard.agents.controls import UiSchema
    from toolyard.agents.sessions.claim import SessionClaim
    from toolyard.agents.sessions.event_log import SessionUpdate, SubagentTold
    from toolyard.agents.sessions.events import QuestionAsked, SessionEvent, Stored
    from toolyard.agents.sessions.history import History
    from toolyard.agents.sessions.store import SessionStore
    from toolyard.agents.turn_setup import TurnSetup
    from toolyard.agents.workspace_states import WorkspaceStates
    from toolyard.core.content import Part
    from toolyard.core.conversation import CallAnswer
    from toolyard.core.model import ModelEvent
    from toolyard.core.tool import ToolCall
    from toolyard.permissions.verdict import Approver
    from toolyard.plugins.contract import ApplicationContext
    from toolyard.runtime.lifecycle import Lifecycle


class SessionParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is made with."""

    id: str
    agent: str
    store: SessionStore
    claim: SessionClaim
    lifecycle: Lifecycle
    end: Callable[[str], Any]
    """Ends what tools keep for the session."""
    approver: Approver | None = None
    model: str | None = None
    states: WorkspaceStates | None = None
    caller: AgentSession | None = None
    """On whose behalf it works, if it is a subagent's."""


class AgentSession:
    """One conversation. `send` says something and gives what happens until the turn ends."""

    def __init__(self, parts: SessionParts) -> None:
        self.id = parts.id
        self.agent = parts.agent
        self._parts = parts
        self._log = EventLog(parts.store, parts.id)
        self._settings = SessionSettings(self._log, parts.store, parts.lifecycle, parts.agent, parts.model)
        self.callers: tuple[Caller, ...] = parts.caller.as_caller() if parts.caller else ()
        """The sessions on whose behalf this one works, the nearest first."""
        self._calls = RecordedCalls(self._log, parts.approver, parts.states, self.callers)
        self._states = TurnStates(self._log, parts.states)
        self._said: list[UserMessage] = []
        self._turn: Turn | None = None

    @property
    def waited(self) -> float:
        """Seconds of this turn in which a person was waited for."""
        return self._calls.waited

    @property
    def is_working(self) -> bool:
        return self._turn is not None

    def history(self) -> History:
        """What the conversation is now."""
        return self._log.history()

    def events(self, *, after: int = 0) -> list[Stored]:
        """What was kept, from an event on."""
        return self._log.all_events(after=after)

    @property
    def last_seq(self) -> int:
        """The number of the last event; 0 before there is one."""
        return self._log.last_seq

    async def send(self, prompt: str | Sequence[Part] | None = None) -> AsyncIterator[SessionUpdate]:
        """Say something, and hear what happens until the turn ends; None goes on with a turn that was cut off.

        Leaving the loop early interrupts the turn.
        """
        with self._log.listening() as queue:
            work = asyncio.create_task(self._work(prompt))
            work.add_done_callback(lambda _: queue.put_nowait(None))
            try:
                while (update := await queue.get()) is not None:
                    yield update
                await work
            finally:
                if not work.done():
                    work.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await work

    def say(self, prompt: str | Sequence[Part], *, interrupt: bool = False) -> None:
        """Say something while the agent works: it reads it after the calls that run, or at once."""
        self._said.append(message_of(prompt))
        if interrupt:
            self.interrupt()

    def take_back(self) -> list[UserMessage]:
        """What was said while the agent works and it has not read yet, which it now never will."""
        return self._take_said()

    @property
    def queued(self) -> int:
        """How many messages the agent has not read yet."""
        return len(self._said)

    async def compact(self) -> bool:
        """Let a summary stand for what was said so far; False when there is too little to sum up."""
        if self._turn:
            raise ProviderError("the session works; interrupt it first", fault="setup")
        self._turn = self._new_turn()
        try:
            return await self._turn.sum_up()
        finally:
            self._turn = None

    def interrupt(self) -> None:
        """End the turn; calls that run are cancelled, and what they printed is kept."""
        if self._turn:
            self._turn.interrupt()

    def waiting_questions(self) -> list[QuestionAsked]:
        """The questions of the open turn that nobody has answered, its subagents' too; `send(None)` asks again."""
        return open_questions(self._parts.store, self.id)

    async def set_metadata(self, **values: Any) -> None:
        """Change what the session knows of itself, such as `title` or `plugins`."""
        await self._settings.change(**values)

    @property
    def chosen_plugins(self) -> tuple[str, ...] | None:
        """The plugins that the session itself names; None when the configuration decides."""
        return self._settings.plugins

    async def ui_schema(self) -> UiSchema:
        """What can be set for this conversation, and how it is set now."""
        return await self._settings.ui_schema()

    async def set_control(self, id: str, value: Any) -> None:
        """Set what a control is about, from the next request on; None for what the configuration says.

        Raises `ControlError` for a control that there is not, and for a value that it does not take.
        """
        await self._settings.set_control(id, value)

    async def model_name(self) -> str:
        """The model that it talks to; ProviderError with the line to write when there is none."""
        return (await self._settings.choice()).model

    async def plan_rewind(
        self, to: int | None = None, *, files: bool = True, paths: Sequence[str] = ()
    ) -> PlannedRewind:
        """What going back to before an event, or before the last turn, would change."""
        return await self._idle_states().plan(self._states.way_back(to, files=files, paths=paths))

    async def rewind(
        self, to: int | None = None, *, files: bool = True, conversation: bool = True, paths: Sequence[str] = ()
    ) -> Rewind:
        """Go back to before an event, or before the last turn; files, or only these paths, what was said, or both."""
        way = self._idle_states().way_back(to, files=files, paths=paths)
        return await self._states.go(way, conversation=conversation)

    async def plan_redo(self) -> PlannedRewind:
        """What taking the last way back back would change."""
        return await self._idle_states().plan(self._states.way_forward())

    async def redo(self) -> Rewind:
        """Take the last way back back, as long as nothing was said since: files and conversation are as before it."""
        return await self._idle_states().go(self._states.way_forward())

    async def turn_diff(self, turn: int | None = None) -> str:
        """What a turn changed in the workspace, as a patch; of the last turn that kept a state, unless one is named."""
        return await self._states.diff(turn)

    async def keep_end(self, turn: int) -> str | None:
        """The state at the end of a turn before which one was kept."""
        return await self._states.keep_end(turn)

    def _idle_states(self) -> TurnStates:
        """What goes back and forth, while nobody works."""
        if self._turn:
            raise ProviderError("the session works; interrupt it first", fault="setup")
        return self._states

    async def aclose(self) -> None:
        """End the work, and what tools keep for the session; it can be opened again."""
        self.interrupt()
        await self._calls.settle()
        await self._parts.end(self.id)
        self._parts.claim.release()

    # What those ask who watch.

    def observe(self, hear: Callable[[SessionUpdate], None]) -> None:
        """Have something told all that happens from now on."""
        self._log.observers.append(hear)

    def plugin_context(self) -> ApplicationContext:
        """What an application plugin may know of the conversation, and do with it."""
        return self._settings.plugin_context()

    # What a subagent asks of the session that it works for.

    def as_caller(self) -> tuple[Caller, ...]:
        """This session, and those that it works for itself."""
        return Caller(agent=self.agent, session=self.id, calls=self._calls), *self.callers

    @property
    def approver(self) -> Approver | None:
        return self._parts.approver

    @property
    def turn(self) -> Turn | None:
        """The turn that it works on."""
        return self._turn

    def answer_seq(self) -> int:
        """The number of the model's last answer, within which ids of calls mean something."""
        return self._log.answer_seq()

    def defer(self, call_id: str) -> None:
        """A call waits for an answer that nobody could give yet."""
        self._calls.defer(call_id)

    # What a turn asks of the session.

    async def record(self, *events: SessionEvent, durable: bool = True) -> None:
        """Keep events and tell them."""
        await self._log.record(*events, durable=durable)

    def tell(self, event: ModelEvent | SubagentTold) -> None:
        """Tell what is not kept."""
        self._log.tell(event)

    async def steer(self) -> bool:
        """Take up what was said while the agent worked."""
        if said := self._take_said():
            await self.record(*(PromptGiven(message=message, during_turn=True) for message in said))
        return bool(said)

    async def call(self, calls: Sequence[ToolCall]) -> Sequence[CallAnswer]:
        """Make the calls of an answer that have not begun yet; each result is on the disk when this returns."""
        path, settings = await self._parts.lifecycle.for_call(self.agent, self.id, self.chosen_plugins, in_turn=True)
        tools = self._parts.lifecycle.known().agent(self.agent, self.chosen_plugins).catalog.tools()
        resuming = {tool.spec.name for tool in tools if tool.spec.hints.resumes}
        cancelled = self._turn.interrupted if self._turn else None
        return await self._calls.make(calls, path, settings, cancelled, resuming)

    def waiting(self) -> Sequence[str]:
        """The calls whose questions nobody could answer yet."""
        return self._calls.deferred

    async def _work(self, prompt: str | Sequence[Part] | None) -> None:
        if self._turn:
            raise ProviderError("the session works already; `say` something while it does", fault="setup")
        self._calls.begin_turn()
        self._turn = self._new_turn()
        self._log.state = "working"
        try:
            await self._close_cut_off_turn(prompt)
            said = [message_of(prompt)] if prompt is not None else []
            for message in said:
                await self._settings.give_title(text_of(message.content))
            ended = await self._turn.run(said)
            while ended and self._said:  # said so late that no step took it up
                self._turn = self._new_turn()
                ended = await self._turn.run(self._take_said())
        finally:
            self._turn = None

    def _new_turn(self) -> Turn:
        caller = self._parts.caller
        return Turn(self, self._setup, session=self.id, caller=caller.turn if caller else None)

    def _take_said(self) -> list[UserMessage]:
        said, self._said = self._said, []
        return said

    async def _close_cut_off_turn(self, prompt: object) -> None:
        """A turn that the application did not live to end: keep what was received; with something new to do, end it."""
        history = self.history()
        if not history.is_open:
            return
        if history.partial:
            message = AssistantMessage(text=history.partial, stop="paused")
            await self.record(AnswerReceived(message=message))
        if prompt is not None:
            reason = "the application ended in the middle of it"
            await self.record(TurnEnded(turn=history.turn, outcome="interrupted", reason=reason))

    async def _setup(self) -> TurnSetup:
        return await self._settings.setup(self.history().messages)
