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
from toolyard.agents.budget import Spent, spent_in, spent_up
from toolyard.agents.sessions.events import (
    AnswerReceived,
    ContextShortened,
    Noticed,
    Outcome,
    TurnEnded,
    TurnStarted,
    TurnWaits,
)
from toolyard.core.content import TextPart
from toolyard.core.conversation import UserMessage
from toolyard.core.model import ModelRequest
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.sessions.history import History
    from toolyard.agents.turn_setup import Conversation, SetupFunction, TurnSetup
    from toolyard.config.agent_settings import BudgetSettings
    from toolyard.core.conversation import AssistantMessage, Message, Usage
    from toolyard.core.tool import ToolCall

LAST_ANSWER = (
    "[{reason}, so this is the last answer of the turn, and tools cannot be called any more. "
    "Say what was done, what is left, and what the user should know.]"
)
EMPTY = "[The answer was empty. Answer the user, or call a tool.]"
MOST_EMPTY_ANSWERS = 2


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

    async def run(self) -> TurnEnded | None:
        """Work until the turn ends, which it always does by saying why; None when it waits for an answer."""
        conversation = self._conversation
        history = conversation.history()
        number = history.turn if history.is_open else history.turn + 1
        if not history.is_open:
            await conversation.record(TurnStarted(turn=number), durable=False)
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
        self.interrupted.set()
        self._listener.stop()

    def spend(self, usage: Usage, steps: int = 1) -> None:
        """Count what was taken, also for whom this turn works."""
        self._spent.add(usage, steps)
        if self._caller:
            self._caller.spend(usage, steps)

    def reached(self) -> str | None:
        """Which bound is reached, of this turn or of the one that it works for; None when it may go on."""
        self._spent.seconds = time.monotonic() - self._started - self._conversation.waited
        own = spent_up(self._budget, self._spent) if self._budget else None
        return own or (self._caller.reached() if self._caller else None)

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
        if self.interrupted.is_set() and not await self._conversation.steer():
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
            answer = await self._hear(setup, self._request(setup, may_call=may_call, extra=extra))
        except ProviderError as error:
            if error.fault != "too_long":
                raise
            await self._shorten(setup, force=True)
            answer = await self._hear(setup, self._request(setup, may_call=may_call, extra=extra))
        if answer is None:
            return None
        self.spend(answer.usage)
        # What follows makes it durable: a call that begins, or the end of the turn.
        await self._conversation.record(AnswerReceived(message=answer), *cut_off_result(answer), durable=False)
        return answer

    def _request(self, setup: TurnSetup, *, may_call: bool, extra: Sequence[Message]) -> ModelRequest:
        history = self._conversation.history()
        messages = [*history.messages, *notices_as_message(history), *extra]
        if self._empty_answers:
            messages.append(say(EMPTY))
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
        """The whole answer; None when somebody said something meanwhile."""
        if not self.interrupted.is_set() and (answer := await self._listener.hear(setup.stream, request, aside=aside)):
            return answer
        if await self._conversation.steer():
            self.interrupted.clear()
            return None
        raise Ended("interrupted", "a person ended the turn")

    async def _last_answer(self, setup: TurnSetup, reason: str) -> None:
        """A bound is reached: the model says how far it came, without tools."""
        told = say(LAST_ANSWER.format(reason=f"{reason[:1].upper()}{reason[1:]}"))
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
        history = self._conversation.history()
        tokens = context_window.estimated_tokens(history, setup.system)
        limit = int(setup.context.window * setup.context.shorten_at * 0.8)
        cut = None if force else context_window.shorten_outputs(history, tokens, limit)
        upto = context_window.cut_for_summary(history) if cut is None else None
        if upto is not None:
            cut = await self._summary(setup, history, upto, tokens)
        if cut:
            await self._conversation.record(cut)
        elif force and upto is None:
            raise Ended("error", "the conversation is longer than the model can read, and cannot be shortened further")

    async def _summary(self, setup: TurnSetup, history: History, upto: int, tokens: int) -> ContextShortened | None:
        """What stands for the conversation up to an event; None when somebody said something meanwhile."""
        messages = context_window.fitting(history.messages, setup.context.window)
        request = ModelRequest(
            model=setup.model,
            system=setup.system,
            messages=[*messages, say(context_window.SUMMARY_REQUEST)],
            may_call=False,
            config=setup.config,
            session=self._session,
        )
        notes = await self._hear(setup, request, aside=True)
        if notes is None:
            return None
        self.spend(notes.usage)
        text = context_window.summary_text(notes.text, history.events, upto)
        return ContextShortened(what="summary", upto=upto, summary=text, tokens_before=tokens)


def say(text: str) -> UserMessage:
    return UserMessage(content=(TextPart(text=text),))


def notices_as_message(history: History) -> list[Message]:
    """What the model should know of since its last results, such as that it goes round in circles."""
    last = history.events[-1].event if history.events else None
    return [say(last.text)] if isinstance(last, Noticed) else []
