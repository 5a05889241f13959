"""Starting where tools have worked: nothing that they left is imported, run or waited for."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from repositories import descriptor, greeting, repository, write
from support import AS_FROM_A_SHELL, PATIENCE, CommandLine, Signpost, need, running

PLANTED = (
    "__future__",
    "click",
    "json",
    "msgspec",
    "re",
    "sitecustomize",
    "typing",
    "runpy",
    "tomllib",
    "asyncio",
    "usercustomize",
)
"""Modules that we, Python or the console script import."""
PLUGIN = {**descriptor("plugin.greet"), "plugin.py": greeting("greet", "hello")}


@pytest.fixture
def toolyard(tmp_path: Path) -> CommandLine:
    """Its interpreter starts here, too."""
    return CommandLine(tmp_path, new_interpreter=True)


@pytest.fixture
def traps(toolyard: CommandLine) -> Path:
    """Modules and programs that a tool left in the workspace; whichever is used leaves a mark."""
    mark = toolyard.home / "ran"
    for name in PLANTED:
        toolyard.file(f"{name}.py", f"open({str(mark)!r}, 'a').write('{name}\\n')\n")
    for name in ("git", "bwrap", "bash", "sh", "cat", "node", "npm", "uv", "python3", "shfmt", "ssh", "env"):
        for folder in (".", "bin"):
            toolyard.file(f"{folder}/{name}", f"#!/bin/sh\necho {name} >> {mark}\n").chmod(0o755)
    return mark


def ran(mark: Path) -> list[str]:
    return mark.read_text().split() if mark.exists() else []


@pytest.mark.parametrize("how", [["toolyard"], ["python", "-m", "toolyard"], ["python", "-P", "-m", "toolyard"]])
@pytest.mark.parametrize("words", [["--version"], ["doctor"], ["tools"], ["exec", "echo hello"], ["config", "check"]])
def test_no_module_of_the_workspace_is_imported(toolyard: CommandLine, traps, how, words):
    toolyard.config("shell:command")
    program = toolyard.path if how[0] == "toolyard" else sys.executable
    done = toolyard.run([program, *how[1:], *words])
    assert ran(traps) == []
    assert "Traceback" not in done.err
    assert done.out or words[0] == "config"


@pytest.mark.parametrize("path", ["", ".", "{here}", "{home}:", "{home}::{home}"])
def test_nor_if_pythonpath_names_the_workspace_once_we_run(toolyard: CommandLine, path):
    """What Python imports before us is beyond us; what we import when a command runs is not."""
    mark = toolyard.home / "ran"
    toolyard.config("path:plugin")
    write(toolyard.folder / "plugin", PLUGIN)
    for name in ("tomllib", "difflib", "fcntl", "select", "secrets", "msgspec", "tree_sitter", "uuid"):
        toolyard.file(f"{name}.py", f"open({str(mark)!r}, 'a').write('{name}\\n')\n")
    env = {"PYTHONPATH": path.format(here=toolyard.folder, home=toolyard.home)}
    assert "greet" in toolyard("tools", env=env).out
    for words in (("--workspace", str(toolyard.folder)), (f"--workspace={toolyard.folder}",)):
        assert toolyard(*words, "tools", env=env, cwd=toolyard.home).code == 0
    assert ran(mark) == []


@pytest.mark.parametrize("path", ["{here}/bin:", ".:", ":", "bin:"])
@pytest.mark.parametrize("words", [["doctor"], ["exec", "true"], ["tools"], ["shell"]])
def test_no_program_of_the_workspace_is_run_outside_by_any_path(toolyard: CommandLine, traps, path, words):
    toolyard.config("shell:command")
    env = {"PATH": path.format(here=toolyard.folder) + toolyard.env["PATH"]}
    toolyard(*words, env=env)
    assert [name for name in ran(traps) if name != "env"] == []


def test_a_git_of_the_workspace_fetches_no_plugin(toolyard: CommandLine, traps):
    need("git")
    origin = repository(toolyard.home / "origin", PLUGIN)
    toolyard.config(f"git+{origin}")
    env = {"PATH": f"{toolyard.folder}/bin:{toolyard.env['PATH']}"}
    assert "greet" in toolyard("tools", env=env).out
    assert ran(traps) == []
    only = toolyard("tools", env={"PATH": f"{toolyard.folder}/bin"}).err
    assert f"the only git on PATH is {toolyard.folder}/bin/git, which tools can write" in only
    assert ran(traps) == []


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, huge, to_zero])
@pytest.mark.parametrize("words", [["tools"], ["exec", "true"], ["config", "check"], ["call", "x", "{}"]])
def test_a_configuration_that_never_ends_holds_up_no_command(toolyard: CommandLine, make, words):
    make(toolyard.folder / "named.json")
    done = toolyard("--config", "named.json", *words)
    assert done.code != 70
    assert "named.json: this file is not read" in done.err + done.out


@pytest.mark.parametrize("make", [os.mkfifo, huge, to_zero])
def test_a_file_that_a_configuration_names_holds_up_no_command(toolyard: CommandLine, make):
    make(toolyard.folder / "note")
    toolyard.config("shell:command", note="${file:note}", more="${file:/dev/zero}")
    done = toolyard("tools")
    assert done.err.count("is not read: it is") == 2
    assert done.out.startswith("shell ")


HELD_UP = """
import sys, time
from toolyard.cli.main import exit_code_of
from toolyard.cli import running

async def load():
    with open(sys.argv[1], "w") as signpost:
        signpost.write("here")
    time.sleep(600)  # as a file on a dead disk would

running.PATIENCE = 0.1
running.run_to_end(load())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_program_whose_loop_is_held_up(toolyard: CommandLine, tmp_path, number):
    signpost = Signpost(tmp_path / "signpost")
    argv = [sys.executable, "-c", AS_FROM_A_SHELL, sys.executable, "-c", HELD_UP, str(tmp_path / "signpost")]
    with running(argv, env=toolyard.env, cwd=toolyard.folder, start_new_session=True) as process:
        signpost.wait()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 130
