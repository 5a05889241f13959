"""Small records in the user's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolyard.plugins.own_records import read_record, write_record


def test_a_record_is_read_as_it_was_written_and_is_readable_by_its_owner_alone(tmp_path: Path):
    file = tmp_path / "state" / "record.json"
    write_record(file, {"a": ["b"]})
    assert read_record(file, dict[str, list[str]]) == {"a": ["b"]}
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["nothing", "other words", "another shape", "others may write it"])
def test_a_record_that_cannot_be_relied_on_says_nothing(tmp_path: Path, damage: str):
    file = tmp_path / "record.json"
    if damage != "nothing":
        write_record(file, {"a": "b"})
    match damage:
        case "other words":
            file.write_text("{")
        case "another shape":
            file.write_text("[1]")
        case "others may write it":
            file.chmod(0o622)
    assert read_record(file, dict[str, str]) is None
