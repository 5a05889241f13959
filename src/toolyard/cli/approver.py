"""A person at a terminal who is asked before a call: everything that it does, and what each answer means."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING

from toolyard.cli.render import is_terminal, show_note, show_piece
from toolyard.permissions.verdict import NETWORK, Answer

if TYPE_CHECKING:
    from toolyard.permissions.approval import Question
    from toolyard.permissions.verdict import PermissionRequest, Verdict


STYLES = {"strong": "strong", "faint": "faint", "ask": "warning", "deny": "error"}
"""How a line of a question looks, by how it weighs."""
ASKS_BACK = ("?", "h", "help")
NOBODY = "nobody is at a terminal to ask"


class TerminalApprover:
    """Shows the question on standard error and reads one line of standard input; anything but a clear yes means no."""

    def __init__(self) -> None:
        from toolyard.cli.shell.lines import Lines

        self._lines = Lines()

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        from toolyard.permissions.approval import question_for

        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return Answer(allowed=False, reason=NOBODY)
        question = await question_for(request, verdict)
        show_question(question)
        while True:
            show_piece(prompt_for(question), is_error=True)
            if (line := await self._lines.next()) is None or line.strip().lower() not in ASKS_BACK:
                return answer_of(line, question)
            show_meanings(question)


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
    from toolyard.permissions.approval import question_lines

    for weight, line in question_lines(question):
        show_note(line, STYLES.get(weight, ""))


def prompt_for(question: Question) -> str:
    longer = "[s]ession, [a]lways, " if question.offers else ""
    return f"Allow? [y]es once, {longer}[n]o, [?] explain, or why not: "


def show_meanings(question: Question) -> None:
    """What each answer does."""
    rules = ", ".join(offer.text for offer in question.offers)
    show_note("  y  runs this call, and asks again the next time")
    if rules:
        show_note(f"  s  runs it, and lets this session do the like without asking: {rules}")
        show_note(f"  a  runs it, and keeps that for good; `toolyard permissions revoke` takes it back: {rules}")
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
