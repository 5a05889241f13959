"""A file is replaced whole or not at all, and is on the disk where that was asked for."""

from __future__ import annotations

import os
import stat

import pytest

from toolyard.files.atomic import replace_file


@pytest.fixture
def synced(monkeypatch) -> list[str]:
    """What the system was asked to put on the disk: files and folders, in order."""
    kinds: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else f"file of {os.fstat(fd).st_size} bytes")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    return kinds


@pytest.mark.parametrize(("options", "asked"), [({}, []), ({"durable": True}, ["file of 3 bytes", "folder"])])
def test_what_is_to_last_is_synced_with_its_folder_and_nothing_else_is(tmp_path, synced, options, asked):
    replace_file(tmp_path / "file", b"new", **options)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert synced == asked
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_written_changes_nothing_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
