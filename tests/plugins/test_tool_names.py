"""Whose tool each name was last: kept over restarts, for each agent of each configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolyard.plugins.tool_names import MOST_NAMES, NameHolders, ToolNames, is_same


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "names.json"


def test_a_holder_is_known_to_the_next_application(file: Path):
    assert NameHolders(file).of("deploy") is None
    NameHolders(file).note({"deploy": "one#1"})
    assert NameHolders(file).of("deploy") == "one#1"


def test_what_two_applications_note_is_all_kept(file: Path):
    one, two = NameHolders(file), NameHolders(file)
    assert (one.of("a"), two.of("b")) == (None, None)
    one.note({"a": "one#1"})
    two.note({"b": "two#2"})
    again = NameHolders(file)
    assert (again.of("a"), again.of("b")) == ("one#1", "two#2")


def test_a_server_that_lists_very_many_names_pushes_out_only_its_own(file: Path):
    NameHolders(file).note({"deploy": "honest#1"})
    NameHolders(file).note({f"tool{number}": "many#2" for number in range(MOST_NAMES + 1)})
    kept = NameHolders(file)
    assert [kept.of(name) for name in ("deploy", "tool0", "tool1")] == ["honest#1", None, "many#2"]


def test_a_folder_that_cannot_be_written_costs_only_what_the_next_application_would_know(tmp_path: Path):
    (tmp_path / "no-folder").write_text("")
    holders = NameHolders(tmp_path / "no-folder" / "names.json")
    holders.note({"deploy": "one#1"})
    assert holders.of("deploy") == "one#1"


def test_a_file_that_others_may_write_says_nothing(file: Path):
    NameHolders(file).note({"deploy": "one#1"})
    file.chmod(0o666)
    assert NameHolders(file).of("deploy") is None


def test_agents_and_configurations_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    known = ToolNames()
    known.holders(tmp_path / "a.json", "one").note({"deploy": "x#1"})
    assert known.holders(tmp_path / "a.json", "one").of("deploy") == "x#1"
    assert known.holders(tmp_path / "a.json", "two").of("deploy") is None
    assert known.holders(tmp_path / "b.json", "one").of("deploy") is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a#1", "a#1", True),
        ("a#1", "a#2", True),
        ("a#1", "b#1", True),
        ("a#1", "b#2", False),
        ("", "", True),
        ("", "a#1", False),
        ("a#", "b#", False),
    ],
)
def test_a_server_is_the_same_by_its_name_or_by_what_it_is_made_of(one: str, other: str, same: bool):
    assert is_same(one, other) is same
