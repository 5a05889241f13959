"""The files of a new Python tool."""

from __future__ import annotations

import json

from toolyard.authoring.scaffold import NewFile

MODULE = '''"""Try it: toolyard tool check .    toolyard tool test ."""

from toolyard.plugins.contract import ToolError, tool


def preview(name: str, loud: bool = False) -> str:
    """One line for the person who watches."""
    return f"greet {name}"


@tool(read_only=True, preview=preview)
def @NAME@(name: str, loud: bool = False) -> str:
    """Greet somebody by name.

    Args:
        name: Whom to greet.
        loud: Whether to shout.
    """
    if not name:
        raise ToolError("name must not be empty", exit_code=3)
    greeting = f"Hello, {name}!"
    return greeting.upper() if loud else greeting
'''


def new_files(name: str, mode: str | None) -> list[NewFile]:  # noqa: ARG001 - only bash scripts have modes
    """A module, a descriptor that names its function, and cases that pass as they are."""
    module = name.replace("-", "_")  # as Python names modules and functions
    return [
        NewFile(path=f"{module}.py", text=MODULE.replace("@NAME@", module)),
        NewFile(path="agent_plugin.json", text=as_json({"entries": [f"{module}.{module}"]})),
        NewFile(path=f"tests/{module}.json", text=as_json(cases())),
    ]


def cases() -> list[dict[str, object]]:
    return [
        {"name": "greets by name", "arguments": {"name": "Ada"}, "output": "Hello, Ada!", "preview": "greet Ada"},
        {"name": "shouts when asked", "arguments": {"name": "Ada", "loud": True}, "output": "HELLO, ADA!"},
        {"name": "keeps quotes", "arguments": {"name": 'it\'s "me"'}, "output": 'Hello, it\'s "me"!'},
        {"name": "needs a name", "arguments": {}, "failure": "invalid_arguments"},
        {
            "name": "fails on an empty name",
            "arguments": {"name": ""},
            "exit": 3,
            "output": "Error: name must not be empty",
        },
    ]


def as_json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
