"""Asking a person about a call: a question with all that an answer needs, and what counts as an answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.core.json_values import cut
from toolyard.core.reach import REACH_DESCRIPTIONS, Reach
from toolyard.core.visible_text import escaped, marked_lines, on_one_line
from toolyard.permissions.folders.call_folder import CallFolder
from toolyard.permissions.verdict import NETWORK, Answer, Judged, Offer, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from toolyard.core.tool import JsonObject
    from toolyard.permissions.verdict import Approver, ApproverFunction, PermissionRequest, Scope

log = logging.getLogger("toolyard.permissions")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person, or a program in their place, is asked. All text is safe to show: nothing hidden, no secrets."""

    id: str
    tool: str
    command: str
    """What will run, as it is shown; for a tool that runs no command, its arguments."""
    preview: str
    reason: str
    reach: Reach
    """How far it would reach."""
    why_reach: str
    """Why it wants to reach that far, in the words of whoever calls."""
    folder: CallFolder
    """Where it would run."""
    parts: tuple[Judged, ...]
    offers: tuple[Offer, ...]
    """The rules that an answer for longer than once would keep."""
    fingerprint: str
    """What the answer is bound to."""

    @property
    def where(self) -> str:
        """The folder in words, where a person has to know it; else empty."""
        return f"in {self.folder}" if self.folder.is_told(self.reach) else ""

    @property
    def more(self) -> str:
        """What the preview says beside the command."""
        return "" if self.command.startswith(self.preview) else self.preview

    def as_mapping(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tool": self.tool,
            "command": self.command,
            "preview": self.preview,
            "reason": self.reason,
            "reach": self.reach,
            "why_reach": self.why_reach,
            "folder": self.folder.path,
            "where": self.where,
            "parts": [part.as_mapping() for part in self.parts],
            "always": [{"rule": offer.rule, "text": offer.shown, "from": offer.source} for offer in self.offers],
            "fingerprint": self.fingerprint,
        }


CHANGES = {"+": "added", "-": "removed", "@": "faint"}
"""What a line of a preview that is a patch begins with."""
LONGEST_REASON = 2_000
"""Of what others say, in characters; a command is shown as it is."""


LONGEST_PATH = 5_000


def in_brief(question: Mapping[str, Any]) -> str:
    """A question that was kept, on one line: all that a yes is about."""
    preview = question.get("preview", "")
    more = "" if "\n" in preview or question["command"].startswith(preview) else preview
    parts = (question["command"], more and f"[{more}]", question.get("where", ""), f"({question['reason']})")
    return " ".join(filter(None, parts))


async def question_for(request: PermissionRequest, verdict: Verdict) -> Question:
    """The question about a call; asks the tool for its preview."""
    shown = request.plan.command if request.plan.command is not None else str(dict(request.plan.arguments))
    return Question(
        id=request.call_id,
        tool=on_one_line(request.tool.name),
        command=escaped(request.redact(shown)),
        preview=escaped(await request.preview()),
        reason=on_one_line(request.redact(verdict.reason)),
        reach=verdict.reach,
        why_reach=on_one_line(request.redact(request.plan.why_reach)),
        parts=tuple(replace(part, text=escaped(part.text), reason=on_one_line(part.reason)) for part in verdict.parts),
        folder=request.folder,
        offers=tuple(map(safe_offer, verdict.offers)),
        fingerprint=request.fingerprint,
    )


def safe_offer(offer: Offer) -> Offer:
    return replace(offer, text=on_one_line(offer.text), source=escaped(offer.source), where=on_one_line(offer.where))


def question_lines(question: Question) -> Iterator[tuple[str, str]]:
    """What a person is shown, line by line, with how each weighs: strong, plain, faint, as decided or changed."""
    if question.tool == NETWORK:
        yield "strong", f"A program in the sandbox wants to {on_one_line(question.preview)}."
        return
    yield "strong", f"{question.tool} wants to run:"
    weight = "ask" if question.reach == "outside" else "faint"
    yield weight, f"  reach {question.reach}: {REACH_DESCRIPTIONS[question.reach]}"
    if question.why_reach:
        yield weight, f"  it wants that because: {cut(question.why_reach, LONGEST_REASON)}"
    if question.where:
        yield "faint" if question.folder.kind == "top" else "ask", f"  {cut(question.where, LONGEST_PATH)}"
    yield from (("plain", f"  {line}") for line in marked_lines(question.command))
    if "\n" in question.preview:
        yield from ((CHANGES.get(line[2:3], "plain"), f"  {line}") for line in marked_lines(question.preview))
    elif question.more:
        yield "faint", f"  ({question.more})"
    yield from doubt_lines(question)
    yield from (("faint", f"  always would save: {offer.shown}") for offer in question.offers)


