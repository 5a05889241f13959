"""A class with tools and a state of its own, one for each configuration that it is called with."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.arguments.schema import schema_fault
from toolyard.core.problems import Position, Problem
from toolyard.core.tool import JsonInput, TextInput, ToolSpec
from toolyard.kinds.python_function.tool import PythonTool, Work
from toolyard.plugins.author_code.hooks import fitting_call
from toolyard.plugins.author_code.running import OutOfTime, Raised, is_async

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.core.tool import Json, JsonObject, Tool
    from toolyard.plugins.author_code.context import ToolContext
    from toolyard.plugins.author_code.hooks import AuthorCode
    from toolyard.plugins.base_tools import BaseTools


MOST_STATES = 16
"""Of how many agents a plugin remembers the state at the same time."""
ALIASES = {
    **dict.fromkeys(("name", "tool"), "tool_name"),
    **dict.fromkeys(("arguments", "args", "input", "parameters", "tool_input"), "payload"),
    **dict.fromkeys(("ctx", "tool_context"), "context"),
}
"""Other names by which authors ask for the same."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What `init` and `prepare` made of a configuration."""

    config: JsonObject
    state: Any
    prepared: Any


class ToolClass:
    """An instance with `get_tool_schemas` and `execute_tool`, or `as_call` for tools that others do the work of."""

    def __init__(self, instance: Any, author: AuthorCode, *, timeout: float, bases: BaseTools | None = None) -> None:
        self.instance = instance
        self._bases = bases
        self.author = author
        self._timeout = timeout
        self._states: list[State] = []
        self._making = asyncio.Lock()

    async def tools(self, config: JsonObject, entry: str, where: Position) -> tuple[list[Tool], list[Problem]]:
        """The tools for a configuration, and what is wrong with them."""
        state = await self.state_for(config)
        if isinstance(state, Raised | OutOfTime):
            return [], [self.author.problem(state, f"init of '{entry}'")]
        given = {"state": state.state, "prepared": state.prepared}
        listed = await self.author.hook(self.instance.get_tool_schemas, given)
        if isinstance(listed, Raised | OutOfTime):
            return [], [self.author.problem(listed, f"get_tool_schemas of '{entry}'")]
        return self._read(listed.value, entry, where)

    def _read(self, listed: Any, entry: str, where: Position) -> tuple[list[Tool], list[Problem]]:
        if isinstance(listed, dict) or not isinstance(listed, list | tuple):
            return [], [mistake(f"get_tool_schemas of '{entry}' gives {type(listed).__name__}, not a list", where)]
        if fault := self._fault_of_base():
            return [], [mistake(f"'{entry}' {fault}", where)]
        tools: list[Tool] = []
        problems: list[Problem] = []
        for index, schema in enumerate(listed):
            spec = read_tool_schema(schema, self._timeout)
            if isinstance(spec, str):
                problems.append(mistake(f"tool {index} of '{entry}': {spec}", where))
            else:
                tools.append(self._tool(spec))
        return tools, problems

    def _base(self) -> Mapping[str, Tool]:
        """The tools of the application that it builds on."""
        bases, words = self._bases, base_words(self.instance)
        return {name: tool for word in words for name, tool in bases.named(word).items()} if bases else {}

    def _fault_of_base(self) -> str | None:
        as_call, as_answer = (getattr(self.instance, name, None) for name in ("as_call", "as_answer"))
        if (as_call and is_async(as_call)) or (as_answer and is_async(as_answer)):
            return "has an as_call or as_answer that is async, but those only translate, and must answer at once"
        if as_call and not are_words(getattr(self.instance, "own_words", {})):
            return "has own_words that are no regular expressions with what to say instead"
        unknown = [word for word in base_words(self.instance) if not (self._bases and self._bases.named(word))]
        return f"builds on '{unknown[0]}', which names no tools here" if as_call and unknown else None

    def _tool(self, spec: ToolSpec) -> Tool:
        if as_call := getattr(self.instance, "as_call", None):
            from toolyard.kinds.python_function.adapted_tool import AdaptedTool

            return AdaptedTool(
                spec,
                as_call,
                self._base,
                getattr(self.instance, "as_answer", None),
                own_words=getattr(self.instance, "own_words", None),
                asks_reach=getattr(self.instance, "asks_reach", ""),
            )
        code = self.instance.execute_tool
        return PythonTool(spec=spec, callee=MethodCallee(self, spec), code=code, roots=self.author.roots)

    async def state_for(self, config: JsonObject) -> State | Raised | OutOfTime:
        """The state of a configuration, made when it is first asked for."""
        async with self._making:
            for known in self._states:
                if known.config is config or known.config == config:
                    return known
            made = await self._make(config)
            if isinstance(made, State):
                self._states = [made, *self._states[: MOST_STATES - 1]]
            return made

    async def _make(self, config: JsonObject) -> State | Raised | OutOfTime:
        state = await self._optional("init", {"config": config})
        if isinstance(state, Raised | OutOfTime):
            return state
        given = {"config": config, "state": state}
        hook = "prepare_async" if hasattr(self.instance, "prepare_async") else "prepare"
        prepared = await self._optional(hook, given)
        if isinstance(prepared, Raised | OutOfTime):
            return prepared
        return State(config=config, state=state, prepared=prepared)

    async def _optional(self, method: str, given: Mapping[str, Any]) -> Any:
        function: Callable[..., Any] | None = getattr(self.instance, method, None)
        if function is None:
            return None
        outcome = await self.author.hook(function, given)
        return outcome if isinstance(outcome, Raised | OutOfTime) else outcome.value


