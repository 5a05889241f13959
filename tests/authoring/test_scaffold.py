"""`tool new`: what it writes works as it is, in every mode and under every name."""

from __future__ import annotations

import os

import pytest

from small_disk import run_on_small_disk
from support import CommandLine, need
from toolyard.kinds import KINDS
from toolyard.kinds.bash_script.reference import MODES


@pytest.mark.parametrize(
    ("mode", "name"), [*((mode, "my_tool") for mode in MODES), ("flags", "My-Tool2"), ("comments", "My-Tool2")]
)
def test_a_new_tool_passes_its_check_its_tests_and_shellcheck(toolyard: CommandLine, mode, name):
    ran = toolyard("tool", "new", name, "--mode", mode)
    assert (ran.code, ran.out.split()) == (
        0,
        [f"{name}/{name}.bash", f"{name}/agent_plugin.json", f"{name}/tests/{name}.json"],
    )
    checked = toolyard("tool", "check", name, "--strict")
    assert (checked.code, checked.out) == (0, "")
    tested = toolyard("tool", "test", name, "--json")
    assert [row for row in tested.json if not row["passed"]] == []
    assert len(tested.json) >= 5
    linted = toolyard.run([need("shellcheck"), f"{name}/{name}.bash"])
    assert linted.out == ""


@pytest.mark.parametrize("mode", MODES)
def test_a_new_tool_loads_from_its_folder_and_can_be_called(toolyard: CommandLine, mode):
    toolyard("tool", "new", "greet", "--mode", mode)
    toolyard.config("bash:./greet")
    ran = toolyard("call", "greet", '{"name": "Ada", "loud": true}')
    assert (ran.code, ran.out, ran.err) == (0, "HELLO, ADA!\n", "")


def test_a_new_manifest_passes_its_check_and_its_tests_and_can_be_called(toolyard: CommandLine):
    ran = toolyard("tool", "new", "greet", "--kind", "manifest")
    assert (ran.code, ran.out.split()) == (0, ["greet/tools.json", "greet/tools/bin/greet", "greet/tests/greet.json"])
    checked = toolyard("tool", "check", "greet", "--strict")
    assert (checked.code, checked.out) == (0, "")
    tested = toolyard("tool", "test", "greet", "--json")
    assert [row for row in tested.json if not row["passed"]] == []
    assert len(tested.json) >= 5
    called = toolyard("--config", "greet/tools.json", "call", "greet", '{"name": "Ada", "loud": true}')
    assert (called.code, called.out, called.err) == (0, '{"greeting": "HELLO, ADA!"}\n', "")


def test_modes_are_for_bash_scripts(toolyard: CommandLine):
    ran = toolyard("tool", "new", "greet", "--kind", "manifest", "--mode", "json")
    assert ran.code == 2
    assert "a tool of kind manifest has no mode 'json'" in ran.err
    assert list(toolyard.folder.iterdir()) == []


def test_every_kind_is_offered(toolyard: CommandLine):
    assert (
        f"[{'|'.join(kind.name for kind in KINDS if kind.modes is not None)}]" in toolyard("tool", "new", "--help").out
    )


def test_flags_are_the_mode_when_none_is_named(toolyard: CommandLine):
    toolyard("tool", "new", "greet")
    assert '"args_mode": "flags"' in (toolyard.folder / "greet" / "greet.bash").read_text()


def test_what_to_do_next_is_said_beside_the_answer_and_can_be_typed(toolyard: CommandLine):
    ran = toolyard("tool", "new", "some where/greet")
    command = ran.err.removeprefix("next: ").strip()
    assert toolyard.run(["bash", "-c", command]).code == 0


def test_the_script_can_be_run_by_itself(toolyard: CommandLine):
    toolyard("tool", "new", "greet")
    script = toolyard.folder / "greet" / "greet.bash"
    assert os.access(script, os.X_OK)
    assert toolyard.run([script, "run", "--name", "Ada"]).out == "Hello, Ada!\n"
    assert toolyard.run([script]).code == 2


def test_the_current_folder_can_become_a_tool_while_it_is_empty(toolyard: CommandLine):
    folder = toolyard.folder / "greet"
    folder.mkdir()
    assert toolyard("tool", "new", ".", cwd=folder).code == 0
    assert toolyard("tool", "test", cwd=folder).code == 0
    assert toolyard("tool", "new", ".", cwd=folder).code == 2


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("my tool", "'my tool' cannot name a tool", "for example my_tool"),
        ("tools/größe", "'größe' cannot name a tool", "for example tools/gr_e"),
        ("2fast", "'2fast' cannot name a tool", "beginning with a letter"),
        ("x" * 65, "cannot name a tool", f"for example {'x' * 64}"),
        ("taken", "taken exists and is not empty", "choose another name"),
        ("taken/file", "taken/file exists and is not empty", "choose another name"),
        ("taken/file/below", "Not a directory", "choose a folder that you may write to"),
        ("/proc/nothing", "cannot be written", "choose a folder that you may write to"),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_way_out(toolyard: CommandLine, path, message, hint):
    toolyard.file("taken/file", "mine")
    ran = toolyard("tool", "new", path)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert hint in ran.err
    assert [file.read_text() for file in toolyard.folder.rglob("*") if file.is_file()] == ["mine"]


ON_A_FULL_DISK = """
from toolyard.authoring.scaffold import create_tool
from toolyard.core.problems import Problem

fill()
with open(disk / "filler", "r+b") as filler:
    filler.truncate(filler.seek(0, 2) - 4096)  # room for a file, and for no more
found = create_tool(disk / "greet")
assert isinstance(found, Problem), found
print(found.message)
print(sorted(path.name for path in disk.iterdir()))
"""


def test_on_a_full_disk_no_half_a_tool_stays_in_the_way(tmp_path):
    message, left = run_on_small_disk(tmp_path, ON_A_FULL_DISK).splitlines()
    assert "No space left" in message
    assert left == "['filler']"
