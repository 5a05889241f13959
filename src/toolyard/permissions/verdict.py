"""The question whether a call may happen, and its answers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from toolyard.core.events import Decision
from toolyard.core.reach import Kept, Reach, named
from toolyard.core.tool import Json, JsonObject, Plan, ToolSpec

if TYPE_CHECKING:
    from toolyard.permissions.folders.call_folder import CallFolder

Scope = Literal["once", "session", "always"]
NETWORK = "network"
"""The kind of a question about a host, and the name that stands in the place of a tool's."""


async def nothing_works() -> bool:
    """What holds where there is no inside."""
    return False


class PermissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that a decision can rest on; a decision holds for exactly this call."""

    call_id: str
    tool: ToolSpec
    kind: str
    plan: Plan
    preview: Callable[[], Awaitable[str]]
    """Asks the tool for its preview, once; costs a process for some kinds, so it is asked only when it is shown."""
    agent: str = "default"
    session: str = ""
    callers: tuple[tuple[str, str], ...] = ()
    """The agents, with their sessions, on whose behalf it is made; what they may not do, it may not."""
    workspace: Path | None = None
    """The folder that the call should not leave."""
    kept_in: bool = True
    """Whether it would run in a sandbox, or the owner wants none; False where one is wanted and cannot be had."""
    kept: Kept = "not"
    """How much of what a sandbox can keep the one that it would run in does."""
    temporary: tuple[str, ...] = ()
    """Folders for temporary files that are its own where it would run, whatever others have under these names."""
    temporary_places: tuple[str, ...] = ()
    """Where each of them is for us."""
    not_temporary: tuple[str, ...] = ()
    """What of others can be seen in them all the same."""
    works_inside: Callable[[], Awaitable[bool]] = nothing_works
    """Tells whether something that runs inside just now could change the workspace meanwhile."""
    form: JsonObject | None = None
    """The schema of what a tool wants to be told by a person; the question is about that then, and not about a call."""
    redact: Callable[[str], str] = str
    """Takes known secrets out of a text that is shown or kept."""

    @property
    def folder(self) -> CallFolder:
        """Where it would run, safe to show."""
        from toolyard.permissions.folders.call_folder import folder_of_call
        from toolyard.permissions.paths import OwnFolders

        workspace = os.path.abspath(self.workspace or self.plan.cwd or ".")
        own = OwnFolders(self.temporary, self.not_temporary, self.temporary_places)
        return folder_of_call(os.fspath(self.plan.cwd or workspace), workspace, own).shown(self.redact)

    @property
    def fingerprint(self) -> str:
        """What an answer is bound to: this call, with these arguments, in this folder."""
        plan = self.plan
        told = [self.call_id, self.tool.name, plan.arguments, list(plan.argv), plan.command, str(plan.cwd), plan.reach]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a call: a command, a redirection, an assignment, a doubt about the line; and who decided it."""

    text: str
    kind: str
    decision: Decision
    reason: str
    rule: str | None = None
    """The rule that decided, as it is written."""
    origin: object = None
    """Where the rule is written, in words when it is printed."""
    doubt: str | None = None
    """The code of the doubt that decided."""
    reach: Reach | None = None
    """How far the rule that allowed it lets it reach; None for as far as such calls usually do."""
    streams_only: bool = False
    """Whether a preset allowed it and it touches nothing but its streams, so that it does not matter how far it may
    reach."""

    @property
    def where(self) -> str | None:
        return None if self.origin is None else str(self.origin)

    def as_mapping(self) -> dict[str, Any]:
        """The form in which a verdict is printed."""
        return {name: getattr(self, name) for name in ("text", "kind", "decision", "reason", "rule", "where", "doubt")}


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that an answer for longer than once would keep, and the part of the call it comes from."""

    rule: Json
    text: str
    source: str
    where: str = ""
    """In which folder alone it would hold, in words; empty where it does not matter."""

    @property
    def shown(self) -> str:
        """What would be kept, for a person."""
        return f"{self.text} ({self.where})" if self.where else self.text


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say, and which of them said it."""

    decision: Decision
    reason: str
    rule: str | None = None
    parts: tuple[Judged, ...] = ()
    offers: tuple[Offer, ...] = ()
    """What "always" would save; empty when nothing can be derived that would allow this call again."""
    shown: str = ""
    """The command as a person may safely look at it."""
    reach: Reach = "work"
    """How far the call may reach if it is allowed; of a question, how far it would."""
    usual_reach: Reach = "work"
    """How far calls like this one reach without a question."""

    def as_mapping(self) -> dict[str, Any]:
        """The form in which a verdict is printed."""
        return {
            "verdict": self.decision,
            "reach": named(self.reach),
            "reason": self.reason,
            "parts": [part.as_mapping() for part in self.parts],
            "always": [offer.text for offer in self.offers],
        }


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person, or whoever stands in for one, answered."""

    allowed: bool
    reason: str
    scope: Scope = "once"
    """How long a yes holds; for longer than once, the rules that the verdict offers are kept."""
    reach: Reach | None = None
    """A shorter reach than was asked about; None for that."""
    filled: JsonObject | None = None
    """What a person filled into a form."""
    bound_to: str | None = None
    """The fingerprint of the request that was answered; one for another call is no answer."""
    instead: JsonObject | None = None
    """Of a no: the arguments that the call is to have in place of its own; the rules then look at it anew."""
    later: bool = False
    """Not yet: a session leaves its turn open, and asks again when it goes on. Without a session it means no."""


class PermissionPolicy(Protocol):
    """Whatever holds the rules."""

    async def decide(self, request: PermissionRequest) -> Verdict:
        """Allow, deny, or leave it to a person."""


@runtime_checkable
class MayHaveNoRules(Protocol):
    """A policy that can say at once that nobody has made a rule."""

    def without_rules(self, plan: Plan, agent: str, session: str) -> Verdict | None:
        """What holds then; None where there are rules, or where the plan has to be looked at all the same."""


@runtime_checkable
class RemembersAnswers(Protocol):
    """A policy that can keep an answer for longer than once."""

    def ask_timeout(self, agent: str) -> float:
        """How many seconds a question about an agent's call waits for its answer."""

    def approved(self, request: PermissionRequest, verdict: Verdict) -> None:
        """Note that a call was let pass that the rules had left open, and how far it may reach."""

    def remember(self, request: PermissionRequest, verdict: Verdict, answer: Answer) -> str:
        """Keep the rules that were offered; says what was kept. They are on disk when this returns."""