def are_words(words: Any) -> bool:
    """Whether each is a regular expression and what to say instead."""
    try:
        for pattern, instead in words.items():
            re.sub(pattern, instead, "")
    except (AttributeError, TypeError, re.error):
        return False
    return True


def base_words(instance: Any) -> tuple[str, ...]:
    """The entries of the application that a plugin builds on, as it names them."""
    named: str | tuple[str, ...] = getattr(instance, "builds_on", ())
    return tuple(named) if not isinstance(named, str) else (named,) if named else ()


class MethodCallee:
    """One tool of a class."""

    def __init__(self, owner: ToolClass, spec: ToolSpec) -> None:
        self._owner = owner
        self._spec = spec

    def convert(self, arguments: JsonObject) -> Json:
        """The object itself; of free text only the text."""
        return arguments["input"] if isinstance(self._spec.input, TextInput) else dict(arguments)

    async def ready(self, arguments: Any, context: ToolContext) -> Work:
        return await self._work(self._owner.instance.execute_tool, arguments, context)

    async def preview(self, arguments: Any, context: ToolContext) -> Work | None:
        """The call of `preview_tool`, if there is one."""
        function = getattr(self._owner.instance, "preview_tool", None)
        return await self._work(function, arguments, context) if function else None

    async def _work(self, function: Callable[..., Any], arguments: Any, context: ToolContext) -> Work:
        state = await self._owner.state_for(context.config)
        if isinstance(state, Raised | OutOfTime):
            error = state.error if isinstance(state, Raised) else TimeoutError("init did not finish")
            return Work(call=lambda: throw(error), in_loop=False)
        given = {
            "tool_name": self._spec.name,
            "payload": arguments,
            "state": state.state,
            "prepared": state.prepared,
            "context": context,
            "config": context.config,
            "emit": context.emit,
            "call_id": context.call_id,
        }
        return Work(call=lambda: fitting_call(function, given, ALIASES)(), in_loop=is_async(function))


def throw(error: BaseException) -> None:
    raise error


def mistake(message: str, where: Position) -> Problem:
    hint = 'for example [{"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}]'
    return Problem(code="plugin_schema", message=message, hint=hint, where=where)


EMPTY: JsonObject = {"type": "object", "properties": {}}


def read_tool_schema(schema: Any, timeout: float) -> ToolSpec | str:
    """One tool: OpenAI's form for Chat or Responses, Anthropic's, a `custom` one for free text, or a `ToolSpec`."""
    match schema:
        case ToolSpec():
            return schema
        case {"type": "function", "function": dict(function)}:
            return function_spec(function, function.get("parameters"), timeout)
        case {"type": "custom", "custom": dict(custom)}:
            return text_spec(custom, timeout)
        case {"type": "custom"}:
            return text_spec(schema, timeout)
        case {"name": _, "input_schema": parameters} | {"type": "function", "name": _, "parameters": parameters}:
            return function_spec(schema, parameters, timeout)
        case {"type": "function", "name": _}:
            return function_spec(schema, None, timeout)
    return 'it is neither {"type": "function", …} nor {"type": "custom", …}'


def function_spec(function: dict[str, Json], parameters: Json, timeout: float) -> ToolSpec | str:
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    if parameters is None:
        parameters = EMPTY
    if fault := schema_fault(parameters):
        return f"the parameters of '{name}' are no JSON Schema: {fault}"
    return ToolSpec(
        name=name,
        description=str(function.get("description") or ""),
        input=JsonInput(schema=parameters),
        timeout=timeout,
    )


def text_spec(custom: dict[str, Json], timeout: float) -> ToolSpec | str:
    name = custom.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    form = custom.get("format") or {}
    grammar = form.get("grammar", form) if isinstance(form, dict) else {}
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    return ToolSpec(
        name=name,
        description=str(custom.get("description") or ""),
        input=TextInput(
            syntax=syntax if syntax in ("lark", "regex") else None,
            grammar=definition if isinstance(definition, str) else None,
        ),
        timeout=timeout,
    )
