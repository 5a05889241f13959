"""A new Node tool: a package with one module."""

from __future__ import annotations

import json

from toolyard.authoring.scaffold import NewFile


def new_files(name: str, mode: str | None) -> list[NewFile]:  # noqa: ARG001 - Node tools have no modes
    """The package, its module and its cases."""
    package = {
        "name": name.lower().strip("_-") or "tool",
        "version": "0.1.0",
        "private": True,
        "type": "module",
        "agent": {"kinds": ["tools"], "tools": [{"id": name, "entry": "index.js"}]},
    }
    return [
        NewFile(path="package.json", text=json.dumps(package, indent=2) + "\n"),
        NewFile(path="index.js", text=MODULE),
        NewFile(path=f"tests/{name}.json", text=json.dumps(CASES, indent=2) + "\n"),
    ]


MODULE = r"""// Try it: toolyard tool check .    toolyard tool test .
export default {
  description: "Greet somebody by name.",

  parameters: {
    type: "object",
    properties: {
      name: { type: "string", description: "Whom to greet." },
      loud: { type: "boolean", default: false, description: "Whether to shout." },
    },
    required: ["name"],
    additionalProperties: false,
  },

  // One line for the person who watches.
  preview({ name }) {
    return `greet ${name}`;
  },

  // The work. What is returned is what the model sees; an error is told in its own words.
  // With `async *run`, whatever is yielded is seen at once. `context` has `signal`, `cwd`, `config` and `write`.
  async run({ name, loud }, context) {
    context.signal.throwIfAborted();
    if (!name) throw new Error("name must not be empty");
    const greeting = `Hello, ${name}!`;
    return loud ? greeting.toUpperCase() : greeting;
  },
};
"""

CASES: list[dict[str, object]] = [
    {"name": "greets by name", "arguments": {"name": "Ada"}, "output": "Hello, Ada!", "preview": "greet Ada"},
    {"name": "shouts when asked", "arguments": {"name": "Ada", "loud": True}, "output": "HELLO, ADA!"},
    {"name": "keeps spaces and quotes", "arguments": {"name": 'it\'s  "me"'}, "output": 'Hello, it\'s  "me"!'},
    {"name": "needs a name", "arguments": {}, "failure": "invalid_arguments"},
    {
        "name": "fails on an empty name",
        "arguments": {"name": ""},
        "failure": "exit_code",
        "output_contains": "name must not be empty",
    },
]
