"""MCP servers that tests start: a thin one that speaks by its streams, and the SDK's own over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from yard import Yard

THIN = (Path(__file__).parent / "thin.py").read_text()
TEXT = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
ECHO = f"""
def echo(arguments, call):
    return text(arguments["value"])

ECHO = {{"name": "echo", "description": "Says it again.", "inputSchema": {TEXT!r}}}
"""


def thin_server(yard: Yard, code: str, *, file: str = "server.py", **options: Any) -> dict[str, Any]:
    """Write a server: `thin.py`, a tool `echo`, and code that calls `serve`; the entry that loads it."""
    yard.file(file, f"{THIN}\n{ECHO}\n{code}\n")
    return {"mcp": {"command": [sys.executable, f"./{file}"], **options}}


ECHO_SERVER = "serve([(ECHO, echo)])"
LOGGED = """
def note(word):
    with open("@/log", "a") as file:
        file.write(word + "\\n")
"""
"""A function that leaves a line in the file `log` of a folder, which stands for @."""


def logging_server(yard: Yard, code: str, **options: Any) -> dict[str, Any]:
    """A server that may note what it does in the yard's log."""
    return thin_server(yard, (LOGGED + code).replace("@", str(yard.folder)), **options)
