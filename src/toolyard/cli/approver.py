"""A person at a terminal who is asked before a call: everything that it does, and what each answer means."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from toolyard.cli.render import is_terminal, show_note, show_piece
from toolyard.core.reach import REACH_DESCRIPTIONS
from toolyard.permissions.verdict import NETWORK, Answer

if TYPE_CHECKING:
    from toolyard.permissions.approval import Question
    from toolyard.permissions.verdict import PermissionRequest, Verdict


STYLES = {"allow": "faint", "ask": "warning", "deny": "error"}
REACH_STYLES = {"look": "faint", "work": "faint", "outside": "warning"}
ASKS_BACK = ("?", "h", "help")
EDITS = ("e", "edit")
EDIT_LABEL = "instead: "
NOBODY = "nobody is at a terminal to ask"


class TypedLines(Protocol):
    """Where a person types answers."""

    async def ask(self, label: str, text: str = "") -> str | None:
        """A line, with something in it to begin with where that can be; None when the person gives it up."""


class PlainLines:
    """Lines of standard input, where nothing can be typed on."""

    def __init__(self) -> None:
        from toolyard.cli.shell.lines import Lines

        self._lines = Lines()

    async def ask(self, label: str, text: str = "") -> str | None:
        show_piece(f"{text}\n{label}" if text else label, is_error=True)
        return await self._lines.next()


class TerminalApprover:
    """Shows the question on standard error and reads one line; anything but a clear yes means no."""

    def __init__(self, lines: TypedLines | None = None) -> None:
        self._lines = lines or PlainLines()
        self._one_at_a_time = asyncio.Lock()

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        from toolyard.permissions.approval import question_for

        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return Answer(allowed=False, reason=NOBODY)
        question = await question_for(request, verdict)
        async with self._one_at_a_time:
            show_question(question)
            while True:
                line = await self._lines.ask(prompt_for(question))
                if line is None or (word := line.strip().lower()) not in (*ASKS_BACK, *EDITS):
                    return answer_of(line, question)
                if word in ASKS_BACK:
                    show_meanings(question)
                elif question.tool == NETWORK:
                    show_note("there is nothing to change about a host", "warning")
                elif answer := await self._edited(request, question):
                    return answer

    async def _edited(self, request: PermissionRequest, question: Question) -> Answer | None:
        """The call with other arguments, which is asked about like any other; None when they stay as they are."""
        given = dict(request.plan.arguments)
        shown = given["command"] if is_command(given) else json.dumps(given, ensure_ascii=False)
        line = await self._lines.ask(EDIT_LABEL, shown)
        if line is None or not line.strip() or line == shown:
            return None
        instead = {**given, "command": line} if is_command(given) else object_of(line)
        if instead is None:
            show_note("that is no JSON object", "error", hint="change values, and leave the quotes and braces")
            return None
        return Answer(allowed=False, reason="changed at the terminal", instead=instead, bound_to=question.fingerprint)


class TypedApprover:
    """Says yes to a call, since who types one has decided on it, and asks about hosts that it wants to reach then."""

    @cached_property
    def _terminal(self) -> TerminalApprover:
        return TerminalApprover()

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        if request.kind == NETWORK:
            return await self._terminal.approve(request, verdict)
        return Answer(allowed=True, reason="typed at the command line")


def show_question(question: Question) -> None:
    if question.tool == NETWORK:
        show_note(f"A program in the sandbox wants to {question.preview}.", "strong")
        return
    show_note(f"{question.tool} wants to run:", "strong")
    for line in question.command.split("\n"):
        show_note(f"  {line}")
    if question.preview and question.preview not in question.command:
        show_note(f"  ({question.preview})", "faint")
    why = f", because: {question.why_reach}" if question.why_reach else ""
    show_note(f"  reach {question.reach}: {REACH_DESCRIPTIONS[question.reach]}{why}", REACH_STYLES[question.reach])
    for part in question.parts:
        if part.decision != "allow":
            show_note(f"  {part.decision} {' '.join(part.text.split())}: {part.reason}", STYLES[part.decision])
    for offer in question.offers:
        show_note(f"  always would save: {offer.text}", "faint")


def prompt_for(question: Question) -> str:
    longer = "[s]ession, [a]lways, " if question.offers else ""
    change = "" if question.tool == NETWORK else "[e]dit, "
    return f"Allow? [y]es once, {longer}{change}[n]o, [?] explain, or why not: "


def show_meanings(question: Question) -> None:
    """What each answer does."""
    rules = ", ".join(offer.text for offer in question.offers)
    show_note("  y  runs this call, and asks again the next time")
    if rules:
        show_note(f"  s  runs it, and lets this session do the like without asking: {rules}")
        show_note(f"  a  runs it, and keeps that for good; `toolyard permissions revoke` takes it back: {rules}")
    if question.tool != NETWORK:
        show_note("  e  changes the call first; what you make of it is then asked about, and the agent is told")
    show_note(
        "  n  refuses it, as an empty line does; whatever else you type refuses it, too, and is told as the reason"
    )
    show_note(f"  It is asked because of: {question.reason}", "faint")


def answer_of(line: str | None, question: Question) -> Answer:
    word = (line or "").strip()
    bound = question.fingerprint
    match word.lower():
        case "y" | "yes":
            return Answer(allowed=True, reason="approved at the terminal", bound_to=bound)
        case "s" | "session" if question.offers:
            return Answer(allowed=True, reason="approved at the terminal", scope="session", bound_to=bound)
        case "a" | "always" if question.offers:
            return Answer(allowed=True, reason="approved at the terminal", scope="always", bound_to=bound)
        case "" | "n" | "no" | "s" | "a" | "session" | "always":
            return Answer(allowed=False, reason="refused at the terminal", bound_to=bound)
    return Answer(allowed=False, reason=f"refused at the terminal: {word}", bound_to=bound)


def is_command(arguments: dict[str, Any]) -> bool:
    return isinstance(arguments.get("command"), str)


def object_of(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
