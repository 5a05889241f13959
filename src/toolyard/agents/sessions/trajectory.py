"""A session in the Agent Trajectory Interchange Format, which programs for evaluation and training read."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, PromptGiven
from toolyard.agents.sessions.history import effective
from toolyard.core.content import text_of
from toolyard.core.conversation import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.agents.sessions.events import Stored
    from toolyard.agents.sessions.store import SessionRow
    from toolyard.core.tool import ToolCall

FORMAT = "ATIF-v1.7"


def as_trajectory(row: SessionRow, events: Iterable[Stored]) -> dict[str, Any]:
    """The whole session: a step for what was said, and for each answer with its calls and their results."""
    steps: list[dict[str, Any]] = []
    usage, model = Usage(), ""
    for one in effective(events):
        match one.event:
            case PromptGiven(message=message):
                steps.append(step(one, "user", text_of(message.content)))
            case AnswerReceived(message=message):
                usage, model = usage + message.usage, message.model or model
                made = step(one, "agent", message.text)
                made |= {"model_name": message.model or None, "reasoning_content": message.thinking or None}
                made |= {"tool_calls": [call_of(call) for call in message.calls] or None}
                made |= {"metrics": metrics_of(message.usage)}
                steps.append({key: value for key, value in made.items() if value is not None})
            case CallAnswered(answer=answer) if (caller := last_agent(steps)) is not None:
                result = {"source_call_id": answer.call_id, "content": text_of(answer.content)}
                caller.setdefault("observation", {"results": []})["results"].append(result)
            case _:
                pass
    for number, made in enumerate(steps, 1):
        made["step_id"] = number
    return {
        "schema_version": FORMAT,
        "session_id": row.id,
        "agent": {
            "name": "toolyard",
            "version": version("toolyard"),
            "model_name": model or None,
            "extra": {"agent": row.agent},
        },
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": usage.input,
            "total_completion_tokens": usage.output,
            "total_cached_tokens": usage.cached,
            "total_cost_usd": usage.cost,
            "total_steps": len(steps),
        },
    }


def step(one: Stored, source: str, text: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(one.time, UTC).isoformat()
    return {"step_id": 0, "timestamp": at, "source": source, "message": text}


def last_agent(steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The last answer, to which results belong, also where somebody said something meanwhile."""
    return next((one for one in reversed(steps) if one["source"] == "agent"), None)


def call_of(call: ToolCall) -> dict[str, Any]:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.MsgspecError:
            arguments = {"input": arguments}
    named = arguments if isinstance(arguments, dict) else {"input": arguments}
    return {"tool_call_id": call.id, "function_name": call.name, "arguments": named}


def metrics_of(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cached,
        "cost_usd": usage.cost,
    }
