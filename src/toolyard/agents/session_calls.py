"""The calls of a session: on record before they run and when they end, with every question in between."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.budget import Spent
from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, CallBegan, QuestionAnswered, QuestionAsked
from toolyard.agents.sessions.history import missing
from toolyard.core.conversation import CallAnswer
from toolyard.core.events import CallFinished
from toolyard.core.reach import is_beyond, named
from toolyard.runtime.call_steps.conditions import CallHooks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolyard.agents.sessions.event_log import EventLog
    from toolyard.agents.workspace_states import WorkspaceStates
    from toolyard.core.events import Event
    from toolyard.core.reach import Reach
    from toolyard.core.tool import Plan, ToolCall, ToolResult, ToolSpec
    from toolyard.permissions.verdict import Answer, Approver, PermissionRequest, Verdict
    from toolyard.runtime.call_path import CallPath
    from toolyard.runtime.call_steps.conditions import CallSettings


SPENT = "spent_by_subagent"
"""Where the data of a result has what its subagent took."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A session on whose behalf another works."""

    agent: str
    session: str
    calls: RecordedCalls


class RecordedCalls:
    """Makes the calls of the session's last answer; stands on their path as who is asked and who keeps states."""

    def __init__(
        self,
        log: EventLog,
        approver: Approver | None,
        states: WorkspaceStates | None,
        callers: Sequence[Caller] = (),
    ) -> None:
        """`callers` are the sessions on whose behalf it calls, the nearest first."""
        self._callers = callers
        self._waited = 0.0
        self._asked: list[float] = []
        """Since when each question waits that is open."""
        self._log = log
        self._approver = approver
        self._states = states
        self._writes: set[asyncio.Task[None]] = set()
        self._deferred: set[str] = set()

    @property
    def waited(self) -> float:
        """Seconds of this turn in which a person was waited for, until now."""
        return self._waited + (time.monotonic() - self._asked[0] if self._asked else 0.0)

    def begin_turn(self) -> None:
        """Count waiting anew."""
        self._waited = 0.0

    @property
    def deferred(self) -> list[str]:
        """The calls of the last answer whose questions nobody could answer yet; they have no result."""
        return sorted(self._deferred)

    async def make(
        self,
        calls: Sequence[ToolCall],
        path: CallPath,
        settings: CallSettings,
        cancelled: asyncio.Event | None,
        resuming: Collection[str] = (),
    ) -> Sequence[CallAnswer]:
        """Make those calls that have not begun yet, and those of tools that go on where they were cut off.

        Each result is on the disk when this returns; a call whose question nobody could answer has none.
        """
        self._deferred.clear()
        began = {event.call.id for event in self._log.since_answer() if isinstance(event, CallBegan)}
        lost = [call for call in calls if call.id in began and call.name not in resuming]
        for call in lost:
            await self._log.record(CallAnswered(answer=missing(call, began=True)))
        await path.call_all(
            [call for call in calls if call not in lost],
            settings,
            self._hear,
            cancelled=cancelled,
            hooks=CallHooks(
                approver=self, checkpoints=self, callers=tuple((one.agent, one.session) for one in self._callers)
            ),
        )
        await self.settle()
        kept = (one.answer for one in self._log.since_answer() if isinstance(one, CallAnswered))
        answers = {answer.call_id: answer for answer in kept}
        return [answers[call.id] for call in calls if call.id not in self._deferred]

    async def settle(self) -> None:
        """Wait until all results are kept."""
        while self._writes:
            await asyncio.gather(*self._writes)

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan, reach: Reach) -> None:  # noqa: ARG002
        """A call was permitted: its workspace's state is kept if it may change it, and that it begins is on record."""
        state = None
        if self._states and is_beyond(reach, "look"):
            state = await self._states.keep_for_turn(self._log.session, self._log.history().turn)
        await self._log.record(CallBegan(call=call, reach=named(reach), checkpoint=state))

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        """A question to a person is on record before it is asked, and so is its answer."""
        from toolyard.permissions.approval import question_for
        from toolyard.permissions.verdict import answer_always

        question = await question_for(request, verdict)
        self._log.state = "waiting"
        await self._log.record(QuestionAsked(call_id=request.call_id, question=question.as_mapping()))
        try:
            self._note_question()
            who = self._approver or answer_always(allowed=False, reason="nobody is there to ask")
            answer = await who.approve(request, verdict)
        finally:
            self._note_answer()
        if answer.later:
            self.defer(request.call_id)
            return answer
        self._log.state = "waiting" if self._deferred else "working"
        event = QuestionAnswered(call_id=request.call_id, allowed=answer.allowed, reason=answer.reason)
        await self._log.record(event)
        return answer

    def defer(self, call_id: str) -> None:
        """A call waits for an answer that nobody could give yet: it has no result, and is made again later."""
        self._deferred.add(call_id)

    def _note_question(self) -> None:
        for calls in (self, *(one.calls for one in self._callers)):
            calls._asked.append(time.monotonic())

    def _note_answer(self) -> None:
        """One question less; time counts until none is open."""
        for calls in (self, *(one.calls for one in self._callers)):
            since = calls._asked[0]
            calls._asked.pop()
            if not calls._asked:
                calls._waited += time.monotonic() - since

    def _hear(self, event: Event) -> None:
        """An event of the call path; a result is kept at once, whatever the other calls do, and told after that."""
        if event.call_id in self._deferred:
            return
        if not isinstance(event, CallFinished):
            self._log.tell(event)
            return
        task = asyncio.get_running_loop().create_task(self._keep_result(event))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _keep_result(self, event: CallFinished) -> None:
        spent = msgspec.convert((event.result.data or {}).get(SPENT, {}), Spent)
        answer, seconds = self._answer(event), event.duration
        answered = CallAnswered(answer=answer, seconds=seconds, steps=spent.steps, usage=spent.usage)
        await self._log.record(answered, durable=False)
        self._log.tell(event)

    def _answer(self, event: CallFinished) -> CallAnswer:
        asked = self._log.since_answer()[:1]
        calls = [call for one in asked if isinstance(one, AnswerReceived) for call in one.message.calls]
        name = next((call.name for call in calls if call.id == event.call_id), "")
        return answer_of(event.call_id, name, event.result)


def answer_of(call_id: str, name: str, result: ToolResult) -> CallAnswer:
    """A result as the model reads it."""
    outputs = (result.data or {}).get("output")
    return CallAnswer(
        call_id=call_id,
        name=name,
        text=result.text,
        is_error=result.failure is not None,
        attachments=result.attachments,
        exit_code=result.exit_code,
        timed_out=result.failure == "timeout",
        outputs=tuple(outputs) if isinstance(outputs, list) else (),
    )
