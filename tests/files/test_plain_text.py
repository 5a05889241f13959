"""The text of files that nobody vouches for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolyard.files.plain_text import data_itself, data_of, text_itself, text_of


def test_a_regular_file_is_read_up_to_a_bound(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"some words")
    assert text_of(str(tmp_path / "file")) == "some words"
    assert data_of(str(tmp_path / "file"), most=4) == b"some"


@pytest.mark.parametrize("what", ["nothing", "a folder", "a pipe"])
def test_what_is_no_regular_file_has_no_text_and_leaves_nothing_open(tmp_path: Path, what: str):
    path = tmp_path / "it"
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    before = len(os.listdir("/proc/self/fd"))
    assert [data_of(str(path)) for _ in range(5)] == [b""] * 5
    assert len(os.listdir("/proc/self/fd")) == before
    assert [data_itself(str(path)) for _ in range(5)] == [b""] * 5
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_itself_is_read_by_no_link_at_its_end_or_on_the_way(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"some words")
    (tmp_path / "folder/link").symlink_to("file")
    (tmp_path / "way").symlink_to("folder")
    assert text_itself(str(tmp_path / "folder/file")) == "some words"
    assert data_itself(str(tmp_path / "folder/file"), most=4) == b"some"
    assert [data_itself(str(tmp_path / name)) for name in ("folder/link", "way/file")] == [b"", b""]
    assert [data_of(str(tmp_path / name)) for name in ("folder/link", "way/file")] == [b"some words"] * 2
