"""Plugins by what they can do: classes with state, features, providers, modules; and what is said of the others."""

from __future__ import annotations

import types
from typing import Any

import pytest

from toolyard.core.tool import TextInput
from toolyard.plugins.author_code.context import ToolContext
from toolyard.plugins.author_code.hooks import fitting_call
from toolyard.plugins.contract import tool
from toolyard.testing import open_plugin

pytestmark = pytest.mark.anyio
INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}}


def function_schema(name: str = "count", **parameters: Any) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in parameters.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


class Counter:
    """A plugin with a state."""

    id = "counter"
    made = 0

    def init(self, config):
        Counter.made += 1
        return {"count": config.get("start", 0)}

    def prepare(self, config, state):
        return [f"from {state['count']}"]

    def get_tool_schemas(self, state, prepared=None):
        schema = function_schema("count", by="integer")
        schema["function"]["description"] = f"Count up {prepared[0]}."
        return [schema]

    def execute_tool(self, tool_name, arguments, state):
        state["count"] += arguments.get("by", 1)
        return f"{tool_name}: {state['count']}"

    def preview_tool(self, tool_name, payload, state):
        return f"{tool_name} from {state['count']}"


async def test_a_class_keeps_its_own_state():
    async with open_plugin(Counter, config={"start": 10}) as plugin:
        assert plugin.problems == []
        assert plugin.specs["count"].description == "Count up from 10."
        assert await plugin.preview("count", {}) == "count from 10"
        assert (await plugin.call("count", {})).text == "count: 11"
        assert (await plugin.call("count", {"by": 5})).text == "count: 16"
        plugin.config = {"start": 0}
        assert (await plugin.call("count", {})).text == "count: 1", "another agent, another state"
        plugin.config = {"start": 10}
        assert (await plugin.call("count", {})).text == "count: 17"


async def test_every_method_may_be_async():
    class Later:
        id = "later"

        async def init(self, config):
            return {"greeting": "hello"}

        async def prepare_async(self, config, state):
            return "prepared"

        async def get_tool_schemas(self, state, prepared=None):
            assert prepared == "prepared"
            return [function_schema("greet")]

        async def execute_tool(self, tool_name, payload, state, context):
            context.emit("…")
            return state["greeting"]

        async def aclose(self):
            closed.append(True)

    closed: list[bool] = []
    async with open_plugin(Later) as plugin:
        assert (await plugin.call("greet", {})).text == "hello"
        assert plugin.partial_output == "…"
    assert closed == [True]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}},
        {
            "type": "custom",
            "custom": {
                "name": "patch",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}},
            },
        },
    ],
)
async def test_a_payload_may_be_free_text(schema):
    class Patch:
        id = "patch"

        def get_tool_schemas(self, state):
            return [schema]

        def execute_tool(self, payload):
            assert isinstance(payload, str)
            return payload.upper()

    async with open_plugin(Patch) as plugin:
        assert plugin.specs["patch"].input == TextInput(syntax="lark", grammar="start: X")
        assert (await plugin.call("patch", {"input": "*** begin"})).text == "*** BEGIN"


@pytest.mark.parametrize(
    "schema",
    [
        function_schema("probe", a="integer"),
        {"type": "function", "name": "probe", "parameters": INTEGER},
        {"name": "probe", "input_schema": INTEGER},
    ],
)
async def test_schemas_of_every_usual_form(schema):
    class Probe:
        id = "probe"

        def get_tool_schemas(self, state):
            return [schema]

        def execute_tool(self, tool_name, args, state):
            return args["a"] + 1

    async with open_plugin(Probe) as plugin:
        assert (await plugin.call("probe", {"a": "1"})).text == "2"


def test_methods_get_what_they_ask_for_in_any_order():
    given = {"tool_name": "t", "payload": {"a": 1}, "state": "s", "context": "c"}
    aliases = {"arguments": "payload"}
    for function, expected in [
        (lambda state, tool_name, arguments: (state, tool_name, arguments), ("s", "t", {"a": 1})),
        (lambda which, what, state: (which, what, state), ("t", {"a": 1}, "s")),
        (lambda arguments, missing=3: (arguments, missing), ({"a": 1}, 3)),
        (lambda tool_name, **rest: sorted(rest), ["context", "payload", "state"]),
        (lambda *, context: context, "c"),
        (lambda: "nothing", "nothing"),
    ]:
        assert fitting_call(function, given, aliases)() == expected
    with pytest.raises(TypeError, match="wants 'e'"):
        fitting_call(lambda a, b, c, d, e: None, given)