def doubt_lines(question: Question) -> Iterator[tuple[str, str]]:
    """Why somebody is asked: for each part that is not allowed, and for the whole where that says something else."""
    unclear = [part for part in question.parts if part.decision != "allow"]
    for part in unclear:
        text = cut(on_one_line(part.text), LONGEST_REASON)
        yield part.decision, f"  {part.decision} {text}: {cut(part.reason, LONGEST_REASON)}"
    if not any(part.reason in question.reason for part in unclear):
        yield "ask", f"  asked because of: {cut(question.reason, LONGEST_REASON)}"


async def ask(approver: Approver, request: PermissionRequest, verdict: Verdict, timeout: float | None) -> Answer:
    """The answer to a question. No answer in time, a broken approver, an answer for another call: all mean no."""
    try:
        async with asyncio.timeout(timeout):
            answer = await approver.approve(request, verdict)
    except TimeoutError:
        return Answer(allowed=False, reason=f"nobody answered within {timeout:g} seconds")
    except Exception:  # whoever should answer broke, which is no answer
        log.exception("the approver failed on %s", request.call_id)
        return Answer(allowed=False, reason="the question could not be asked")
    if answer.bound_to is not None and answer.bound_to != request.fingerprint:
        return Answer(allowed=False, reason="the answer was for another call")
    return answer


async def ask_to_fill(
    approver: Approver, request: PermissionRequest, message: str, form: JsonObject, timeout: float | None
) -> JsonObject | None:
    """What a person fills into a form that a tool wants while it runs; None when they will not, or nobody is there."""
    from toolyard.core.tool import Plan

    async def preview() -> str:
        return message

    shown = Plan(arguments={"message": message, "form": form}, cwd=request.plan.cwd)
    reason = f"'{request.tool.name}' wants to know something before it goes on"
    part = Judged(text=message, kind="form", decision="ask", reason=reason, doubt="form")
    asked = replace(request, call_id=f"{request.call_id} form", plan=shown, preview=preview, form=form)
    answer = await ask(approver, asked, Verdict(decision="ask", reason=reason, parts=(part,)), timeout)
    if not answer.allowed:
        return None
    fields = dict(form.get("properties") or {})
    usual = {name: field["default"] for name, field in fields.items() if "default" in field}
    filled = usual | dict(answer.filled or {})
    return filled if set(form.get("required") or ()) <= set(filled) else None


class FunctionApprover:
    """Lets a plain function answer: True, False or an `Answer`. One that is not async may wait: it has a thread."""

    def __init__(self, function: ApproverFunction) -> None:
        self._function = function
        self._name = getattr(function, "__name__", type(function).__name__)
        self._takes_verdict = takes_two(function)

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        given = (request, verdict) if self._takes_verdict else (request,)
        answer: Any = await asyncio.to_thread(self._function, *given)  # an async one gives its coroutine at once
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, bool):
            return Answer(allowed=answer, reason=f"{'approved' if answer else 'refused'} by {self._name}")
        if isinstance(answer, Answer):
            return answer
        raise TypeError(f"an approver returns True, False or an Answer, not {type(answer).__name__}")


def takes_two(function: ApproverFunction) -> bool:
    """Whether a function wants the verdict, too."""
    parameters = inspect.signature(function).parameters.values()
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters)


class ApprovalDesk:
    """An approver for programs: questions lie here until they are answered, or their call ends. For one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Question, asyncio.Future[Answer]]] = {}
        """The questions without an answer, by their fingerprints."""
        self._listeners: list[asyncio.Queue[Question]] = []

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        """Put the question on the desk and wait."""
        question = await question_for(request, verdict)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[question.fingerprint] = (question, answer)
        for listener in self._listeners:
            listener.put_nowait(question)
        try:
            return await answer
        finally:
            if self._waiting.get(question.fingerprint) is waiting:
                del self._waiting[question.fingerprint]

    def pending(self) -> list[Question]:
        """The questions that wait for an answer, the oldest first."""
        return [question for question, _ in self._waiting.values()]

    async def questions(self) -> AsyncIterator[Question]:
        """Every question, those first that wait already; for each who listens."""
        queue: asyncio.Queue[Question] = asyncio.Queue()
        for question in self.pending():
            queue.put_nowait(question)
        self._listeners.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.remove(queue)

    def allow(self, question: Question, *, scope: Scope = "once", reason: str = "approved") -> bool:
        """Say yes; False when the question waits no more, and the answer counts for nothing."""
        return self._answer(question, Answer(allowed=True, reason=reason, scope=scope, bound_to=question.fingerprint))

    def refuse(self, question: Question, *, reason: str) -> bool:
        """Say no, with a reason that the model sees; False when the question waits no more."""
        return self._answer(question, Answer(allowed=False, reason=reason, bound_to=question.fingerprint))

    def _answer(self, question: Question, answer: Answer) -> bool:
        _, waiting = self._waiting.get(question.fingerprint, (question, None))
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True
