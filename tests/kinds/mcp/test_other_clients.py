"""Files of other clients load as they are, in each one's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_servers import ECHO_SERVER, thin_server
from toolyard.config.document import Document, Place
from toolyard.kinds.mcp.author import McpAuthoring
from toolyard.kinds.mcp.kind import McpServers
from toolyard.kinds.mcp.other_clients.files import decoded
from toolyard.kinds.mcp.other_clients.plain_yaml import read_yaml
from yard import Yard

CLAUDE = {
    "mcpServers": {
        "files": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "pkg", "${HOME_OF_FILES:-/srv}"],
            "env": {"A": "${SOME_VAR}"},
        },
        "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${SOME_VAR}"}},
    }
}
CODEX = """
model = "x"
[mcp_servers.files]
command = "npx"
args = ["-y", "pkg"]
env_vars = ["SOME_VAR"]
enabled_tools = ["a", "b"]
tool_timeout_sec = 90
[mcp_servers.web]
url = "https://x.example/mcp"
bearer_token_env_var = "SOME_VAR"
"""
GEMINI = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["pkg"], "timeout": 30000, "includeTools": ["a"], "env": {"A": "$SOME_VAR"}}
    }
}
OPENCODE = """
{ // comments, as opencode lets one write
  "mcp": {
    "files": {"type": "local", "command": ["npx", "-y", "pkg"], "environment": {"A": "{env:SOME_VAR}"}},
    "off": {"type": "local", "command": ["x"], "enabled": false},
    "web": {"type": "remote", "url": "https://x.example/mcp", "headers": {"X-Key": "{env:SOME_VAR}"},},
  }
}
"""
VSCODE = {
    "inputs": [{"id": "some-var", "type": "promptString"}],
    "servers": {"files": {"command": "npx", "args": ["${workspaceFolder}/x"], "env": {"A": "${input:some-var}"}}},
}
GOOSE = """
GOOSE_MODEL: x
extensions:
  developer:
    enabled: true
    type: builtin
  files:
    enabled: true
    type: stdio
    cmd: npx
    args:
      - -y
      - "pkg"
    env_keys:
    - SOME_VAR
    timeout: 300
    available_tools: []
  web:
    type: streamable_http
    uri: https://x.example/mcp
    headers: {}
