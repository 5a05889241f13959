"""Files that a configuration is or names: an odd one, or a link of a tool's, is a problem and holds up nobody."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolyard.config.configuration import read_configuration
from toolyard.config.placeholders import Names
from toolyard.kinds import KINDS
from toolyard.plugins.entries import settings_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tools work, with a key beside it."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder.parent / "key").write_text("very secret")
    monkeypatch.chdir(folder)
    return folder


def load(path: Path, **variables: str):
    names = Names(config_env={}, overrides={}, builtin={}, process=variables)
    return read_configuration(path, names, settings_of(KINDS))


def config(folder: Path, **value) -> Path:
    (folder / "toolyard.json").write_text(json.dumps(value))
    return folder / "toolyard.json"


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def link_to_key(path: Path) -> None:
    path.symlink_to("../key")


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD = {
    "pipe": (os.mkfifo, "not a regular file"),
    "huge": (huge, "larger than"),
    "key": (link_to_key, "is a link"),
    "zero": (link_to_zero, "is a link"),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_configuration_that_is_no_plain_file_is_a_problem_that_says_why(project, odd):
    make, words = ODD[odd]
    make(project / "toolyard.json")
    found = load(project / "toolyard.json")
    (problem,) = found.problems
    assert (problem.code, problem.where.file) == ("file_refused", project / "toolyard.json")
    assert words in problem.message
    assert not found.readable


def test_a_device_as_a_configuration_is_a_problem(project):
    (problem,) = load(Path("/dev/zero")).problems
    assert (problem.code, "not a regular file" in problem.message) == ("file_refused", True)


@pytest.mark.parametrize("odd", ODD)
def test_a_file_that_stands_for_a_value_is_a_plain_file_or_nothing(project, odd):
    make, words = ODD[odd]
    make(project / "note")
    found = load(config(project, note="${file:note}", zero="${file:/dev/zero}"))
    first, second = found.problems
    assert (first.code, first.where.line, words in first.message) == ("file_refused", 1, True)
    assert ("/dev/zero" in second.message, "not a regular file" in second.message) == (True, True)
    assert found.value == {"note": "", "zero": ""}


def test_a_key_cannot_be_read_by_a_link_to_its_folder(project):
    (project / "notes").symlink_to("..")
    found = load(config(project, note="${file:notes/key}"))
    assert found.value == {"note": ""}
    assert [problem.code for problem in found.problems] == ["file_refused"]


@pytest.mark.parametrize("section", [
    {"working_directory": "${env:WORK}"},
    {"agents": {"default": {"working_directory": "${env:WORK}"}}},
    {"sandbox": {"writable": ["${env:WORK}"]}},
])  # fmt: skip
def test_links_are_not_followed_in_any_folder_that_the_configuration_opens(project, section, monkeypatch):
    monkeypatch.chdir("/")
    work, own = project.parent / "work", project.parent / "own"
    work.mkdir()
    own.mkdir()
    (work / "link").symlink_to("../key")
    (own / "link").symlink_to("../key")
    found = load(config(project, a=f"${{file:{work}/link}}", b=f"${{file:{own}/link}}", **section), WORK=str(work))
    assert (found.value["a"], found.value["b"]) == ("", "very secret")
    assert [problem.code for problem in found.problems] == ["file_refused"]


def test_the_users_own_configuration_may_be_a_link(project, monkeypatch):
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "toolyard"
    folder.mkdir(parents=True)
    (project.parent / "dotfiles.json").write_text('{"name": "mine"}')
    (folder / "toolyard.json").symlink_to(project.parent / "dotfiles.json")
    assert load(folder / "toolyard.json").value == {"name": "mine"}


def test_all_files_whose_text_or_code_is_obeyed_are_known(project):
    for name in ("note", "a.md", "b.md", "code.py", "condition.py", "runtime.py"):
        (project / name).write_text("1")
    system = {
        "runtime_code": "runtime.py",
        "template": "{{A}} {{B}}",
        "variables": {
            "A": {"files": ["a.md", str(project / "b.md"), "missing.md"]},
            "B": {"code": "code.py", "condition": {"code": "condition.py"}},
            "C": {"code": "not-yet.py"},
        },
    }
    found = load(config(project, note="${file:note}", agents={"default": {"system_message": system}}))
    names = {os.path.relpath(file, project) for file in found.files}
    assert names == {"note", "a.md", "b.md", "code.py", "condition.py", "runtime.py", "not-yet.py"}
