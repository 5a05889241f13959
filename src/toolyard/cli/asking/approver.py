"""A person at a terminal who is asked before a call: everything that it does, and what each answer means."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolyard.cli.asking.form import fill_form
from toolyard.cli.asking.typed_lines import PlainLines
from toolyard.cli.render import is_terminal, show_note, terminal_width
from toolyard.core.visible_text import MARK, columns, columns_of, marked_lines
from toolyard.permissions.verdict import NETWORK, Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.cli.asking.typed_lines import TypedLines
    from toolyard.core.tool import JsonObject
    from toolyard.permissions.approval import Question
    from toolyard.permissions.verdict import PermissionRequest, Verdict


STYLES = {
    "strong": "strong",
    "faint": "faint",
    "ask": "warning",
    "deny": "error",
    "added": "good",
    "removed": "error",
}
"""How a line of a question looks, by how it weighs."""
ASKS_BACK = ("?", "h", "help")
EDITS = ("e", "edit")
EDIT_LABEL = "instead: "
NARROWEST = 20
"""In columns; for a terminal that does not know how wide it is."""
NOBODY = "nobody is at a terminal to ask"


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
            if request.form is not None:
                return await self._fill(request.form, question)
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

    async def _fill(self, form: JsonObject, question: Question) -> Answer:
        """Ask for each field of a form that a tool wants; who gives up refuses."""
        show_note(f"{question.tool} itself asks, which lets nothing run:", "strong")
        for words in marked_lines(question.preview):
            show_wrapped(f"  {words}")
        filled = await fill_form(self._lines, form)
        if filled is None:
            return Answer(allowed=False, reason="refused at the terminal", bound_to=question.fingerprint)
        return Answer(allowed=True, reason="filled in at the terminal", filled=filled, bound_to=question.fingerprint)


class TypedApprover:
    """Says yes to a call, since who types one has decided on it, and asks about hosts that it wants to reach then."""

    @cached_property
    def _terminal(self) -> TerminalApprover:
        return TerminalApprover()

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        if request.kind == NETWORK or request.form is not None:
            return await self._terminal.approve(request, verdict)
        return Answer(allowed=True, reason="typed at the command line")


def show_question(question: Question) -> None:
    from toolyard.permissions.approval import question_lines

    for weight, line in question_lines(question):
        show_wrapped(line, STYLES.get(weight, ""))


def show_wrapped(line: str, style: str = "") -> None:
    """Show a line with somebody else's words so that where the terminal breaks it, no line seems to be ours."""
    for piece in broken(line, max(terminal_width(), NARROWEST)):
        show_note(piece, style)


def broken(line: str, width: int) -> Iterator[str]:
    """The pieces of a line that fit into so many columns, all but the first with the mark of foreign text."""
    piece, used = "", 0
    for char in line:
        wide = columns_of(char)
        if used + wide > width:
            kept, space, rest = piece.rpartition(" ")
            if not space or len(rest) > NARROWEST // 2:
                kept, rest = piece, ""
            yield kept
            piece = f"  {MARK}{rest}"
            used = columns(piece)
        piece += char
        used += wide
    yield piece


def prompt_for(question: Question) -> str:
    longer = "[s]ession, [a]lways, " if question.offers else ""
    change = "" if question.tool == NETWORK else "[e]dit, "
    return f"Allow? [y]es once, {longer}{change}[n]o, [?] explain, or why not: "


def show_meanings(question: Question) -> None:
    """What each answer does."""
    rules = ", ".join(offer.shown for offer in question.offers)
    for line in meanings(rules, can_change=question.tool != NETWORK):
        show_wrapped(line)
    show_wrapped(f"  It is asked because of: {question.reason}", "faint")


def meanings(rules: str, *, can_change: bool) -> Iterator[str]:
    yield "  y  runs this call, and asks again the next time"
    if rules:
        yield f"  s  runs it, and lets this session do the like without asking: {rules}"
        yield f"  a  runs it, and keeps that for good; `toolyard permissions revoke` takes it back: {rules}"
    if can_change:
        yield "  e  changes the call first; what you make of it is then asked about, and the agent is told"
    yield "  n  refuses it, as an empty line does; whatever else you type refuses it, too, and is told as the reason"


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