@runtime_checkable
class LooksAgain(Protocol):
    """A policy that can look once more at what it let run outside, right before that runs."""

    async def why_ask_now(self, request: PermissionRequest) -> str | None:
        """Why a line that a rule lets run outside has to be asked about by now; None where it has not."""


class Approver(Protocol):
    """Whoever answers when the rules ask."""

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        """Yes or no, with a reason that the model sees."""


ApproverFunction: TypeAlias = (
    Callable[[PermissionRequest], "bool | Answer | Awaitable[bool | Answer]"]
    | Callable[[PermissionRequest, Verdict], "bool | Answer | Awaitable[bool | Answer]"]
)
"""The same as a plain function, async or not."""
ALLOWED = Verdict(decision="allow", reason="no permission rules are configured", rule="allow-all")


class AllowAll:
    """The policy while no rules are configured."""

    async def decide(self, request: PermissionRequest) -> Verdict:  # noqa: ARG002 - the interface
        """Everything that was configured may run."""
        return ALLOWED


class FixedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answers every question the same way."""

    answer: Answer = msgspec.field()

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:  # noqa: ARG002 - the interface
        return self.answer


def answer_always(*, allowed: bool, reason: str) -> Approver:
    """An approver for when nobody is there to ask."""
    return FixedAnswer(answer=Answer(allowed=allowed, reason=reason))
