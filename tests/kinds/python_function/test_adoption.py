"""Whatever an author's objects do while they are looked at, it is one problem and stops nothing else."""

from __future__ import annotations

import textwrap

import pytest

from toolyard import AgentApplication

pytestmark = pytest.mark.anyio

FINE = """
    from toolyard import tool

    @tool
    def fine() -> str:
        "Fine."
        return "fine"
"""
ODD = {
    "a constructor that adds a global": (
        """
        from toolyard import tool

        class Counter:
            id = "counter"

            def __init__(self):
                global MADE
                MADE = True

            def get_tool_schemas(self, state):
                return [{"type": "function", "function": {"name": "odd", "parameters": {"type": "object"}}}]

            def execute_tool(self, tool_name, payload):
                return "odd"

        @tool
        def another() -> str:
            "Another."
            return "another"
        """,
        None,
    ),
    "an object that nobody can look at": (
        """
        class Proxy:
            def __getattribute__(self, name):
                raise RuntimeError("outside of a request")

        request = Proxy()
        """,
        "outside of a request",
    ),
    "a property that fails": (
        """
        class Plugin:
            def get_tool_schemas(self, state): ...
            def execute_tool(self, payload): ...

            @property
            def id(self):
                raise LookupError("no id yet")

        plugin = Plugin()
        """,
        "is a module without plugins",
    ),
    "a model without a schema": (
        """
        from toolyard import tool

        class Model:
            @classmethod
            def model_json_schema(cls):
                raise KeyError("Color")

        @tool
        def odd(model: Model) -> str: ...
        """,
        "KeyError: 'Color'",
    ),
    "a model that refers to nothing": (
        """
        from toolyard import tool

        class Model:
            @classmethod
            def model_json_schema(cls):
                return {"$ref": "#/$defs/Color"}

            model_validate = model_json_schema

        @tool
        def odd(model: Model) -> str: ...
        """,
        "Color",
    ),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_module_is_at_most_one_problem(tmp_path, name):
    source, told = ODD[name]
    (tmp_path / "odd_one.py").write_text(textwrap.dedent(source))
    (tmp_path / "fine_one.py").write_text(textwrap.dedent(FINE))
    plugins = ["path:odd_one.py", "path:fine_one.py"]
    (tmp_path / "toolyard.json").write_text(f'{{"plugins": {str(plugins).replace(chr(39), chr(34))}}}')
    async with AgentApplication(tmp_path / "toolyard.json", tmp_path / "sessions") as app:
        problems = [problem for problem in app.problems() if problem.code.startswith("plugin")]
        assert (await app.call_tool("fine", {})).text == "fine"
        if told is None:
            assert problems == []
            assert (await app.call_tool("odd", {})).text == "odd"
        else:
            assert len(problems) == 1
            assert told in problems[0].message
            assert problems[0].code != "plugin_crashed"


CALLABLE = """
    import functools

    def base(first: int, second: str = "x", *, third: bool = False) -> str:
        "Take three."
        return repr((first, second, third))

    class Greeter:
        "Greet somebody."
        def __call__(self, name: str, times: int = 1) -> str:
            return f"hello {name} " * times
        async def later(self, name: str) -> str:
            return f"later {name}"

    class Unnamed:
        async def __call__(self, name: str) -> str:
            "Without a name of its own."
            return f"unnamed {name}"

    bound = functools.partial(base, 5, third=True)
    later = functools.partial(base, second="set")
    greeter = Greeter()
    in_time = greeter.later
    short = lambda name, mark="!": name + mark
    unnamed = Unnamed()
"""


@pytest.mark.parametrize(
    ("entry", "name", "description", "given", "text"),
    [
        ("bound", "bound", "Take three.", {"second": "y"}, "(5, 'y', True)"),
        ("later", "later", "Take three.", {"first": 1}, "(1, 'set', False)"),
        ("greeter", "greeter", "Greet somebody.", {"name": "ada", "times": 2}, "hello ada hello ada "),
        ("Greeter", "Greeter", "Greet somebody.", {"name": "ada"}, "hello ada "),
        ("in_time", "later", "", {"name": "ada"}, "later ada"),
        ("short", "short", "", {"name": "ada"}, "ada!"),
        ("unnamed", "unnamed", "Without a name of its own.", {"name": "ada"}, "unnamed ada"),
    ],
)
async def test_what_can_be_called_is_a_tool(tmp_path, monkeypatch, entry, name, description, given, text):
    (tmp_path / "callable_things.py").write_text(textwrap.dedent(CALLABLE))
    (tmp_path / "toolyard.json").write_text(f'{{"plugins": ["callable_things.{entry}"]}}')
    monkeypatch.syspath_prepend(str(tmp_path))
    async with AgentApplication(tmp_path / "toolyard.json", tmp_path / "sessions") as app:
        assert app.get_config_errors() == []
        (spec,) = app.tool_specs()
        assert (spec.name, spec.description) == (name, description)
        assert (await app.call_tool(name, given)).text == text
