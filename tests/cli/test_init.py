"""`toolyard init`: a first configuration for the folder it is in."""

from __future__ import annotations

import json

import jsonschema
import pytest

from support import CommandLine, Terminal
from yard import script

FIRST = ["shell:session", "files:all"]

COMMENTS = """#!/usr/bin/env bash
# @describe Say hello.
# @option --name  Whom to greet.
main() { echo "hello ${argc_name:-}"; }
"""


def config(toolyard: CommandLine):
    return json.loads((toolyard.folder / "toolyard.json").read_text())


@pytest.fixture
def project(toolyard: CommandLine) -> CommandLine:
    """A folder with tools of many kinds, and with files that only look like them."""
    toolyard.file("by_contract.bash", script("by_contract", run="touch ran"))
    toolyard.file("tools/by_comments.sh", COMMENTS)
    toolyard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "one.bash"}]}')
    toolyard.file("repo/one.bash", script("one"))
    toolyard.file("deploy.sh", "case $1 in schema) dropdb production ;; esac\n")
    toolyard.file("node_modules/x/tool.bash", script("of_others"))
    toolyard.file(".hidden/tool.bash", script("hidden"))
    toolyard.file("venv/pyvenv.cfg", "")
    toolyard.file("package.json", '{"name": "no tools here"}')
    toolyard.file("broken/package.json", "{")
    return toolyard


def test_everything_that_is_found_is_included_with_yes_and_works(project: CommandLine):
    ran = project("init", "--yes")
    assert (ran.code, ran.out.split()) == (0, ["toolyard.json", "toolyard.schema.json"])
    assert config(project) == {
        "$schema": "./toolyard.schema.json",
        "plugins": [
            *FIRST,
            "bash:./by_contract.bash",
            "bash:./repo",
            "bash:./tools/by_comments.sh",
        ],
        "plugin_policy": {"allow_bash_tools": True},
    }
    assert not (project.folder / "ran").exists(), "nothing that is found is run"
    names = [row["name"] for row in project("tools", "--format", "json").json]
    assert names[:2] + names[-3:] == ["bash", "bash_job", "by_contract", "one", "by_comments"]
    assert project("config", "check", "--strict").code == 0
    jsonschema.validate(config(project), json.loads((project.folder / "toolyard.schema.json").read_text()))


def test_without_a_terminal_nothing_is_included_unasked(project: CommandLine):
    ran = project("init")
    assert ran.code == 0
    assert config(project)["plugins"] == FIRST
    assert "plugin_policy" not in config(project)
    assert "not included without --yes: bash tool bash:./by_contract.bash" in ran.err
    assert "deploy.sh" not in ran.err


def test_a_terminal_is_asked_about_each(project: CommandLine):
    with Terminal(project, project.path, "init") as terminal:
        for question, answer in (
            (r"include the bash tool bash:\./by_contract\.bash\? \[Y/n\] ", "n\n"),
            (r"include the folder of bash tools bash:\./repo\? \[Y/n\] ", "\n"),
            (r"include the bash tool bash:\./tools/by_comments\.sh\? \[Y/n\] ", "no\n"),
        ):
            terminal.read_until(question)
            terminal.type(answer)
        assert terminal.finish() == 0
    assert config(project)["plugins"] == [*FIRST, "bash:./repo"]


def test_leaving_at_a_question_writes_nothing(project: CommandLine):
    with Terminal(project, project.path, "init") as terminal:
        terminal.read_until(r"\[Y/n\] ")
        terminal.type("\x04")
        assert terminal.finish() == 130
    assert not (project.folder / "toolyard.json").exists()


def test_nothing_is_ever_overwritten(toolyard: CommandLine):
    toolyard.file("toolyard.json", "mine")
    ran = toolyard("init", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "toolyard.json exists already" in ran.err
    assert (toolyard.folder / "toolyard.json").read_text() == "mine"
    toolyard.file("other/toolyard.schema.json", "mine")
    assert toolyard("init", "other").out.split() == ["other/toolyard.json"]
    assert (toolyard.folder / "other/toolyard.schema.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tools.json", {"tools": [{"name": "a", "command": ["./tools/bin/a"]}]}, "manifest:./tools.json"),
        ("pkg/package.json", {"agent": {"tools": [{"id": "a", "entry": "a.js"}]}}, "node:./pkg"),
        ("py/agent_plugin.json", {"entries": ["pkg.module.Class"]}, "path:./py"),
        (".mcp.json", {"mcpServers": {"files": {"command": "x"}}}, "./.mcp.json"),
        (".cursor/mcp.json", {"mcpServers": {"files": {"url": "http://x"}}}, "./.cursor/mcp.json"),
        (".vscode/mcp.json", {"servers": {"files": {"command": "x"}}}, "./.vscode/mcp.json"),
    ],
)
def test_other_kinds_are_found_and_included(toolyard: CommandLine, file, content, words):
    toolyard.file(file, json.dumps(content))
    ran = toolyard("init", "--yes")
    assert (ran.code, "not loadable" in ran.err) == (0, False)
    assert words in (toolyard.folder / "toolyard.json").read_text()


def test_a_folder_that_is_not_there_or_cannot_be_written_is_said(toolyard: CommandLine):
    assert toolyard("init", "nowhere").code == 2


def test_a_folder_of_tools_of_which_one_is_at_fault_can_be_loaded_even_so(toolyard: CommandLine):
    listed = '{"bash_tools": [{"file": "one.bash"}, {"file": "../elsewhere.bash"}]}'
    toolyard.file("repo/agent_plugin.json", listed)
    toolyard.file("repo/one.bash", script("one"))
    toolyard("init", "--yes")
    assert "bash:./repo" in config(toolyard)["plugins"]


def test_a_folder_with_a_faulty_descriptor_is_included_and_the_check_says_what_is_wrong(toolyard: CommandLine):
    toolyard.file("repo/agent_plugin.json", '{"bash_tools": [{"fil": "one.bash"}]}')
    assert toolyard("init", "--yes").code == 0
    assert config(toolyard)["plugins"] == [*FIRST, "bash:./repo"]
    assert "an entry of 'bash_tools' needs 'file'" in toolyard("config", "check").out


PLAIN = """import os
os.mkdir("ran")
from toolyard import tool as a_tool

@a_tool(read_only=True)
def shout(text: str) -> str:
    \"\"\"Say it in capitals.\"\"\"
    return text.upper()
"""


def test_python_files_with_tools_are_found_and_not_run(toolyard: CommandLine):
    toolyard.file("code/plain.py", PLAIN)
    toolyard.file("code/async_one.py", "import toolyard\n@toolyard.tool\nasync def f() -> str: ...\n")
    toolyard.file("code/of_another.py", "from other import tool\n# toolyard\n@tool\ndef f(): ...\n")
    toolyard.file("code/uses_it.py", "from toolyard import AgentApplication, tool\n@property\ndef f(): ...\n")
    toolyard.file("code/broken.py", "from toolyard import tool\n@tool\ndef f(:\n")
    toolyard.file("listed/agent_plugin.json", '{"entries": ["plain.shout"]}')
    toolyard.file("listed/plain.py", PLAIN)
    assert toolyard("init", "--yes").code == 0
    plugins = config(toolyard)["plugins"]
    assert plugins == [
        *FIRST,
        "path:./code/async_one.py",
        "path:./code/plain.py",
        "path:./listed",
    ]
    assert not (toolyard.folder / "ran").exists()
    assert not (toolyard.folder / "code" / "ran").exists()
