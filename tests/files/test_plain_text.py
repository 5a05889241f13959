"""The text of files that nobody vouches for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolyard.files.plain_text import data_of, text_of


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
