"""A question about a call as a form for the person behind a client, and what they made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.tool import JsonObject  # noqa: TC001 - of a struct
from toolyard.permissions.verdict import Answer

if TYPE_CHECKING:
    from toolyard.core.tool import ClientRequest, Json
    from toolyard.permissions.approval import Question


ELICITATION = "elicitation/create"
NEEDS = {"sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client has to have for a request."""
CANNOT_ASK = (
    "it needs a person's yes, and this client cannot ask its user (it has no elicitation); "
    "who runs the server can allow it beforehand with `toolyard permissions allow`"
)
LONGER = {
    "session": "Yes, and do the like in this conversation without asking",
    "always": "Yes, and keep that as a rule",
}


class ClientQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked: whether a call may run, or what a tool wants to be told while it does."""

    asked: Question
    form: JsonObject | None = None
    """The schema of what a tool wants to be told."""


def elicitation(question: ClientQuestion) -> dict[str, Any]:
    """The parameters of `elicitation/create`, with the same parts, rules and offers as at a terminal."""
    if question.form is not None:
        message = f"{question.asked.tool} asks: {question.asked.preview}"
        return {"mode": "form", "message": message, "requestedSchema": dict(question.form)}
    return permission_form(question.asked)


def permission_form(question: Question) -> dict[str, Any]:
    from toolyard.permissions.approval import question_lines

    choices = {"once": "Yes, this once", **(LONGER if question.offers else {}), "no": "No"}
    answer = {
        "type": "string",
        "title": "Allow it?",
        "enum": list(choices),
        "enumNames": list(choices.values()),
    }
    reason = {"type": "string", "title": "Why not?", "description": "A no is told to the model with this reason."}
    return {
        "mode": "form",
        "message": "\n".join(line for _, line in question_lines(question)),
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": answer, "reason": reason},
            "required": ["answer"],
        },
    }


def answer_of(response: Json, question: ClientQuestion) -> Answer:
    """What a client sent back; anything but a clear yes means no."""
    bound, offers = question.asked.fingerprint, question.asked.offers
    match response:
        case {"action": "accept", "content": dict(filled)} if question.form is not None:
            return Answer(allowed=True, reason="filled in by the client's user", filled=filled, bound_to=bound)
        case {"action": "accept", "content": {"answer": "once"}}:
            return Answer(allowed=True, reason="approved by the client's user", bound_to=bound)
        case {"action": "accept", "content": {"answer": "session" | "always" as scope}} if offers:
            return Answer(allowed=True, reason="approved by the client's user", scope=scope, bound_to=bound)
        case {"action": "accept", "content": {"reason": str(reason)}} if reason.strip():
            return Answer(allowed=False, reason=f"refused by the client's user: {reason.strip()}", bound_to=bound)
        case {"action": "cancel"}:
            return Answer(allowed=False, reason="the client's user closed the question", bound_to=bound)
    return Answer(allowed=False, reason="refused by the client's user", bound_to=bound)


def can_be_asked(capabilities: Json, request: ClientRequest) -> bool:
    """Whether a client takes such requests."""
    known = capabilities if isinstance(capabilities, dict) else {}
    if request.method != ELICITATION:
        return NEEDS.get(request.method, "") in known
    elicitation = known.get("elicitation")
    if request.params.get("mode") == "url":
        return isinstance(elicitation, dict) and "url" in elicitation
    return can_elicit(capabilities)


def can_elicit(capabilities: Json) -> bool:
    """Whether a client shows forms; one that names no mode means forms."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)
