"""Keeping a conversation within what a model can read: old output first, then a summary; the store keeps everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, ContextShortened, PromptGiven
from toolyard.agents.sessions.history import last_shortenings, shortened
from toolyard.core.content import text_of
from toolyard.core.conversation import AssistantMessage, SummaryMessage, ToolMessage, UserMessage, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.agents.sessions.events import SessionEvent, Stored
    from toolyard.agents.sessions.history import History
    from toolyard.agents.turn_setup import TurnSetup
    from toolyard.core.conversation import Message

CHARACTERS_PER_TOKEN = 3.5
TOKENS_PER_IMAGE = 1500
RECENT_ANSWERS = 3
"""Whose results stay whole."""
LONGEST_PROMPTS = 20_000
"""Characters of what people said that a summary carries word for word."""
SUMMARY_REQUEST = (
    "The conversation is about to be cut to this point, to make room. Write the notes with which you, or a colleague, "
    "can go on without it. Leave out nothing that was decided. Use these headings: Goal; Decisions and why; "
    "Constraints and wishes of the user; Done so far, with paths; State now, with what fails and how; Next steps. "
    "Do not call tools. Answer with the notes alone."
)


class NothingLeft(Exception):
    """A conversation is too long, and nothing of it can be left out."""


class TakeNotes(Protocol):
    """How a model is asked for the notes that will stand for a conversation; None when it was interrupted."""

    async def __call__(self, messages: Sequence[Message]) -> str | None: ...


async def shorten(
    history: History, setup: TurnSetup, notes: TakeNotes, *, force: bool = False
) -> ContextShortened | None:
    """What is left out from now on: old output, or else all that a summary stands for; None when nothing is.

    With `force` it is a summary, and NothingLeft when there is too little to sum up.
    """
    tokens = estimated_tokens(history, setup.system)
    limit = int(setup.context.window * setup.context.shorten_at * 0.8)
    if not force and (cut := shorten_outputs(history, tokens, limit)):
        return cut
    upto = cut_for_summary(history)
    if upto is None and force:
        raise NothingLeft("the conversation is longer than the model can read, and cannot be shortened further")
    if upto is None:
        return None
    told = await notes([*fitting(history.messages, setup.context.window), message_of(SUMMARY_REQUEST)])
    if told is None:
        return None
    if not told.strip():
        if force:
            raise NothingLeft("the conversation is longer than the model can read, and it wrote no notes on it")
        return None
    text = summary_text(told, history.events, upto)
    return ContextShortened(what="summary", upto=upto, summary=text, tokens_before=tokens)


def estimated_tokens(history: History, system: str = "") -> int:
    """How many tokens the next request will have: what the model said of the last one, and a guess for what is new."""
    known = 0
    new: list[SessionEvent] = []
    for one in reversed(history.events):
        if isinstance(one.event, AnswerReceived) and (usage := one.event.message.usage).input:
            known = usage.input + usage.output
            break
        if isinstance(one.event, ContextShortened):
            break
        new.append(one.event)
    if not known:
        return tokens_of(history.messages) + int(len(system) / CHARACTERS_PER_TOKEN)
    answers = ToolMessage(answers=tuple(event.answer for event in new if isinstance(event, CallAnswered)))
    characters = sum(len(text_of(event.message.content)) for event in new if isinstance(event, PromptGiven))
    return known + message_tokens(answers) + int(characters / CHARACTERS_PER_TOKEN)


def tokens_of(messages: Iterable[Message]) -> int:
    return sum(message_tokens(message) for message in messages)


def message_tokens(message: Message) -> int:
    match message:
        case UserMessage():
            characters = len(text_of(message.content))
        case AssistantMessage():
            arguments = sum(len(str(call.arguments)) + len(call.name) for call in message.calls)
            characters = len(message.text) + len(message.thinking) + arguments
        case ToolMessage():
            images = sum(len(answer.attachments) for answer in message.answers)
            characters = sum(len(answer.text) for answer in message.answers)
            return int(characters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE
        case SummaryMessage():
            characters = len(message.text)
    return int(characters / CHARACTERS_PER_TOKEN) + 8


def shorten_outputs(history: History, tokens: int, limit: int) -> ContextShortened | None:
    """Leave out what old calls printed, when that is enough; None when it is not."""
    answers = [one.seq for one in history.events if isinstance(one.event, AnswerReceived)]
    if len(answers) <= RECENT_ANSWERS:
        return None
    before = answers[-RECENT_ANSWERS]
    _, already = last_shortenings(history.events)
    old = [
        one.event.answer for one in history.events if isinstance(one.event, CallAnswered) and already < one.seq < before
    ]
    after = ToolMessage(answers=tuple(map(shortened, old)))
    saved = message_tokens(ToolMessage(answers=tuple(old))) - message_tokens(after)
    if not old or tokens - saved > limit:
        return None
    return ContextShortened(what="outputs", upto=before - 1, tokens_before=tokens)


def cut_for_summary(history: History) -> int | None:
    """The event up to which a summary stands for the conversation; the last steps stay as they are."""
    starts = [one.seq for one in history.events if isinstance(one.event, AnswerReceived | PromptGiven)]
    if len(starts) < 2:
        return None
    return starts[-min(RECENT_ANSWERS, len(starts) - 1)] - 1


def summary_text(notes: str, events: Sequence[Stored], upto: int) -> str:
    """The notes of the model, and before them, word for word, what people said: no summary may change that."""
    said = [one.event.message for one in events if one.seq <= upto and isinstance(one.event, PromptGiven)]
    prompts = "\n\n".join(f"> {text_of(message.content)}" for message in said)
    if len(prompts) > LONGEST_PROMPTS:
        half = LONGEST_PROMPTS // 2
        prompts = f"{prompts[:half]}\n[…]\n{prompts[-half:]}"
    return (
        "The conversation so far was shortened. What the user said, word for word:\n\n"
        f"{prompts}\n\nNotes on everything else:\n\n{notes.strip()}"
    )


def fitting(messages: Sequence[Message], window: int) -> list[Message]:
    """The last messages that a model can read at all, beginning where a conversation can begin."""
    over, start = tokens_of(messages) - int(window * 0.6), 0
    while over > 0 and start < len(messages) - 1:
        over -= message_tokens(messages[start])
        start += 1
        while start < len(messages) - 1 and not isinstance(messages[start], UserMessage | SummaryMessage):
            over -= message_tokens(messages[start])
            start += 1
    return list(messages[start:])
