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
