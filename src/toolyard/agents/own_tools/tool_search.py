"""The tool `search_tools`, for agents with very many: a model is shown those that it looked for instead of all."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.own_tools.tool_index import ToolIndex
from toolyard.core.conversation import AssistantMessage
from toolyard.core.own_names import SEARCH_TOOLS
from toolyard.core.tool import OWN, Hints, JsonInput, Plan, ToolResult, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.conversation import Message
    from toolyard.core.tool import CallContext, JsonObject, Tool, ToolCall

MOST = 5
SPEC = ToolSpec(
    name=SEARCH_TOOLS,
    description=(
        "Find tools by what they do. There are {number}, and only those are shown that were found before. Say in plain "
        "words what you want to do; the best five come back, with their arguments, and can be called from then on."
    ),
    input=JsonInput(
        schema={
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Such as: send a message to a channel"}},
            "required": ["query"],
            "additionalProperties": False,
        }
    ),
    hints=Hints(read_only=True),
)


class SearchTool:
    """Looks among the tools of one agent."""

    kind = OWN
    confined = True

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._specs = [tool.spec for tool in tools]
        self.spec = msgspec.structs.replace(SPEC, description=SPEC.description.format(number=len(tools)))

    @cached_property
    def index(self) -> ToolIndex:
        """Made when it is first needed."""
        return ToolIndex(self._specs)

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        return Plan(arguments=arguments, cwd=context.cwd)

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        return f"tools for: {plan.arguments['query']}"

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:  # noqa: ARG002 - the interface
        """The tools that fit best, as a model reads them."""
        found = self.index.search(plan.arguments["query"], MOST)
        if not found:
            return ToolResult(text="No tool fits. Say it in other words.")
        return ToolResult(text="\n\n".join(map(described, found)))


def described(spec: ToolSpec) -> str:
    arguments = spec.input.schema if isinstance(spec.input, JsonInput) else {"input": "free text"}
    return f"{spec.name}: {spec.description}\narguments: {msgspec.json.encode(arguments).decode()}"


def shown_tools(tools: Sequence[Tool], messages: Sequence[Message]) -> list[ToolSpec]:
    """What a model is shown: all tools; where it can look for them, those that it found or called, and what it always
    has: the application's own, and those that its API has a form of its own for.
    """
    search = next((tool for tool in tools if isinstance(tool, SearchTool)), None)
    if search is None:
        return [tool.spec for tool in tools]
    calls = [call for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
    found = dict.fromkeys(name for call in calls for name in names_from(call, search))
    always = [tool.spec for tool in tools if tool.kind == OWN or tool.spec.native]
    later = {tool.spec.name: tool.spec for tool in tools if tool.spec not in always}
    return [*always, *(later[name] for name in found if name in later)]


def without_search(tools: Sequence[Tool]) -> list[ToolSpec]:
    """All but our own search, for a service that has one."""
    return [tool.spec for tool in tools if not isinstance(tool, SearchTool)]


def names_from(call: ToolCall, search: SearchTool) -> list[str]:
    """The tools that a call made known: those that a search found, else the one that was called."""
    if call.name != SEARCH_TOOLS:
        return [call.name]
    try:
        arguments = msgspec.json.decode(call.arguments) if isinstance(call.arguments, str) else call.arguments
        return [spec.name for spec in search.index.search(str(arguments["query"]), MOST)]
    except (msgspec.DecodeError, KeyError, TypeError):
        return []
