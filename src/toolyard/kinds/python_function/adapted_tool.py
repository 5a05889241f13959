"""A tool under another name: the author's code only says which tool of the application does the work, and how."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.text import one_line
from toolyard.core.tool import JsonInput, Plan, TextInput, ToolResult
from toolyard.errors import ToolError
from toolyard.plugins.author_code.hooks import fitting_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.core.tool import CallContext, JsonObject, Tool, ToolSpec


ADVICE_LINES = 2


class BaseCall(msgspec.Struct, frozen=True):
    """The tool that does the work, and what it is about to do."""

    tool: Any
    plan: Plan


class AdaptedTool:
    """It runs where and as far as the tool does that it stands for, under the same rules."""

    confined = True

    def __init__(
        self,
        spec: ToolSpec,
        as_call: Callable[..., Any],
        tools: Callable[[], Mapping[str, Tool]],
        as_answer: Callable[..., Any] | None = None,
        own_words: Mapping[str, str] | None = None,
        asks_reach: str = "",
    ) -> None:
        self.spec = spec
        self.asks_reach = asks_reach
        self._as_answer = as_answer
        self._own_words = own_words or {}
        self.code = as_call
        """What the author wrote."""
        self._tools = tools
        """Those that can do the work, as they are now."""

    @property
    def kind(self) -> str:
        return next((tool.kind for tool in self._tools().values()), "python")

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """What the other tool would do with the arguments as the author translates them."""
        payload = arguments["input"] if isinstance(self.spec.input, TextInput) else dict(arguments)
        given = {"tool_name": self.spec.name, "payload": payload, "config": context.config, "cwd": context.cwd}
        try:
            meant = fitting_call(self.code, given)()
        except (ToolError, ValueError) as error:
            return ToolResult(text=f"Error: {error}", failure="invalid_arguments")
        if isinstance(meant, str):
            return Plan(arguments=arguments, argv=[self.spec.name], cwd=context.cwd, reach="look", prepared=meant)
        name, translated = meant
        if name not in self._decoders:
            known = ", ".join(self._decoders)
            text = (
                f"The tool '{self.spec.name}' could not be run: there is no tool '{name}' to do its work, but {known}"
            )
            return ToolResult(text=text, failure="crash")
        decoded = self._decoders[name].decode(translated)
        if not isinstance(decoded, dict):
            return ToolResult(text=decoded.describe(self.spec.name), failure="invalid_arguments")
        tool = self._tools()[name]
        plan = tool.plan(decoded, context)
        if isinstance(plan, ToolResult):
            return plan
        return replace(plan, arguments=arguments, prepared=BaseCall(tool, plan))

    async def preview(self, plan: Plan, context: CallContext) -> str:
        match plan.prepared:
            case BaseCall(tool=tool, plan=base):
                return str(await tool.preview(base, context))
        return one_line(plan.prepared)

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        match plan.prepared:
            case BaseCall(tool=tool, plan=base):
                return self._translated(await tool.run(base, context), plan.arguments, context)
        return ToolResult(text=plan.prepared, bytes_out=len(plan.prepared.encode("utf-8", "replace")))

    def _translated(self, result: ToolResult, arguments: JsonObject, context: CallContext) -> ToolResult:
        """The answer in the words of the family, if the author has any."""
        if self._own_words:
            result = replace(result, text=with_words(result.text, self._own_words, has_failed=bool(result.failure)))
        if self._as_answer is None:
            return result
        payload = arguments["input"] if isinstance(self.spec.input, TextInput) else dict(arguments)
        given = {"tool_name": self.spec.name, "payload": payload, "text": result.text, "config": context.config}
        try:
            text = fitting_call(self._as_answer, given)()
        except (ToolError, ValueError) as error:
            return replace(result, text=f"{result.text}\nError: {error}")
        return replace(result, text=str(text))

    @cached_property
    def _decoders(self) -> Mapping[str, ArgumentDecoder]:
        """What fills in the defaults of the tools that do the work."""
        shapes = {name: tool.spec.input for name, tool in self._tools().items()}
        return {name: ArgumentDecoder(shape.schema) for name, shape in shapes.items() if isinstance(shape, JsonInput)}


def with_words(text: str, own_words: Mapping[str, str], *, has_failed: bool) -> str:
    """What a tool says itself, with the names that a model was given; what files and commands say stays as it is.

    A failure is said, with what to do, in the first two lines, and what is left out in a last line of its own.
    """
    lines = text.split("\n")
    ours = {*range(min(ADVICE_LINES, len(lines)))} if has_failed else set()
    if lines[-1].startswith("["):
        ours.add(len(lines) - 1)
    for number in ours:
        for pattern, words in own_words.items():
            lines[number] = re.sub(pattern, words, lines[number])
    return "\n".join(lines)
