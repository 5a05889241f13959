"""Programs are found where no tool can have put them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toolyard.files.door import Door
from toolyard.process.interpreter import find_interpreter, find_program, safe_path, why_missing


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of programs, one where tools work."""
    top = tmp_path.resolve()
    for name in ("work/bin", "system"):
        (top / name).mkdir(parents=True)
    monkeypatch.chdir(top / "work")
    return top


def program(path: Path, text: str = "#!/bin/sh\n") -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_program_in_the_workspace_is_passed_over(place, monkeypatch):
    program(place / "work" / "bin" / "git")
    real = program(place / "system" / "git")
    monkeypatch.setenv("PATH", f"{place}/work/bin:{place}/system")
    assert find_program("git") == real
    assert find_interpreter("git").path == real
    (place / "system" / "git").unlink()
    assert find_program("git") is None
    assert why_missing("git") == f"the only git on PATH is {place}/work/bin/git, which tools can write"


@pytest.mark.parametrize("entry", ["", ".", "bin", "../system"])
def test_a_folder_of_path_that_is_not_absolute_is_passed_over(place, monkeypatch, entry):
    for folder in ("work", "work/bin", "system"):
        program(place / folder / "git")
    monkeypatch.setenv("PATH", f"{entry}:/nowhere")
    assert find_program("git") is None
    assert "no absolute path" in why_missing("git")
    assert safe_path() == "/nowhere"


def test_a_link_into_the_workspace_is_no_way_around(place, monkeypatch):
    program(place / "work" / "bin" / "git")
    (place / "system" / "git").symlink_to(place / "work" / "bin" / "git")
    (place / "linked").symlink_to(place / "work" / "bin")
    monkeypatch.setenv("PATH", f"{place}/linked:{place}/system")
    assert find_program("git") is None
    assert safe_path() == f"{place}/system"


def test_every_folder_that_tools_can_write_is_meant(place, monkeypatch):
    other = program(place / "system" / "git")
    monkeypatch.setenv("PATH", f"{place}/system")
    assert find_program("git") == other
    assert find_program("git", Door.to([str(place)])) is None
    assert safe_path(Door.to([str(place)])) == os.defpath


def test_our_own_environment_may_lie_in_the_workspace(place, monkeypatch):
    node = program(place / "work" / "bin" / "node")
    monkeypatch.setattr(sys, "executable", str(place / "work" / "bin" / "python"))
    monkeypatch.setenv("PATH", f"{place}/work/bin")
    assert find_interpreter("node").path == node
    assert find_program("node") is None
    assert safe_path() == f"{place}/work/bin"


def test_what_is_no_program_is_none(place, monkeypatch):
    (place / "system" / "git").mkdir()
    (place / "system" / "node").write_text("")
    monkeypatch.setenv("PATH", f"{place}/system")
    assert (find_program("git"), find_program("node")) == (None, None)
    assert why_missing("node", "Node") == "there is no Node on PATH"
