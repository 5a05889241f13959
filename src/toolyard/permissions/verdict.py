"""The question whether a call may happen, and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolyard.core.events import Decision
    from toolyard.core.tool import Plan, ToolSpec

__all__ = ["AllowAll", "Answer", "Approver", "PermissionPolicy", "PermissionRequest", "Verdict", "answer_always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """All that a decision can rest on; a decision holds for exactly this call."""

    call_id: str
    tool: ToolSpec
    kind: str
    plan: Plan
    preview: Callable[[], Awaitable[str]]
    """Asks the tool for its preview, once; costs a process for some kinds, so it is asked only when it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say, and which of them said it."""

    decision: Decision
    reason: str
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person, or whoever stands in for one, answered."""

    allowed: bool
    reason: str


class PermissionPolicy(Protocol):
    """Whatever holds the rules."""

    async def decide(self, request: PermissionRequest) -> Verdict:
        """Allow, deny, or leave it to a person."""


class Approver(Protocol):
    """Whoever answers when the rules ask."""

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        """Yes or no, with a reason that the model sees."""


ALLOWED = Verdict(decision="allow", reason="no permission rules are configured", rule="allow-all")


class AllowAll:
    """The policy while no rules are configured."""

    async def decide(self, request: PermissionRequest) -> Verdict:  # noqa: ARG002 - the interface
        """Everything that was configured may run."""
        return ALLOWED


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedAnswer:
    """Answers every question the same way."""

    answer: Answer

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:  # noqa: ARG002 - the interface
        """The one answer."""
        return self.answer


def answer_always(*, allowed: bool, reason: str) -> Approver:
    """An approver for when nobody is there to ask."""
    return FixedAnswer(answer=Answer(allowed=allowed, reason=reason))
