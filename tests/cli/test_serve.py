"""`toolyard serve` as clients and people use it: a process, its streams, its settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support import CommandLine, Terminal
from toolyard.serve.mcp.clients import CLIENTS

INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
NOISY = '''
import os, subprocess, sys
from toolyard import tool

print("while it is imported")

@tool
def noisy() -> str:
    """Print by all ways there are."""
    print("by print")
    sys.__stdout__.write("by the first stream")
    sys.__stdout__.flush()
    os.write(1, b"by the descriptor")
    subprocess.run(["echo", "by a process"])
    assert sys.stdin.read() == ""
    return "done"
'''


def lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def call(id: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_what_is_asked_before_the_end_of_the_input_is_answered(toolyard: CommandLine):
    ran = toolyard("serve", "--mcp", "stdio", stdin=lines(INITIALIZE, call(2, "bash", command="echo $((6 * 7))")))
    answers = {one["id"]: one["result"] for one in map(json.loads, ran.out.splitlines())}
    assert ran.code == 0
    assert answers[1]["serverInfo"]["name"] == "toolyard"
    assert answers[2]["content"] == [{"type": "text", "text": "42\n"}]


def test_problems_are_told_to_people_however_short_the_conversation(toolyard: CommandLine):
    toolyard.config("shell:command", "bash:./nowhere.bash")
    ran = toolyard("serve", "--mcp", "stdio", stdin=lines(INITIALIZE))
    assert json.loads(ran.out)["id"] == 1
    assert "nowhere.bash" in ran.err


def test_nothing_but_messages_reaches_the_wire(toolyard: CommandLine):
    toolyard.file("noisy.py", NOISY)
    toolyard.file("toolyard.json", json.dumps({"plugins": ["path:./noisy.py"]}))
    ran = toolyard("serve", "--mcp", "stdio", stdin=lines(INITIALIZE, call(2, "noisy")))
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert {one["id"] for one in answers} == {1, 2}, ran.err
    assert "done" in json.dumps(answers)
    assert "by the descriptor" in ran.err
    assert "by a process" in ran.err


def test_a_file_is_as_good_as_a_pipe(toolyard: CommandLine):
    toolyard.file("in", lines(INITIALIZE, {"id": 2, "method": "tools/list"}))
    ran = toolyard.run(["bash", "-c", "toolyard serve --mcp stdio <in >out"])
    assert ran.code == 0, ran.err
    assert len((toolyard.folder / "out").read_text().splitlines()) == 2


def test_a_client_that_dies_takes_everything_along(toolyard: CommandLine):
    os.mkfifo(toolyard.folder / "ended")
    argv = [str(toolyard.path), "serve", "--mcp", "stdio"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=toolyard.env, cwd=toolyard.folder
    ) as server:
        assert server.stdin
        assert server.stdout
        command = "(echo started; exec sleep 1000) > ended"
        server.stdin.write(lines(INITIALIZE, call(2, "bash", command=command)).encode())
        server.stdin.flush()
        with open(toolyard.folder / "ended") as ended:
            assert ended.readline() == "started\n"
            server.stdin.close()
            server.stdout.close()
            assert ended.read() == ""
        assert server.wait(60) == 0


def test_a_signal_ends_the_server_and_what_it_started(toolyard: CommandLine):
    os.mkfifo(toolyard.folder / "ended")
    with toolyard.start("serve", "--mcp", "stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.stdin.write(
            lines(INITIALIZE, call(2, "bash", command="(echo started; exec sleep 1000) > ended")).encode()
        )
        server.stdin.flush()
        with open(toolyard.folder / "ended") as ended:
            assert ended.readline() == "started\n"
            server.send_signal(signal.SIGTERM)
            assert ended.read() == ""
        assert server.wait(60) == 130


def test_an_agent_that_is_not_there_is_named(toolyard: CommandLine):
    ran = toolyard("serve", "--mcp", "stdio", "--agent", "nobody")
    assert ran.code == 2
    assert "there is no agent 'nobody'" in ran.err
    assert ran.out == ""


def test_the_self_check_calls_each_built_in_tool_and_leaves_nothing(toolyard: CommandLine):
    ran = toolyard("serve", "--mcp", "http", "--port", "0", "--self-check")
    assert ran.code == 0, ran.out + ran.err
    rows = [line.split()[:2] for line in ran.out.splitlines() if line.startswith(("ok ", "failed ", "- "))]
    named = {row["name"] for row in toolyard("tools", "--format", "json").json}
    assert {name for state, name in rows if state == "ok"} == named
    assert '"mcpServers"' in ran.out
    assert "token: " in ran.err
    assert list(toolyard.folder.iterdir()) == []


def test_at_a_terminal_the_server_stays_until_ctrl_c(toolyard: CommandLine):
    with Terminal(toolyard, toolyard.path, "serve", "--mcp", "http", "--port", "0", "--self-check") as terminal:
        terminal.read_until("Ctrl-C ends it")
        terminal.type("\x03")
        assert terminal.finish() == 130


def test_a_port_that_is_taken_is_said_with_what_to_do(toolyard: CommandLine):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = toolyard("serve", "--mcp", "http", "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "--port 0 takes any that is free" in ran.err


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("wire", ["stdio", "http"])
def test_the_settings_of_a_client_name_the_server(toolyard: CommandLine, client, wire):
    ran = toolyard("serve", "--mcp", wire, "--print-config", client)
    if client == "claude-desktop" and wire == "http":
        assert ran.code == 2
        return
    assert ran.code == 0
    expected = ["http://127.0.0.1:8626/mcp"] if wire == "http" else [str(toolyard.path), "serve", "--mcp", "stdio"]
    assert all(json.dumps(word) in ran.out for word in expected)
    if CLIENTS[client].syntax == "json":
        assert "toolyard" in json.loads(ran.out)[CLIENTS[client].section]


def test_a_client_without_projects_is_told_which_folder_is_meant(toolyard: CommandLine):
    """It starts servers wherever it was started itself, most often in `/`."""
    toolyard.config("shell:command")
    (entry,) = json.loads(toolyard("serve", "--print-config", "claude-desktop").out)["mcpServers"].values()
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"id": 2, "method": "tools/call", "params": {"name": "shell", "arguments": {"command": "pwd"}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    ran = toolyard.run([entry["command"], *entry["args"]], stdin=lines, cwd=Path("/"))
    (answer,) = [one for one in map(json.loads, ran.out.splitlines()) if one.get("id") == 2]
    assert answer["result"]["structuredContent"]["stdout"] == f"{toolyard.folder}\n", ran.err
    (toolyard.folder / "toolyard.json").unlink()
    (entry,) = json.loads(toolyard("serve", "--print-config", "claude-desktop").out)["mcpServers"].values()
    assert entry["args"] == ["--workspace", str(toolyard.folder), "serve", "--mcp", "stdio"]


def test_a_server_is_written_into_settings_beside_what_is_there(toolyard: CommandLine):
    file = toolyard.file(".mcp.json", json.dumps({"mcpServers": {"other": {"command": "x"}}, "more": 1}))
    file.chmod(0o640)
    ran = toolyard("serve", "--install", "claude-code", "--yes", "--agent", "default")
    assert ran.code == 0
    assert '+    "toolyard": {' in ran.out
    written = json.loads(file.read_text())
    assert written["mcpServers"]["other"] == {"command": "x"}
    assert written["more"] == 1
    assert written["mcpServers"]["toolyard"]["args"] == ["serve", "--mcp", "stdio", "--agent", "default"]
    assert file.stat().st_mode & 0o777 == 0o640
    assert "has it already" in toolyard("serve", "--install", "claude-code", "--agent", "default").err


def test_an_older_entry_is_replaced_in_toml_and_yaml(toolyard: CommandLine):
    codex = toolyard.home / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text(
        'model = "x" # mine\n[mcp_servers.toolyard]\ncommand = "old"\n[mcp_servers.other]\ncommand = "y"\n'
    )
    assert toolyard("serve", "--install", "codex", "--yes").code == 0
    servers = tomllib.loads(codex.read_text())["mcp_servers"]
    assert servers["toolyard"]["args"] == ["serve", "--mcp", "stdio"]
    assert servers["other"] == {"command": "y"}
    assert "# mine" in codex.read_text()
    goose = toolyard.home / ".config" / "goose" / "config.yaml"
    goose.parent.mkdir(parents=True)
    goose.write_text("GOOSE_MODEL: x\nextensions:\n  toolyard:\n    cmd: old\n  other:\n    cmd: y\nlast: 1\n")
    assert toolyard("serve", "--install", "goose", "--yes").code == 0
    text = goose.read_text()
    assert "old" not in text
    assert text.startswith("GOOSE_MODEL: x\nextensions:\n  toolyard:\n    type:")
    assert text.endswith("  other:\n    cmd: y\nlast: 1\n")


def test_nothing_is_written_unasked_or_at_a_loss(toolyard: CommandLine):
    ran = toolyard("serve", "--install", "opencode")
    assert (ran.code, (toolyard.folder / "opencode.json").exists()) == (3, False)
    assert "--yes" in ran.err
    file = toolyard.file("opencode.json", "{\n  // mine\n}\n")
    ran = toolyard("serve", "--install", "opencode", "--yes")
    assert ran.code == 2
    assert "comments in it would be lost" in ran.err
    assert file.read_text() == "{\n  // mine\n}\n"


def test_a_person_is_asked_before_settings_are_written(toolyard: CommandLine):
    for answer, written in (("n", False), ("y", True)):
        with Terminal(toolyard, toolyard.path, "serve", "--install", "cursor") as terminal:
            terminal.read_until(r"\[Y/n\]")
            terminal.type(f"{answer}\n")
            terminal.finish()
        assert (toolyard.folder / ".cursor" / "mcp.json").exists() is written
    shutil.rmtree(toolyard.folder / ".cursor")


def test_the_cost_of_each_definition_is_estimated(toolyard: CommandLine):
    ran = toolyard("tools", "--tokens")
    assert ran.code == 0
    *rows, total = [line.split() for line in ran.out.splitlines()]
    costs = [int(cost) for cost, _ in rows]
    assert costs == sorted(costs, reverse=True)
    assert int(total[0]) == sum(costs)
    assert "divided by 3.5" in ran.err


@pytest.mark.parametrize("client", ["claude-code", "cursor", "gemini", "opencode", "vscode"])
def test_settings_are_not_written_through_links_that_tools_made(toolyard: CommandLine, client: str):
    neighbour = toolyard.folder.parent / "neighbour"
    neighbour.mkdir()
    kept = {}
    for name in ("settings.json", "mcp.json", "opencode.json"):
        (neighbour / name).write_text("{}")
        kept[name] = "{}"
    for link, to in ((".mcp.json", "settings.json"), ("opencode.json", "new.json")):
        (toolyard.folder / link).symlink_to(neighbour / to)
    for link in (".cursor", ".gemini", ".vscode"):
        (toolyard.folder / link).symlink_to(neighbour)
    ran = toolyard("serve", "--install", client, "--yes")
    assert {path.name: path.read_text() for path in neighbour.iterdir()} == kept
    assert (ran.code, "link" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["--token-file", "secret"], ""),
        (["--token-file", "-"], "of-the-tests\nmore"),
        (["--token", "-"], "of-the-tests\n"),
    ],
)
def test_a_token_need_not_be_on_the_command_line(toolyard: CommandLine, words: list[str], stdin: str):
    toolyard.file("secret", "of-the-tests\n")
    ran = toolyard("serve", "--mcp", "http", "--port", "0", "--self-check", *words, stdin=stdin)
    assert ran.code == 0, ran.err
    assert "token: of-the-tests" in ran.err
    assert "list of processes" not in ran.err


def test_a_token_on_the_command_line_is_warned_of(toolyard: CommandLine):
    ran = toolyard("serve", "--mcp", "http", "--port", "0", "--self-check", "--token", "of-the-tests")
    assert "other users of this machine see --token in the list of processes" in ran.err
    assert "TOOLYARD_TOKEN" in ran.err


@pytest.mark.parametrize(("file", "words"), [("none", "cannot be read"), ("empty", "no token in the first line")])
def test_a_token_that_is_not_there_is_said(toolyard: CommandLine, file: str, words: str):
    toolyard.file("empty", "\n")
    ran = toolyard("serve", "--mcp", "http", "--token-file", file)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
