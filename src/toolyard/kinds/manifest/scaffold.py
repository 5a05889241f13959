"""A new manifest with one tool, whose program is a small script."""

from __future__ import annotations

import json

from toolyard.authoring.scaffold import NewFile


def new_files(name: str, mode: str | None) -> list[NewFile]:  # noqa: ARG001 - there is one way only
    """The manifest, the program it names and the tool's cases."""
    return [
        NewFile(path="tools.json", text=json.dumps({"tools": [entry(name)]}, indent=2) + "\n"),
        NewFile(path=f"tools/bin/{name}", text=PROGRAM.replace("@NAME@", name), executable=True),
        NewFile(path=f"tests/{name}.json", text=json.dumps(cases(name), indent=2) + "\n"),
    ]


def entry(name: str) -> dict[str, object]:
    return {
        "name": name,
        "description": "Greet somebody by name.",
        "schema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whom to greet."},
                "loud": {"type": "boolean", "description": "Whether to shout."},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "command": [f"./tools/bin/{name}"],
        "timeoutSec": 10,
    }


def cases(name: str) -> list[dict[str, object]]:
    """Test cases that pass as they are."""
    return [
        {
            "name": "greets by name",
            "arguments": {"name": "Ada"},
            "output": '{"greeting": "Hello, Ada!"}',
            "preview": f"{name} name=Ada",
        },
        {"name": "shouts when asked", "arguments": {"name": "Ada", "loud": True}, "output_contains": "HELLO, ADA!"},
        {
            "name": "keeps spaces and quotes",
            "arguments": {"name": 'it\'s  "me"'},
            "output": '{"greeting": "Hello, it\'s  \\"me\\"!"}',
        },
        {"name": "needs a name", "arguments": {}, "failure": "invalid_arguments"},
        {
            "name": "fails on an empty name",
            "arguments": {"name": ""},
            "exit": 1,
            "output": '{"error": "name must not be empty"}',
        },
    ]


PROGRAM = r"""#!/usr/bin/env python3
# Try it: echo '{"name": "Ada"}' | ./tools/bin/@NAME@
#         toolyard tool check .    toolyard tool test .
import json
import sys

# The arguments are the JSON text that the model wrote; they fit the schema by now.
arguments = json.load(sys.stdin)

if not arguments["name"]:
    # What the model sees when the tool failed; say what to do differently.
    sys.exit(json.dumps({"error": "name must not be empty"}))

greeting = f"Hello, {arguments['name']}!"
if arguments.get("loud"):
    greeting = greeting.upper()
# One line of JSON is what the model sees.
print(json.dumps({"greeting": greeting}, ensure_ascii=False))
"""