async def test_a_plugin_whose_init_fails_is_a_load_failure():
    class Broken:
        id = "broken"

        def init(self, config):
            raise ValueError("no key")

        def get_tool_schemas(self, state):
            return []

        def execute_tool(self, tool_name):
            return ""

    async with open_plugin(Broken) as plugin:
        (problem,) = plugin.problems
        assert "init of 'Broken' raised ValueError: no key" in problem.message
        assert problem.where.file.name == "test_plugins.py"
        assert problem.where.line
        assert plugin.plugins == []


async def test_an_init_that_fails_for_one_agent_fails_his_calls_alone():
    class Picky:
        id = "picky"

        def init(self, config):
            if config.get("bad"):
                raise ValueError("not for you")

        def get_tool_schemas(self, state):
            return [function_schema("ask")]

        def execute_tool(self, tool_name):
            return "fine"

    async with open_plugin(Picky) as plugin:
        plugin.config = {"bad": True}
        result = await plugin.call("ask", {})
        assert result.failure == "crash"
        assert "not for you" in result.text
        plugin.config = {}
        assert (await plugin.call("ask", {})).text == "fine"


@pytest.mark.parametrize(
    ("schemas", "words"),
    [
        ({"a": 1}, "not a list"),
        (["x"], "neither"),
        ([{"type": "function", "function": {}}], "no name"),
        ([{"type": "custom"}], "no name"),
        ([{"type": "function", "function": {"name": "x", "parameters": {"type": "strange"}}}], "no JSON Schema"),
        ([{"type": "function", "function": {"name": "x", "parameters": 3}}], "no JSON Schema"),
    ],
)
async def test_a_faulty_schema_is_a_problem_of_the_author(schemas, words):
    class Faulty:
        id = "faulty"

        def get_tool_schemas(self, state):
            return schemas

        def execute_tool(self, tool_name):
            return ""

    async with open_plugin(Faulty) as plugin:
        (problem,) = plugin.problems
        assert problem.code == "plugin_schema"
        assert words in problem.message


class Feature:
    id = "feature"

    def build_system_message(self, config, context):
        return "Be brief."


class Provider:
    id = "provider"
    default_enabled = False

    async def stream(self, request, context):
        yield "text"


class Application:
    id = "application"

    def on_event(self, event):
        pass


@pytest.mark.parametrize(
    ("target", "kind", "enabled"),
    [
        (Counter, "python", True),
        (Feature, "feature", True),
        (Feature(), "feature", True),
        (Provider, "provider", False),
        (Application, "application", True),
    ],
)
async def test_the_kind_is_what_a_plugin_can_do(target, kind, enabled):
    async with open_plugin(target) as plugin:
        (found,) = plugin.plugins
        assert (found.kind, found.default_enabled) == (kind, enabled)
        assert found.instance.id == found.id


class Nothing:
    id = "nothing"


class Nameless:
    def stream(self, request):
        pass


class Exits:
    id = "exits"

    def __init__(self):
        raise SystemExit(2)


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        (Nothing, "plugin_entry", "is no plugin"),
        (Nameless, "plugin_id", "has no id"),
        (Exits, "plugin_failed_exit", "called sys.exit(2)"),
        (lambda *args: None, "plugin_signature", "*args"),
        (types.ModuleType("empty"), "plugin_entry", "without plugins"),
    ],
)
async def test_what_is_no_plugin_says_why(target, code, words):
    async with open_plugin(target) as plugin:
        (problem,) = plugin.problems
        assert problem.code == code
        assert words in problem.message


async def test_a_function_says_when_it_is_on():
    @tool(default_enabled=False, tags=["git"], required_tags=["code"], forbidden_tags=["readonly"])
    def commit(message: str, context: ToolContext) -> str:
        """Commit."""
        return message

    async with open_plugin(commit) as plugin:
        (found,) = plugin.plugins
        assert found.default_enabled is False
        instance = found.instance
        assert (instance.tags(), instance.required_tags(), instance.forbidden_tags()) == (
            ["git"],
            ["code"],
            ["readonly"],
        )
