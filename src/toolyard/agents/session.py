"""A conversation with an agent: what is said goes in, events come out, all of it kept."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.controls import chosen_plugins, metadata_with, set_controls, ui_schema
from toolyard.agents.model_choice import model_of
from toolyard.agents.request import features_of, with_controls
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    MetadataSet,
    PromptGiven,
    QuestionAnswered,
    QuestionAsked,
    Rewound,
    TurnEnded,
)
from toolyard.agents.sessions.history import HistoryFold, missing
from toolyard.agents.sessions.messages import answer_of, message_of
from toolyard.agents.turn_loop import Turn, TurnSetup
from toolyard.agents.turn_states import PlannedRewind, Rewind, rewind_target, state_before, states_by_turn
from toolyard.config.agent_settings import BudgetSettings, ContextSettings, settings_in
from toolyard.config.layers import mapping
from toolyard.core.content import text_of
from toolyard.core.conversation import AssistantMessage, CallAnswer, UserMessage
from toolyard.core.events import CallFinished, Event
from toolyard.core.model import Answered, ModelEvent, ModelRequest
from toolyard.errors import ProviderError
from toolyard.plugins.contract import ApplicationContext
from toolyard.runtime.call import CallHooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from toolyard.agents.application_plugins import EventWatcher
    from toolyard.agents.checkpoints.store import RestoreOutcome
    from toolyard.agents.controls import UiSchema
    from toolyard.agents.model_choice import ModelChoice
    from toolyard.agents.sessions.claim import SessionClaim
    from toolyard.agents.sessions.events import SessionEvent, SessionUpdate, Stored
    from toolyard.agents.sessions.history import History
    from toolyard.agents.sessions.store import SessionState, SessionStore
    from toolyard.agents.workspace_states import WorkspaceStates
    from toolyard.core.content import Part
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject, Plan, ToolCall, ToolSpec
    from toolyard.permissions.verdict import Answer, Approver, PermissionRequest, Verdict
    from toolyard.runtime.lifecycle import Lifecycle
    from toolyard.runtime.loaded import Loaded


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
    watchers: Sequence[EventWatcher] = ()
    """The application plugins that hear what happens."""


class AgentSession:
    """One conversation. `send` says something and gives what happens until the turn ends."""

    def __init__(self, parts: SessionParts) -> None:
        self.id = parts.id
        self.agent = parts.agent
        self.model = parts.model
        self._parts = parts
        self._events = parts.store.events(parts.id)
        self._fold = HistoryFold()
        self._fold.add(*self._events)
        self._listeners: list[asyncio.Queue[SessionUpdate | None]] = []
        self._said: list[UserMessage] = []
        self._turn: Turn | None = None
        self._waited = 0.0
        self._state: SessionState = "idle"
        """What the list shows, from the next event on."""
        self._writes: set[asyncio.Task[None]] = set()
        self._context: ApplicationContext | None = None
        """What those who watch are told of this turn."""

    @property
    def waited(self) -> float:
        """Seconds of this turn in which a person was waited for."""
        return self._waited

    @property
    def is_working(self) -> bool:
        return self._turn is not None

    def history(self) -> History:
        """What the conversation is now."""
        return self._fold.history()

    def events(self, *, after: int = 0) -> list[Stored]:
        """What was kept, from an event on."""
        return [one for one in self._events if one.seq > after]

    async def send(self, prompt: str | Sequence[Part] | None = None) -> AsyncIterator[SessionUpdate]:
        """Say something, and hear what happens until the turn ends; None goes on with a turn that was cut off.

        Leaving the loop early interrupts the turn.
        """
        queue: asyncio.Queue[SessionUpdate | None] = asyncio.Queue()
        self._listeners.append(queue)
        work = asyncio.create_task(self._work(prompt))
        work.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (update := await queue.get()) is not None:
                yield update
            await work
        finally:
            self._listeners.remove(queue)
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
        self._turn = Turn(self, self._setup, session=self.id)
        try:
            return await self._turn.sum_up()
        finally:
            self._turn = None

    def interrupt(self) -> None:
        """End the turn; calls that run are cancelled, and what they printed is kept."""
        if self._turn:
            self._turn.interrupted.set()

    async def set_metadata(self, **values: Any) -> None:
        """Change what the session knows of itself, such as `title` or `plugins`."""
        merged = {**self._metadata(), **values}
        await self.record(MetadataSet(values=values))
        await self._parts.store.update(self.id, metadata=merged, title=values.get("title"))

    async def ui_schema(self) -> UiSchema:
        """What can be set for this conversation, and how it is set now."""
        return await ui_schema(await self._parts.lifecycle.current(), self.agent, self._metadata())

    async def set_control(self, id: str, value: Any) -> None:
        """Set what a control is about, from the next request on; None for what the configuration says.

        Raises `ControlError` for a control that there is not, and for a value that it does not take.
        """
        changed = metadata_with(await self.ui_schema(), self._metadata(), id, value)
        if id == "model":
            self.model = None
        await self.set_metadata(**changed)

    def _metadata(self) -> JsonObject:
        return self._parts.store.session(self.id).metadata

    async def model_name(self) -> str:
        """The model that it talks to; ProviderError with the line to write when there is none."""
        return self._choice(await self._parts.lifecycle.current()).model

    def _choice(self, loaded: Loaded) -> ModelChoice:
        model = self.model or set_controls(self._metadata()).get("model")
        return model_of(loaded, self.agent, self.chosen_plugins, str(model) if model else None)

    @property
    def chosen_plugins(self) -> tuple[str, ...] | None:
        """The plugins that the session itself names; None when the configuration decides."""
        return chosen_plugins(self._metadata())

    async def plan_rewind(self, to: int | None = None, *, files: bool = True) -> PlannedRewind:
        """What going back to before an event, or before the last turn, would change."""
        target = self._target(to)
        states, kept = self._parts.states, state_before(self._events, target) if files else None
        changes = await states.preview(kept) if kept and states else []
        return PlannedRewind(to=target, files=kept, changes=changes)

    async def rewind(self, to: int | None = None, *, files: bool = True, conversation: bool = True) -> Rewind:
        """Go back to before an event, or before the last turn; files, what was said, or both."""
        target = self._target(to)
        states, kept = self._parts.states, state_before(self._events, target) if files else None
        restored = await states.restore(kept, self.id) if kept and states else None
        if conversation:
            safety = restored.safety.id if restored else None
            await self.record(Rewound(to=target, files=kept, safety=safety))
        return Rewind(to=target, files=kept, restored=restored)

    async def restore_state(self, id: str) -> RestoreOutcome:
        """Bring the files to a state that was kept, such as the one before a way back; the conversation stays."""
        if self._turn or self._parts.states is None:
            raise ProviderError(
                "no state can be had back while the session works, or where none is kept", fault="setup"
            )
        return await self._parts.states.restore(id, self.id)

    async def turn_diff(self, turn: int | None = None) -> str:
        """What a turn changed in the workspace, as a patch; of the last turn that kept a state, unless one is named."""
        states = self._parts.states
        kept = states_by_turn(self.history())
        if states is None or not kept or (turn is not None and turn not in kept):
            return ""
        return await states.diff(*kept[turn if turn is not None else max(kept)])

    async def keep_end(self, turn: int) -> str | None:
        """The state at the end of a turn before which one was kept."""
        if self._parts.states is None or turn not in states_by_turn(self.history()):
            return None
        return await self._parts.states.keep(self.id, f"after turn {turn}")

    def _target(self, to: int | None) -> int:
        if self._turn:
            raise ProviderError("the session works; interrupt it first", fault="setup")
        return rewind_target(self.history(), to)

    async def aclose(self) -> None:
        """End the work, and what tools keep for the session; it can be opened again."""
        self.interrupt()
        await self._settle()
        await self._parts.end(self.id)
        self._parts.claim.release()

    # What a turn asks of the session.

    async def record(self, *events: SessionEvent, durable: bool = True) -> None:
        """Keep events and tell them."""
        if isinstance(events[-1], TurnEnded):
            self._state = "idle"
        stored = await self._parts.store.append(self.id, events, durable=durable, state=self._state)
        self._events += stored
        self._fold.add(*stored)
        for one in stored:
            self._broadcast(one)

    def tell(self, event: ModelEvent) -> None:
        """Tell what is not kept."""
        self._broadcast(event)

    async def steer(self) -> bool:
        """Take up what was said while the agent worked."""
        said, self._said = self._said, []
        if said:
            await self.record(*(PromptGiven(message=message, during_turn=True) for message in said))
        return bool(said)

    async def call(self, calls: Sequence[ToolCall]) -> Sequence[CallAnswer]:
        """Make the calls of an answer that have not begun yet; each result is on the disk when this returns."""
        began = {event.call.id for event in self._since_answer() if isinstance(event, CallBegan)}
        path, settings = await self._parts.lifecycle.for_call(self.agent, self.id, self.chosen_plugins)
        hooks = CallHooks(approver=SessionApprover(self, self._parts.approver), checkpoints=SessionHook(self))
        turn = self._turn
        for call in calls:
            if call.id in began:
                await self.record(CallAnswered(answer=missing(call, began=True)))
        await path.call_all(
            [call for call in calls if call.id not in began],
            settings,
            self._hear,
            cancelled=turn.interrupted if turn else None,
            hooks=hooks,
        )
        await self._settle()
        answers = {one.answer.call_id: one.answer for one in self._since_answer() if isinstance(one, CallAnswered)}
        return [answers[call.id] for call in calls]

    def _since_answer(self) -> list[SessionEvent]:
        """What happened since the model's last answer; ids of calls mean something only there."""
        for number in range(len(self._events) - 1, -1, -1):
            if isinstance(self._events[number].event, AnswerReceived):
                return [one.event for one in self._events[number:]]
        return []

    def _hear(self, event: Event) -> None:
        """An event of the call path; a result is kept at once, whatever the other calls do, and told after that."""
        if not isinstance(event, CallFinished):
            self._broadcast(event)
            return
        task = asyncio.get_running_loop().create_task(self._keep_result(event))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _keep_result(self, event: CallFinished) -> None:
        await self.record(CallAnswered(answer=self._answer(event), seconds=event.duration), durable=False)
        self._broadcast(event)

    def _answer(self, event: CallFinished) -> CallAnswer:
        asked = self._since_answer()[:1]
        calls = [call for one in asked if isinstance(one, AnswerReceived) for call in one.message.calls]
        return answer_of(
            event.call_id, next((call.name for call in calls if call.id == event.call_id), ""), event.result
        )

    async def _settle(self) -> None:
        """Wait until all results are kept."""
        while self._writes:
            await asyncio.gather(*self._writes)

    async def _work(self, prompt: str | Sequence[Part] | None) -> None:
        if self._turn:
            raise ProviderError("the session works already; `say` something while it does", fault="setup")
        self._waited, self._context = 0.0, None
        self._turn = Turn(self, self._setup, session=self.id)
        self._state = "working"
        try:
            await self._close_cut_off_turn(prompt)
            if prompt is not None:
                await self.record(PromptGiven(message=message_of(prompt)), durable=False)
                await self._give_title(prompt)
            await self._turn.run()
            while self._said:  # said so late that no step took it up
                await self.record(*(PromptGiven(message=message) for message in self._take_said()))
                self._turn = Turn(self, self._setup, session=self.id)
                await self._turn.run()
        finally:
            self._turn = None

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

    async def _give_title(self, prompt: str | Sequence[Part]) -> None:
        if not self._parts.store.session(self.id).title:
            text = " ".join(text_of(message_of(prompt).content).split())
            await self._parts.store.update(self.id, title=text if len(text) <= 60 else f"{text[:59]}…")

    async def _setup(self) -> TurnSetup:
        """What the next request works with, by the configuration as it is now."""
        loaded = await self._parts.lifecycle.current()
        chosen = self.chosen_plugins
        choice = self._choice(loaded)
        controls = set_controls(self._metadata())
        features = features_of(loaded, self.agent, models=[choice.model], chosen=chosen, controls=controls)
        system, options = await features.system_message(), await features.request_options()
        config = with_controls(choice.config, controls)
        return TurnSetup(
            stream=choice.provider.stream,
            model=choice.model,
            system=system.text,
            tools=[tool.spec for tool in loaded.agent(self.agent, chosen).catalog.tools()],
            options={**mapping(config.get("options")), **options.options},
            config=config,
            context=settings_in(config, "context", ContextSettings),
            budget=settings_in(config, "budget", BudgetSettings),
        )

    def _broadcast(self, update: SessionUpdate) -> None:
        for queue in self._listeners:
            queue.put_nowait(update)
        if self._parts.watchers:
            self._context = self._context or self._watched()
            for watcher in self._parts.watchers:
                watcher.hear(update, self._context)

    def _watched(self) -> ApplicationContext:
        lifecycle = self._parts.lifecycle
        return ApplicationContext(
            agent=self.agent,
            session=self.id,
            config=lifecycle.known().configuration.for_agent(self.agent),
            metadata=self._metadata,
            set_metadata=self.set_metadata,
            ask=self._ask_beside,
        )

    async def _ask_beside(self, prompt: str, *, model: str | None = None) -> str:
        """A question of a plugin's own to the agent's provider; the conversation knows nothing of it."""
        choice = model_of(await self._parts.lifecycle.current(), self.agent, self.chosen_plugins, model or self.model)
        request = ModelRequest(
            model=choice.model, messages=[message_of(prompt)], may_call=False, config=choice.config, session=self.id
        )
        async for event in choice.provider.stream(request):
            if isinstance(event, Answered):
                return event.message.text
        raise ProviderError("the provider ended without an answer", fault="answer")

    # What the call path asks of the session.

    async def before_call(self, call: ToolCall, reach: Reach) -> None:
        """A call was permitted: its workspace's state is kept if it may change it, and that it begins is on record."""
        states, state = self._parts.states, None
        if states and reach != "look":
            state = await states.keep_for_turn(self.id, self.history().turn)
        await self.record(CallBegan(call=call, reach=reach, checkpoint=state))

    async def ask(self, approver: Approver | None, request: PermissionRequest, verdict: Verdict) -> Answer:
        """A question to a person is on record before it is asked, and so is its answer."""
        from toolyard.permissions.approval import question_for
        from toolyard.permissions.verdict import answer_always

        question = await question_for(request, verdict)
        self._state = "waiting"
        await self.record(QuestionAsked(call_id=request.call_id, question=question.as_mapping()))
        started = time.monotonic()
        try:
            who = approver or answer_always(allowed=False, reason="nobody is there to ask")
            answer = await who.approve(request, verdict)
        finally:
            self._waited += time.monotonic() - started
            self._state = "working"
        event = QuestionAnswered(call_id=request.call_id, allowed=answer.allowed, reason=answer.reason)
        await self.record(event)
        return answer


class SessionApprover(msgspec.Struct, frozen=True):
    """Asks through the session, so that a question survives."""

    session: AgentSession
    approver: Approver | None

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        """Yes or no."""
        return await self.session.ask(self.approver, request, verdict)


class SessionHook(msgspec.Struct, frozen=True):
    """Tells the session that a call is about to run."""

    session: AgentSession

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan, reach: Reach) -> None:  # noqa: ARG002
        """It is on record, and what it may change is kept."""
        await self.session.before_call(call, reach)
