"""A tool that could not be loaded is named as that when it is called, and disturbs no other call."""

from __future__ import annotations

import pytest

from yard import Yard

pytestmark = pytest.mark.anyio

FINE = 'from toolyard import tool\n\n@tool\ndef fine() -> str:\n    "Fine."\n    return "fine"\n'
BROKEN = {
    "greet": ("path:broken.py", "broken.py", "import nothing_there\n\ndef greet(name: str): ...\n", "nothing_there"),
    "odd_one": ("path:odd_one.py", "odd_one.py", "def run(x: object): ...\n", "no JSON form"),
    "shout": ("bash:shout.bash", "shout.bash", "case $1 in schema) echo '{' ;; esac\n", "did not print JSON"),
    "count": ("node:count.mjs", "count.mjs", 'throw new Error("no good")\n', "no good"),
    "clock": ("manifest:tools.json", "tools.json", '{"tools": [{"name": "clock"}]}', "command must have"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_tool_that_failed_to_load_is_named_as_that(tmp_path, name, caplog):
    entry, file, text, why = BROKEN[name]
    yard = Yard(tmp_path)
    yard.file(file, text)
    yard.file("fine.py", FINE)
    caplog.set_level("INFO", "toolyard.node")
    async with yard.app(entry, "path:fine.py") as app:
        result = await app.call_tool(name, {})
        assert (result.failure, result.text.startswith(f"The tool '{name}' could not be loaded: ")) == (
            "unknown_tool",
            True,
        )
        assert why in result.text
        assert file in result.text
        assert (await app.call_tool("fine", {})).text == "fine"
        assert (await app.call_tool("nothing", {})).text.startswith("There is no tool named 'nothing'.")
    assert "    at " not in caplog.text  # no stack of a module that does not load, before every other call


async def test_of_several_that_failed_in_one_file_each_is_told_its_own_reason(tmp_path):
    yard = Yard(tmp_path)
    yard.file("several.py", "def first(*words: str):\n    'A.'\n\ndef second(x: object):\n    'B.'\n")
    async with yard.app("path:several.py") as app:
        assert "'several.first' cannot be a tool: it takes *args" in (await app.call_tool("first", {})).text
        second = (await app.call_tool("second", {})).text
        assert "several.py:4: 'several.second' cannot be a tool" in second
        assert "no JSON form" in second


async def test_a_plain_file_with_run_is_a_tool_under_its_files_name(tmp_path):
    yard = Yard(tmp_path)
    yard.file(
        "demo_py.py",
        '''
from typing import List, Literal, Optional


def helper(): ...


def run(
    text: str,
    choice: Literal["foo", "bar", "aaa"],
    number: float,
    many: List[str],
    maybe: Optional[int] = None,
    untyped=None,
):
    """Show how a plain file is read.
    Args:
        text: A text
        choice: One of three
        number: A number
        many: Several
        maybe: Perhaps
        untyped (int, optional): Said here
    """
    return {"text": text, "choice": choice, "number": number, "many": many, "maybe": maybe, "untyped": untyped}
''',
    )
    async with yard.app("path:demo_py.py") as app:
        assert app.problems() == []
        (spec,) = app.tool_specs()
        assert (spec.name, spec.description) == ("demo_py", "Show how a plain file is read.")
        properties = spec.input.schema["properties"]
        assert properties["choice"] == {"type": "string", "enum": ["foo", "bar", "aaa"], "description": "One of three"}
        assert properties["untyped"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
        assert spec.input.schema["required"] == ["text", "choice", "number", "many"]
        sent = {"text": "t", "choice": "aaa", "number": 2, "many": ["x"]}
        result = await app.call_tool("demo_py", sent)
        assert result.data == {**sent, "maybe": None, "untyped": None}


async def test_a_plain_file_without_run_has_a_tool_in_each_function_that_it_describes(tmp_path):
    yard = Yard(tmp_path)
    yard.file(
        "tools.py",
        '''
import json
from os.path import join


def add_todo(desc: str):
    """Add a new todo item.
    Args:
        desc: What is to do
    """
    return _save(desc)


async def list_todos() -> str:
    """Show all."""
    return "sweep"


def _save(desc):
    """Not for models."""
    return f"saved {desc}"


def helper(): ...
''',
    )
    async with yard.app("path:tools.py") as app:
        assert app.problems() == []
        assert {spec.name: spec.description for spec in app.tool_specs()} == {
            "add_todo": "Add a new todo item.",
            "list_todos": "Show all.",
        }
        assert (await app.call_tool("add_todo", {"desc": "sweep"})).text == "saved sweep"
        assert (await app.call_tool("add_todo", {})).failure == "invalid_arguments"
        assert (await app.call_tool("list_todos", {})).text == "sweep"
