"""Patches of several files: where a change belongs, and that a patch is made whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolyard.files.workspace import changing
from toolyard.files.workspace.places import FileFault, Workspace


def patch(top: Path, *lines: str, dry: bool = False) -> dict:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return changing.patch(Workspace(str(top)), text, dry=dry)


def update(top: Path, before: str, *lines: str) -> str:
    (top / "f").write_bytes(before.encode())
    patch(top, "*** Update File: f", *lines)
    return (top / "f").read_bytes().decode()


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"),
        ("a\nb\n", ["-b", "+B"], "a\nB\n"),
        ("x\nb\ndef y\nb\n", ["@@ def y", "-b", "+B"], "x\nb\ndef y\nB\n"),
        ("b\nb\n", ["@@", "-b", "+B", "*** End of File"], "b\nB\n"),
        ("a\n", ["@@", "+z"], "a\nz\n"),
        ("a\nb\nc\nd\n", ["@@", "-a", "+A", "@@", "-d", "+D"], "A\nb\nc\nD\n"),
        ("a  \nb\n", [" a", "-b", "+B"], "a  \nB\n"),
        ("\tif x:\n\t\ty\n", [" if x:", "-y", "+z"], "\tif x:\nz\n"),
        ("say “hi” – x\nb\n", [' say "hi" - x', "-b", "+B"], "say “hi” – x\nB\n"),
        ("a\r\nb\r\n", ["@@", "-b", "+B", "+C"], "a\r\nB\r\nC\r\n"),
        ("a\r\nb\nc\r\n", ["@@", " a", " b", "-c", "+C"], "a\r\nb\nC\r\n"),
        ("a\nb", ["-b", "+B"], "a\nB\n"),
        ("a\nb", ["-a", "+A"], "A\nb"),
        ("a\n\nb\n", [" a", "", "-b", "+B"], "a\n\nB\n"),
    ],
)
def test_a_change_is_placed_by_the_lines_around_it(tmp_path: Path, before: str, lines: list[str], after: str):
    assert update(tmp_path, before, *lines) == after


def test_files_are_added_moved_and_removed(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "b").write_text("y\n")
    lines = ["*** Add File: n/c", "+1", "+", "*** Update File: a", "*** Move to: n/d", "-x", "+X", "*** Delete File: b"]
    done = patch(tmp_path, *lines)
    assert done["text"] == "Done:\nA n/c\nM n/d\nD b"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["c", "d", "n"]
    assert ((tmp_path / "n/c").read_text(), (tmp_path / "n/d").read_text()) == ("1\n\n", "X\n")
    assert (tmp_path / "n/d").stat().st_mode & 0o777 == 0o755


def test_all_is_worked_out_before_the_first_file_is_written(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(FileFault, match="not in a"):
        patch(tmp_path, "*** Add File: new", "+1", "*** Update File: a", "-none", "+y")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_a_preview_is_a_diff_of_all_files_and_changes_nothing(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    shown = patch(tmp_path, "*** Update File: a", "-x", "+y", "*** Add File: d/b", "+1", dry=True)["text"]
    assert shown == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/d/b\n@@ -0,0 +1 @@\n+1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "x\n"


@pytest.mark.parametrize("path", ["../x", "/etc/x", "link/x"])
def test_a_patch_does_not_leave_the_workspace(tmp_path: Path, path: str):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to("..")
    with pytest.raises(FileFault, match="outside the workspace"):
        patch(tmp_path / "work", f"*** Add File: {path}", "+x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "begins with the line"),
        ("*** Begin Patch\n*** Add File: a\n+x", "ends with the line"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n+x\n*** End Patch", "line 2 of the patch must name a file"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "line 3 of the patch cannot be read"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing in a"),
        ("*** Begin Patch\n*** Delete File: a\n*** End Patch", "no file a"),
        ("*** Begin Patch\n*** Update File: a\n@@ b\n-x\n*** End Patch", "no file a"),
    ],
)
def test_a_patch_that_cannot_be_read_says_where(tmp_path: Path, text: str, said: str):
    with pytest.raises(FileFault, match=said):
        changing.patch(Workspace(str(tmp_path)), text, dry=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["*** Update File: f", "-a", "+b", "*** Update File: ./f", "-b", "+c"],
        ["*** Update File: f", "-a", "+b", "*** Delete File: f"],
        ["*** Add File: g", "+b", "*** Update File: f", "*** Move to: g", "-a", "+b"],
    ],
)
def test_a_file_that_is_named_twice_is_refused_before_anything_is_written(tmp_path: Path, lines: list[str]):
    (tmp_path / "f").write_text("a\n")
    with pytest.raises(FileFault, match="twice"):
        patch(tmp_path, *lines)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("f", "a\n")]
