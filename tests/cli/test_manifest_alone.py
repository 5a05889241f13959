"""A manifest in the place of a configuration works with every command."""

from __future__ import annotations

import json

import pytest

from support import CommandLine, Terminal

ENTRY = {"name": "greet", "description": "Greet somebody.", "command": ["./tools/bin/greet"]}


@pytest.fixture
def greeter(toolyard: CommandLine) -> CommandLine:
    program = toolyard.file("tools/bin/greet", '#!/bin/sh\nread -r given\nprintf \'{"got": %s}\\n\' "$given"\n')
    program.chmod(0o755)
    toolyard.file("tools.json", json.dumps({"tools": [ENTRY]}))
    return toolyard


def test_tools_lists_its_tools(greeter: CommandLine):
    ran = greeter("--config", "tools.json", "tools")
    assert (ran.code, ran.out, ran.err) == (0, "greet  manifest_command  Greet somebody.\n", "")
    (row,) = greeter("--config", "tools.json", "tools", "--format", "json").json
    assert (row["name"], row["origin"]) == ("greet", str(greeter.folder / "tools.json"))
    (tool,) = greeter("--config", "tools.json", "tools", "--format", "openai").json
    assert tool["function"]["name"] == "greet"


def test_call_and_preview_reach_its_tools(greeter: CommandLine):
    assert greeter("--config", "tools.json", "call", "greet", '{"a":  1}').out == '{"got": {"a":  1}}\n'
    assert greeter("--config", "tools.json", "call", "greet", "-", stdin='{"b": 2}').out == '{"got": {"b": 2}}\n'
    record = greeter("--config", "tools.json", "call", "greet", "--json").json
    assert (record["ok"], record["text"], record["exit_code"]) == (True, '{"got": {}}', 0)
    assert greeter("--config", "tools.json", "preview", "greet", '{"a": "b c"}').out == "greet a='b c'\n"


def test_from_another_folder_it_is_the_same(greeter: CommandLine):
    ran = greeter("--config", greeter.folder / "tools.json", "call", "greet", cwd=greeter.home)
    assert (ran.code, ran.out) == (0, '{"got": {}}\n')


def test_the_shells_are_there_as_with_any_configuration(greeter: CommandLine):
    assert greeter("--config", "tools.json", "exec", "echo hello").out == "hello\n"
    assert greeter("--config", "tools.json", "shell", stdin="echo $((6 * 7))\n").out == "42\n"


def test_what_it_stands_for_can_be_explained(greeter: CommandLine):
    ran = greeter("--config", "tools.json", "config", "explain", "plugins")
    assert ran.code == 0
    assert f'{{"manifest": {{"path": "{greeter.folder}/tools.json"}}}}' in ran.out


def test_what_is_wrong_with_it_is_told_with_its_place_and_is_an_error(greeter: CommandLine):
    greeter.file("tools.json", json.dumps({"tools": [ENTRY, {"name": "x", "command": ["tools/bin/x"]}, {}]}, indent=1))
    for words in (["tools"], ["tools", "--all"], ["call", "greet"]):
        ran = greeter("--config", "tools.json", *words)
        assert ran.code == 2
        assert 'tools.json:13:5: tool[1] "x": relative command[0] must start with ./tools/bin/' in ran.err
        assert "tools.json:16:3: tool[2]: name is required" in ran.err
    rows = greeter("--config", "tools.json", "tools", "--all", "--format", "json").json
    assert [row["state"] for row in rows] == ["off", "off"]


def test_on_a_terminal_an_answer_is_shown_once(greeter: CommandLine):
    with Terminal(greeter, greeter.path, "--config", "tools.json", "call", "greet", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.finish() == 0
    assert terminal.text == 'greet\n{"got": {}}\n'


def test_timeout_is_the_limit_of_tools_that_name_none(greeter: CommandLine):
    greeter.file("tools/bin/greet", "#!/bin/sh\nexec sleep 300\n")
    greeter.file("tools.json", json.dumps({"tools": [ENTRY, {**ENTRY, "name": "hasty", "timeoutSec": 1}]}))
    for tool, limit in (("greet", "1"), ("greet", "0.5"), ("hasty", "200")):
        ran = greeter("--config", "tools.json", "call", tool, "--timeout", limit)
        assert (ran.code, ran.out) == (1, '{"error": "tool timed out"}\n')
    for wrong in ("0", "-1", "soon"):
        assert greeter("--config", "tools.json", "call", "greet", "--timeout", wrong).code == 2
