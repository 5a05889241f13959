"""Who answers questions about permission where nobody is there to ask: the options of the command, or a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from toolyard.permissions.verdict import Answer, answer_always

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.agents.session import AgentSession
    from toolyard.permissions.verdict import Approver, PermissionRequest, Scope, Verdict

SCOPES: dict[str, Scope] = {"yes": "once", "session": "session", "always": "always", "no": "once"}
NOBODY = "nobody is there to ask; allow it by a rule, with --yes, or answer it later"

answer_option = click.option(
    "--yes/--no", "answer", default=None, help="Answer every question about permission; default they wait."
)
late_answer_option = click.option(
    "--answer",
    "late_answer",
    type=click.Choice(list(SCOPES)),
    help="Answer the questions that the session waits with; later ones wait again.",
)


class LateAnswer:
    """Answers the questions that waited, each as it was shown; all others wait until somebody comes back."""

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self._waited: frozenset[str] = frozenset()

    def answers_for(self, questions: Iterable[str]) -> None:
        """Answer the questions of these fingerprints."""
        self._waited = frozenset(questions)

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:  # noqa: ARG002 - the interface
        if self._answer and request.fingerprint in self._waited:
            return replace(self._answer, bound_to=request.fingerprint)
        return Answer(allowed=False, reason=NOBODY, later=True)


def approver_for(answer: bool | None, late_answer: str | None) -> Approver:
    """Who is asked, by what was typed."""
    if answer is not None:
        if late_answer:
            raise click.UsageError("--answer is for the questions that wait, --yes and --no for all; give one of them")
        return answer_always(allowed=answer, reason="answered with --yes" if answer else "answered with --no")
    if late_answer is None:
        return LateAnswer()
    reason = f"answered with --answer {late_answer}"
    return LateAnswer(Answer(allowed=late_answer != "no", reason=reason, scope=SCOPES[late_answer]))


def take_up_questions(approver: Approver, session: AgentSession, late_answer: str | None) -> None:
    """Let an answer that was typed be for the questions that wait."""
    waiting = [str(one.question["fingerprint"]) for one in session.waiting_questions()]
    if late_answer and not waiting:
        raise click.UsageError(f"no question waits in the session {session.id}")
    if isinstance(approver, LateAnswer):
        approver.answers_for(waiting)
