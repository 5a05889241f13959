"""One turn of an agent: ask the model, make its calls, give it the results, until there is an answer.

    record the prompt → shorten what is too long → ask → record the answer → permit and run its calls, each on record
    before and after → again, until it answers, a bound is reached, or somebody ends it

Everything is on disk before it is acted on. The loop keeps no state of its own that matters: after a stop at any moment
the session's events say how far it came.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from toolyard.agents import context_window, repetition
from toolyard.agents.answer_listening import AnswerListener, cut_off_call, cut_off_result
from toolyard.agents.budget import Spent, TimeBound, spent_in, spent_up
from toolyard.agents.sessions.events import (
    AnswerReceived,
    Noticed,
    Outcome,
    PromptGiven,
    TurnEnded,
    TurnStarted,
    TurnWaits,
)
from toolyard.core.conversation import message_of
from toolyard.core.model import ModelRequest
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.sessions.history import History
    from toolyard.agents.turn_setup import Conversation, SetupFunction, TurnSetup
    from toolyard.config.agent_settings import BudgetSettings
    from toolyard.core.conversation import AssistantMessage, Message, Usage, UserMessage
    from toolyard.core.tool import ToolCall

LAST_ANSWER = (
    "[{reason}, so this is the last answer of the turn, and tools cannot be called any more. "
    "Say what was done, what is left, and what the user should know.]"
)
EMPTY = "[The answer was empty. Answer the user, or call a tool.]"
MOST_EMPTY_ANSWERS = 2
LAST_SECONDS = 60.0
"""How long the last answer may take of a turn whose time is up."""


class Ended(Exception):
    """The turn is over."""

    def __init__(self, outcome: Outcome, reason: str = "", *, hint: str = "", fault: str = "") -> None:
        self.outcome: Outcome = outcome
        self.reason = reason
        self.hint = hint
        self.fault = fault


class Waits(Exception):
    """The turn cannot go on before a question is answered."""


class Turn:
    """One turn, from what was said to its end."""

    def __init__(
        self, conversation: Conversation, setup: SetupFunction, *, session: str, caller: Turn | None = None
    ) -> None:
        """`caller` is the turn on whose behalf a subagent works: what it takes, that one takes, too."""
        self.interrupted = asyncio.Event()
        """Ends the calls that run."""
        self._time_is_up = False
        """Whether that is why they end."""
        self._conversation = conversation
        self._setup_function = setup
        self._session = session
        self._caller = caller
        self._budget: BudgetSettings | None = None
        self._spent = Spent()
        self._repetition = repetition.Repetition()
        self._started = time.monotonic()
        self._empty_answers = 0
        self._listener = AnswerListener(conversation)

    async def run(self, said: Sequence[UserMessage] = ()) -> TurnEnded | None:
        """Work on what was said until the turn ends, which it always does by saying why; None when it waits.

        With nothing said, a turn that was cut off goes on.
        """
        conversation = self._conversation
        history = conversation.history()
        number = history.turn if history.is_open else history.turn + 1
        if not history.is_open:
            prompts = [PromptGiven(message=message) for message in said]
            await conversation.record(*prompts, TurnStarted(turn=number), durable=False)
        before = spent_in(conversation.history().events)
        self.spend(before.usage, before.steps)
        try:
            if history.unanswered:
                await self._call([one.call for one in history.unanswered])
            while True:
                await self._step()
        except Waits:
            await conversation.record(TurnWaits(turn=number, questions=tuple(conversation.waiting())))
            return None
        except Ended as end:
            outcome = end
        except ProviderError as error:
            outcome = Ended("error", str(error), hint=error.hint, fault=error.fault)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(number, Ended("interrupted", "the turn was cancelled")))
            raise
        return await self._end(number, outcome)

    async def sum_up(self) -> bool:
        """Let a summary stand for what was before, whether or not there is room; False when there is too little."""
        try:
            await self._shorten(await self._setup_function(), force=True)
        except Ended:
            return False
        return True

    def interrupt(self) -> None:
        """End the turn, unless something was said that it should go on with."""
        self._time_is_up = False
        self._stop()

    def _stop(self) -> None:
        self.interrupted.set()
        self._listener.stop()

    def _end_by_time(self) -> None:
        """End what runs; then the model says how far it came."""
        if not self.interrupted.is_set():
            self._time_is_up = True
            self._stop()

    def spend(self, usage: Usage, steps: int = 1) -> None:
        """Count what was taken, also for whom this turn works."""
        self._spent.add(usage, steps)
        if self._caller:
            self._caller.spend(usage, steps)

    def reached(self) -> str | None:
        """Which bound is reached, of this turn or of the one that it works for; None when it may go on."""
        self._spent.seconds = self._worked()
        own = spent_up(self._budget, self._spent) if self._budget else None
        return own or (self._caller.reached() if self._caller else None)

    def _worked(self) -> float:
        """Seconds of work, in which nobody was waited for."""
        return time.monotonic() - self._started - self._conversation.waited

    def _seconds_left(self) -> float | None:
        seconds = self._budget.seconds if self._budget else None
        return None if seconds is None else seconds - self._worked()

    async def _end(self, number: int, end: Ended) -> TurnEnded:
        ended = TurnEnded(
            turn=number,
            outcome=end.outcome,
            reason=end.reason,
            hint=end.hint,
            fault=end.fault,
            usage=self._spent.usage,
            seconds=time.monotonic() - self._started,
            checkpoint=await self._conversation.keep_end(number),
        )
        await self._conversation.record(ended)
        return ended

    async def _step(self) -> None:
        """One answer, and the calls in it."""
        await self._conversation.steer()
        setup = await self._setup_function()
        self._budget = setup.budget
        if reason := self.reached():
            await self._last_answer(setup, reason)
        with TimeBound(self._seconds_left, self._end_by_time):
            await self._fit(setup)
            answer = await self._ask(setup)
            if answer is None:
                return
            if answer.calls and answer.stop != "refusal":
                self._empty_answers = 0
                cut = cut_off_call(answer)
                await self._call([call for call in answer.calls if call is not cut])
            else:
                await self._finish(answer)

    async def _finish(self, answer: AssistantMessage) -> None:
        """An answer without calls ends the turn, unless it is none."""
        if await self._conversation.steer() or answer.stop == "paused":
            return
        if answer.stop == "window_full":
            await self._shorten(await self._setup_function(), force=True)
            return
        if answer.stop == "refusal":
            raise Ended("refused", "the model refused to answer")
        if answer.stop == "length":
            await self._conversation.record(Noticed(text="The answer was cut off at the model's limit."))
        elif not answer.text.strip():
            self._empty_answers += 1
            if self._empty_answers > MOST_EMPTY_ANSWERS:
                raise Ended("error", "the model gave only empty answers")
            return
        raise Ended("answered")

    async def _call(self, calls: Sequence[ToolCall]) -> None:
        answers = await self._conversation.call(calls)
        if self.interrupted.is_set() and not await self._may_go_on():
            raise Ended("interrupted", "a person ended the turn")
        self.interrupted.clear()
        if self._conversation.waiting():
            raise Waits
        times = self._repetition.add(calls, answers)
        if times >= repetition.ENDED_AT:
            raise Ended("stuck", f"the same calls gave the same results {times} times in a row")
        if times >= repetition.SAID_AT:
            await self._conversation.record(Noticed(text=repetition.in_words(times)))

    async def _ask(
        self, setup: TurnSetup, *, may_call: bool = True, extra: Sequence[Message] = ()
    ) -> AssistantMessage | None:
        """One request; the answer is on the disk when this returns. None when somebody said something meanwhile.

        A request that turns out too long is tried again, shorter.
        """
        try:
            answer = await self._hear(setup, self._request(setup, self._next_messages(extra), may_call=may_call))
        except ProviderError as error:
            if error.fault != "too_long":
                raise
            await self._shorten(setup, force=True)
            answer = await self._hear(setup, self._request(setup, self._next_messages(extra), may_call=may_call))
        if answer is None:
            return None
        self.spend(answer.usage)
        # What follows makes it durable: a call that begins, or the end of the turn.
        await self._conversation.record(AnswerReceived(message=answer), *cut_off_result(answer), durable=False)
        return answer

    def _next_messages(self, extra: Sequence[Message]) -> list[Message]:
        history = self._conversation.history()
        messages = [*history.messages, *notices_as_message(history), *extra]
        return [*messages, message_of(EMPTY)] if self._empty_answers else messages

    def _request(self, setup: TurnSetup, messages: Sequence[Message], *, may_call: bool) -> ModelRequest:
        """Always with the same tools, also where they cannot be called: a service's cache begins with them."""
        return ModelRequest(
            model=setup.model,
            system=setup.system,
            messages=messages,
            tools=setup.tools,
            search=setup.search,
            may_call=may_call,
            options=setup.options,
            config=setup.config,
            session=self._session,
        )

    async def _hear(self, setup: TurnSetup, request: ModelRequest, *, aside: bool = False) -> AssistantMessage | None:
        """The whole answer; None when somebody said something meanwhile, or the time is up."""
        if not self.interrupted.is_set() and (answer := await self._listener.hear(setup.stream, request, aside=aside)):
            return answer
        if await self._may_go_on():
            self.interrupted.clear()
            return None
        raise Ended("interrupted", "a person ended the turn")

    async def _may_go_on(self) -> bool:
        """Whether what was interrupted goes on: somebody said something, or only the time is up."""
        return await self._conversation.steer() or self._time_is_up

    async def _last_answer(self, setup: TurnSetup, reason: str) -> None:
        """A bound is reached: the model says how far it came, without tools."""
        told = message_of(LAST_ANSWER.format(reason=f"{reason[:1].upper()}{reason[1:]}"))
        until = self._worked() + LAST_SECONDS if setup.budget.seconds is not None else None
        with TimeBound(lambda: None if until is None else until - self._worked(), self._end_by_time):
            await self._ask(setup, may_call=False, extra=[told])
        raise Ended("budget", reason)

    async def _fit(self, setup: TurnSetup) -> None:
        """Make room when the conversation nears the end of what the model can read."""
        history = self._conversation.history()
        tokens = context_window.estimated_tokens(history, setup.system)
        if tokens > setup.context.window * setup.context.shorten_at:
            await self._shorten(setup)

    async def _shorten(self, setup: TurnSetup, *, force: bool = False) -> None:
        """Old output first; a summary when that is not enough."""

        async def notes(messages: Sequence[Message]) -> str | None:
            if answer := await self._hear(setup, self._request(setup, messages, may_call=False), aside=True):
                self.spend(answer.usage)
            return answer.text if answer else None

        try:
            cut = await context_window.shorten(self._conversation.history(), setup, notes, force=force)
        except context_window.NothingLeft as error:
            raise Ended("error", str(error)) from None
        if cut:
            await self._conversation.record(cut)


def notices_as_message(history: History) -> list[Message]:
    """What the model should know of since its last results, such as that it goes round in circles."""
    last = history.events[-1].event if history.events else None
    return [message_of(last.text)] if isinstance(last, Noticed) else []
