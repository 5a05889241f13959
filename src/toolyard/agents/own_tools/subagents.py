"""The tool `agent`: an agent gives work to another, which has a conversation of its own and answers once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from toolyard.agents.budget import Spent, spent_in
from toolyard.agents.session_calls import SPENT
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import TurnEnded
from toolyard.agents.sessions.history import last_answer
from toolyard.config.layers import mapping
from toolyard.core.own_names import ASK_AGENT
from toolyard.core.problems import Problem, did_you_mean
from toolyard.core.tool import OWN, Hints, JsonInput, Plan, ToolResult, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolyard.agents.session import AgentSession
    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import CallContext, JsonObject

MOST_DEPTH = 3
"""How many agents may stand between a person and the last of them."""
DESCRIPTION = (
    "Give a piece of work to another agent and get its answer. It knows nothing of this conversation: say all that it "
    "needs to know, and what the answer should have in it. Several calls at once work side by side. Agents:"
)
TOO_DEEP = f"This agent works for others, {MOST_DEPTH} deep already, and may not call a further one. Do it yourself."


class Employs(Protocol):
    """Who opens the conversations of subagents."""

    def caller(self, session: str) -> AgentSession | None:
        """The session that a call comes from; None when it comes from none."""

    async def open_subagent(self, agent: str, caller: AgentSession | None, call_id: str) -> AgentSession:
        """The conversation in which a subagent works on a call: a new one, or that of before it was cut off."""


class AgentTool:
    """Calls one of the agents that the configuration names."""

    kind = OWN
    confined = True
    """What it does, it does by calls of its own, each along the one path."""

    def __init__(self, agents: Mapping[str, str], sessions: Employs) -> None:
        """`agents` are their names, with what each is for."""
        self._sessions = sessions
        lines = [f"- {name}: {about}" if about else f"- {name}" for name, about in agents.items()]
        schema = {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": list(agents)},
                "prompt": {"type": "string", "description": "The work, with all that there is to know for it."},
            },
            "required": ["agent", "prompt"],
            "additionalProperties": False,
        }
        self.spec = ToolSpec(
            name=ASK_AGENT,
            description="\n".join([DESCRIPTION, *lines]),
            input=JsonInput(schema=schema),
            hints=Hints(resumes=True),
        )

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        return Plan(arguments=arguments, cwd=context.cwd)

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        return f"{plan.arguments['agent']}: {' '.join(str(plan.arguments['prompt']).split())[:200]}"

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Let the agent work until it answers; a call that was cut off goes on where it was."""
        caller = self._sessions.caller(context.session)
        if caller and len(caller.callers) >= MOST_DEPTH - 1:
            return ToolResult(text=TOO_DEEP, failure="denied")
        session = await self._sessions.open_subagent(plan.arguments["agent"], caller, context.call_id)
        try:
            await work(session, caller, plan.arguments["prompt"], context.call_id)
        finally:
            await session.aclose()
        return result_of(session)


async def work(session: AgentSession, caller: AgentSession | None, prompt: str, call_id: str) -> None:
    """One turn of the subagent, told to those who listen to its caller."""
    history = session.history()
    if history.turn and not history.is_open:
        return  # it had its answer when the application ended, and only the caller did not
    async for update in session.send(None if history.is_open else prompt):
        if caller:
            caller.tell(SubagentTold(call_id=call_id, session=session.id, agent=session.agent, update=update))
    if caller and session.waiting():
        caller.defer(call_id)


def result_of(session: AgentSession) -> ToolResult:
    """The answer, and how the turn came to it where that matters."""
    events = session.events()
    ended = next((one.event for one in reversed(events) if isinstance(one.event, TurnEnded)), None)
    answer = last_answer(session.history().messages)
    text = answer.text if answer else ""
    if ended is None or ended.outcome != "answered":
        outcome, reason = (ended.outcome, ended.reason) if ended else ("waiting", "a question has no answer yet")
        text = f"{text}\n[The agent '{session.agent}' ended without finishing ({outcome}): {reason}]".lstrip()
    spent = Spent(steps=spent_in(events).steps, usage=ended.usage) if ended else Spent()
    failed = ended is None or ended.outcome not in ("answered", "budget")
    data = {"session": session.id, SPENT: msgspec.to_builtins(spent)}
    return ToolResult(text=text, failure="crash" if failed else None, data=data)


def subagents_in(configuration: Configuration, agent: str) -> dict[str, str]:
    """The agents that an agent may call, with what they are for."""
    named = configuration.for_agent(agent).get("subagents")
    known, about = configuration.agents(), mapping(configuration.value.get("agents"))
    found = [name for name in named if name in known] if isinstance(named, list) else []
    return {name: str(mapping(about.get(name)).get("description") or "") for name in found}


def subagent_problems(configuration: Configuration) -> Iterator[Problem]:
    """A problem for each name in `subagents` that no agent has."""
    places = [(), *(("agents", name) for name in mapping(configuration.value.get("agents")))]
    known = configuration.agents()
    for pointer in places:
        layer = configuration.value if not pointer else mapping(mapping(configuration.value["agents"]).get(pointer[1]))
        named = layer.get("subagents")
        for index, name in enumerate(named if isinstance(named, list) else ()):
            if isinstance(name, str) and name not in known:
                yield Problem(
                    code="agent_unknown",
                    message=f"'subagents' names '{name}', and no agent is called that",
                    hint=did_you_mean(name, known, otherwise=f"there are {', '.join(known)}"),
                    where=configuration.document.position((*pointer, "subagents", index)),
                )
