"""The inspector of the protocol's makers, which people try servers with, against `toolyard serve --mcp stdio`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import PACKAGES, newer_node
from support import CommandLine

INSPECTOR = PACKAGES / "@modelcontextprotocol" / "inspector" / "cli" / "build" / "cli.js"
SUITE_SERVER = Path(__file__).parents[2] / "mcp_servers" / "suite_server.py"
ADD = '''
from toolyard import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture
def inspect(toolyard: CommandLine):
    node = newer_node()
    toolyard.file("add.py", ADD)
    source = {"mcp": {"command": [sys.executable, str(SUITE_SERVER), "handshake"], "name": "suite"}}
    toolyard.file("toolyard.json", json.dumps({"plugins": ["path:./add.py", source]}))
    assert toolyard("plugins", "status", "suite").code == 0  # which waits until it has said what it offers

    def run(method: str, *words: str) -> Any:
        server = [str(toolyard.path), "serve", "--mcp", "stdio"]
        ran = toolyard.run([node, str(INSPECTOR), "--cli", *server, "--method", method, *words])
        assert ran.code == 0, ran.out + ran.err
        return json.loads(ran.out)

    return run


def test_it_lists_and_calls_tools(inspect):
    listed = inspect("tools/list")["tools"]
    assert {"add", "test_simple_text"} <= {one["name"] for one in listed}
    called = inspect("tools/call", "--tool-name", "add", "--tool-arg", "a=1", "--tool-arg", "b=2")
    assert called["content"] == [{"type": "text", "text": "3"}]


def test_it_sees_what_a_server_behind_has(inspect):
    assert "test://static-text" in {one["uri"] for one in inspect("resources/list")["resources"]}
    assert inspect("resources/read", "--uri", "test://static-text")["contents"][0]["mimeType"] == "text/plain"
    assert "test_simple_prompt" in {one["name"] for one in inspect("prompts/list")["prompts"]}
    assert inspect("prompts/get", "--prompt-name", "test_simple_prompt")["messages"]