"""
ZED = {
    "context_servers": {
        "files": {"command": {"path": "npx", "args": ["pkg"], "env": {"A": "b"}}},
        "new": {"command": "npx"},
    }
}


def read(folder: Path, file: str, text: str) -> dict:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    at = Place(Document(folder / "toolyard.json", "{}", {}), ())
    named = McpServers().read({"mcp": {"file": file}}, at)
    assert (list(named.problems), list(named.watched)) == ([], [str(path)])
    assert {reference.roots for reference in named.references} == {(str(path),)}
    return {reference.name: reference for reference in named.references}


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VAR", "value-of-it")


def test_claude_code(tmp_path: Path):
    found = read(tmp_path, ".mcp.json", json.dumps(CLAUDE))
    assert found["files"].command == ("npx", "-y", "pkg", "/srv")
    assert found["files"].env == (("A", "value-of-it"),)
    assert (found["web"].url, found["web"].headers) == (
        "https://x.example/mcp",
        (("Authorization", "Bearer value-of-it"),),
    )


def test_codex(tmp_path: Path):
    found = read(tmp_path, ".codex/config.toml", CODEX)
    assert (found["files"].command, found["files"].env) == (("npx", "-y", "pkg"), (("SOME_VAR", "value-of-it"),))
    assert (found["files"].timeout, found["files"].choice.only) == (90, ("a", "b"))
    assert found["web"].headers == (("Authorization", "Bearer value-of-it"),)


def test_gemini_cli(tmp_path: Path):
    found = read(tmp_path, ".gemini/settings.json", json.dumps(GEMINI))
    assert (found["files"].timeout, found["files"].choice.only) == (30, ("a",))
    assert found["files"].env == (("A", "value-of-it"),)


def test_opencode(tmp_path: Path):
    found = read(tmp_path, "opencode.json", OPENCODE)
    assert list(found) == ["files", "web"]
    assert (found["files"].command, found["files"].env) == (("npx", "-y", "pkg"), (("A", "value-of-it"),))
    assert found["web"].headers == (("X-Key", "value-of-it"),)


def test_vs_code(tmp_path: Path):
    found = read(tmp_path, ".vscode/mcp.json", json.dumps(VSCODE))
    assert found["files"].command == ("npx", str(tmp_path / "x"))
    assert found["files"].env == (("A", "value-of-it"),)


def test_goose(tmp_path: Path):
    found = read(tmp_path, "config.yaml", GOOSE)
    assert list(found) == ["files", "web"]
    assert (found["files"].command, found["files"].env) == (("npx", "-y", "pkg"), (("SOME_VAR", "value-of-it"),))
    assert found["files"].timeout == 300


def test_zed(tmp_path: Path):
    found = read(tmp_path, ".zed/settings.json", json.dumps(ZED))
    assert (found["files"].command, found["files"].env) == (("npx", "pkg"), (("A", "b"),))
    assert found["new"].command == ("npx",)


def test_a_variable_that_is_not_set_is_said(tmp_path: Path):
    at = Place(Document(tmp_path / "toolyard.json", "{}", {}), ())
    named = McpServers().read({"mcpServers": {"a": {"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}}}}, at)
    (problem,) = named.problems
    assert (problem.severity, "'NOT_SET_ANYWHERE'" in problem.message) == ("warning", True)
    assert [reference.name for reference in named.references] == ["a"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"mcp": {}}, "exactly one of 'command', 'url' and 'file'"),
        ({"mcp": {"command": []}}, "the command of an MCP server is empty"),
        ({"mcp": {"comand": ["x"]}}, "'mcp' has no 'comand'"),
        ({"mcp": {"url": "example"}}, "is no address"),
        ({"mcp": {"file": "nowhere.json"}}, "nowhere.json: it cannot be read"),
        ({"mcp": {"file": "empty.json"}}, "names no MCP servers"),
        ({"mcp": {"file": "one.json", "server": "othr"}}, "has no MCP server 'othr'"),
        ("mcp:nobody-has-this", "no MCP server is called 'nobody-has-this'"),
        ({"mcpServers": {"a": {"args": []}}}, "needs a 'command' or a 'url'"),
        ({"mcpServers": []}, "is no object"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path: Path, entry, words):
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "one.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    at = Place(Document(tmp_path / "toolyard.json", "{}", {}), ())
    named = McpServers().read(entry, at)
    assert list(named.references) == []
    assert [words in problem.message for problem in named.problems] == [True], named.problems


@pytest.mark.parametrize("text", ["a: [1, 2]", "a: &x 1", "a: |\n  text", "just words", "a: 1\n   b: 2"])
def test_yaml_that_is_not_read_is_an_error_and_no_guess(text: str):
    with pytest.raises(ValueError, match=r"'.*'"):
        read_yaml(text)


def test_json_with_comments_keeps_what_only_looks_like_one():
    assert decoded('{"a": "http://x/*y*/", /* c */ "b": [1, 2,], // d\n}', "x.json") == {
        "a": "http://x/*y*/",
        "b": [1, 2],
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    "entry", ["mcp:mine", {"mcp": {"file": ".mcp.json"}}, {"mcp": {"file": ".mcp.json", "server": "mine"}}]
)
async def test_a_server_of_a_client_s_file_can_be_called(yard: Yard, entry):
    block = {"mine": thin_server(yard, ECHO_SERVER)["mcp"]}
    block["mine"] |= {"command": block["mine"]["command"][0], "args": ["./server.py"]}
    yard.file(".mcp.json", json.dumps({"mcpServers": block}))
    async with yard.app(entry) as app:
        assert app.problems() == []
        assert (await app.call_tool("echo", {"value": "x"})).text == "x"
    async with yard.open(yard.folder / ".mcp.json") as app:
        assert (await app.call_tool("echo", {"value": "x"})).text == "x", "the file is the whole configuration"
    async with yard.app({"mcpServers": block}) as app:
        assert (await app.call_tool("echo", {"value": "x"})).text == "x", "pasted as it is"


@pytest.mark.parametrize(
    ("name", "entry", "ours"),
    [
        ("toolyard", {"command": "/opt/bin/toolyard", "args": ["serve", "--mcp", "stdio"]}, True),
        ("mine", {"command": ["toolyard", "--config", "a.json", "serve", "--mcp", "stdio"]}, True),
        ("toolyard", {"type": "http", "url": "http://127.0.0.1:8626/mcp"}, True),
        ("toolyard", {"httpUrl": "http://localhost:1/mcp/agent"}, True),
        ("toolyard", {"url": "https://example.com/mcp"}, False),
        ("other", {"url": "http://127.0.0.1:8626/mcp"}, False),
        ("serve", {"command": "npx", "args": ["serve", "--mcp"]}, False),
    ],
)
def test_our_own_entry_in_a_client_s_file_is_known(tmp_path: Path, name, entry, ours):
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {name: entry, "more": {"command": "npx"}}}))
    found = [one.what for one in McpAuthoring().discover(tmp_path, [], ".")]
    assert found == ([] if ours else [f"MCP server '{name}'"]) + ["MCP server 'more'"]
    at = Place(Document(tmp_path / "toolyard.json", "{}", {}), ())
    loaded = McpServers().read({"mcp": {"file": ".mcp.json"}}, at)
    assert [one.name for one in loaded.references] == ([] if ours else [name]) + ["more"]
