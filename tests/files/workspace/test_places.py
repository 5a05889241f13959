"""Paths in a workspace: links inside it are followed, and nothing leads out of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from toolyard.files.workspace.contents import whole
from toolyard.files.workspace.places import FileFault, Workspace, quoted, unquoted


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "work" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "a.txt").write_text("a")
    return tmp_path / "work"


def read(top: Path, path: str) -> str:
    with Workspace(str(top)).at(path) as spot:
        return whole(spot)[0].decode()


@pytest.mark.parametrize(
    "path", ["a.txt", "./a.txt", "inner/../a.txt", "inner//..//a.txt", "{top}/a.txt", "link", "inner/up"]
)
def test_what_is_inside_is_found_however_it_is_spelled(top: Path, path: str):
    (top / "link").symlink_to("a.txt")
    (top / "inner" / "up").symlink_to(top / "a.txt")
    assert read(top, path.format(top=top)) == "a"


@pytest.mark.parametrize(
    "path",
    ["../secret", "inner/../../secret", "{top}/../secret", "/etc/passwd", "out", "folder/secret", "chain", "inner/two"],
)
def test_nothing_leads_out(top: Path, path: str):
    (top / "out").symlink_to(top.parent / "secret")
    (top / "folder").symlink_to("..")
    (top / "chain").symlink_to("folder/secret")
    (top / "inner" / "two").symlink_to("../../secret")
    with pytest.raises(FileFault, match="outside the workspace"):
        read(top, path.format(top=top))


def test_a_link_to_itself_ends(top: Path):
    (top / "round").symlink_to("round")
    with pytest.raises(FileFault, match="too many links"):
        read(top, "round")


def test_a_workspace_behind_a_link_is_known_by_both_names(top: Path):
    (top.parent / "other").symlink_to(top)
    for path in (top.parent / "other" / "a.txt", top / "a.txt"):
        assert read(top.parent / "other", str(path)) == "a"


def test_links_that_are_swapped_meanwhile_never_lead_out(top: Path):
    """A folder that becomes a link to elsewhere and back, as often as a thread can."""
    (top.parent / "inner").mkdir()
    (top.parent / "inner" / "file").write_text("secret")
    (top / "inner" / "file").write_text("own")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(top / "inner", top / "aside")
            os.symlink(top.parent / "inner", top / "inner")
            os.unlink(top / "inner")
            os.rename(top / "aside", top / "inner")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(read(top, "inner/file"))
            except (FileFault, OSError):
                continue
    finally:
        stop.set()
        swapping.join()
    assert seen <= {"own"}


@pytest.mark.parametrize(
    "name", [b"plain", b"caf\xe9", b"two\nlines", b'"quoted"', "größe".encode(), b"back\\slash", b"\xff\xfe"]
)
def test_a_name_that_was_shown_can_be_given_back(top: Path, name: bytes):
    (top / os.fsdecode(name)).write_text("odd")
    shown = quoted(os.fsdecode(name))
    shown.encode()  # it can be sent to a model
    assert "\n" not in shown
    assert unquoted(shown) == os.fsdecode(name)
    assert read(top, shown) == "odd"


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(top: Path, path: str):
    with pytest.raises(FileFault, match="cannot be empty or hold a NUL"):
        read(top, path)
