"""Changes of files, beside a plain model of them, and what must stay as it is."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolyard.files.workspace import changing
from toolyard.files.workspace.contents import decoded, version_of
from toolyard.files.workspace.edits import MOST_SKIPS, place_of
from toolyard.files.workspace.places import FileFault, Workspace

LINES = st.lists(st.text(alphabet="ab é\t", max_size=4), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])
ENCODINGS = st.sampled_from([(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"", "cp1252")])


def seen(path: Path) -> list[int]:
    return version_of(path.stat())


def edit(top: Path, name: str, *edits: tuple[str, str, bool], dry: bool = False) -> dict:
    asked = [{"old_string": old, "new_string": new, "replace_all": every} for old, new, every in edits]
    return changing.edit(Workspace(str(top)), name, asked, seen(top / name), dry=dry)


@settings(max_examples=150, deadline=None)
@given(
    lines=LINES,
    end=ENDS,
    form=ENCODINGS,
    open_end=st.booleans(),
    edits=st.lists(
        st.tuples(st.text("ab\n", min_size=1, max_size=3), st.text("abé\n", max_size=4), st.booleans()),
        min_size=1,
        max_size=3,
    ),
)
@example(
    lines=["a", "b"], end="\r\n", form=(b"", "utf-8"), open_end=True, edits=[("\n", "", False), ("a", "\n", False)]
)
def test_edits_do_what_replacing_in_the_text_does_and_nothing_else(lines, end, form, open_end, edits):
    mark, encoding = form
    text = "\n".join(lines) + ("" if open_end else "\n")
    data = mark + text.replace("\n", end).encode(encoding)
    expected: str | None = text
    for old, new, every in edits:
        count = expected.count(old)
        if old == new or not count or (count > 1 and not every):
            expected = None
            break
        expected = expected.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_bytes(data)
        if "\r\n" not in text.replace("\n", end):
            end = "\n"
        if expected is None:
            with pytest.raises(FileFault):
                edit(file.parent, "file", *edits)
            assert file.read_bytes() == data
            return
        encoding = decoded(data, "file").encoding
        shown = edit(file.parent, "file", *edits, dry=True)["text"]
        assert file.read_bytes() == data, "a preview changes nothing"
        edit(file.parent, "file", *edits)
        assert file.read_bytes() == mark + expected.replace("\n", end).encode(encoding)
        assert (shown == changing.NOTHING) == (expected == text)
        assert os.listdir(folder) == ["file"], "nothing is left beside it"


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=30),
    edits=st.lists(
        st.tuples(st.text("ab\n", min_size=1, max_size=3), st.text("abc\n", max_size=5), st.booleans()),
        min_size=1,
        max_size=3,
    ),
)
def test_the_diff_of_edits_is_that_of_the_whole_texts(lines, edits):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_text("\n".join(lines) + "\n")
        try:
            diff = edit(file.parent, "file", *edits, dry=True)["text"]
        except FileFault:
            return
        edit(file.parent, "file", *edits)
        after = file.read_text()
        if diff == changing.NOTHING:
            assert after == "\n".join(lines) + "\n"
            return
        file.write_text("\n".join(lines) + "\n")
        subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=diff.encode(), cwd=folder, check=True)
        assert (file.read_text() if file.exists() else "") == after


@settings(max_examples=100, deadline=None)
@given(before=LINES, after=LINES, open_ends=st.tuples(st.booleans(), st.booleans()))
def test_a_diff_is_what_makes_one_text_of_the_other(before, after, open_ends):
    old, new = (
        "\n".join(lines) + ("" if is_open else "\n") for lines, is_open in zip((before, after), open_ends, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_bytes(old.encode())
        diff = changing.write(Workspace(folder), "file", new, seen(file), dry=True)["text"]
        if old == new:
            assert diff == changing.NOTHING
            return
        subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=diff.encode(), cwd=folder, check=True)
        assert (file.read_bytes() if file.exists() else b"") == new.encode()


@settings(max_examples=300, deadline=None)
@given(text=st.text("ab#é\n", max_size=60), old=st.text("ab#é\n", min_size=1, max_size=4), start=st.integers(0, 8))
def test_a_text_is_found_where_it_is_however_common_its_characters_are(text: str, old: str, start: int):
    assert place_of(text, old, start) == text.find(old, start)
    often = text * (MOST_SKIPS // 10)
    assert place_of(often + "#", old, start) == (often + "#").find(old, start)


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path: Path):
    script = tmp_path / "run.sh"
    script.write_text("echo a\n")
    script.chmod(0o750)
    edit(tmp_path, "run.sh", ("a", "b", False))
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    before = os.umask(0o027)
    try:
        changing.write(Workspace(str(tmp_path)), "new", "x", None, dry=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_what_is_read_only_is_not_written_even_by_root(tmp_path: Path):
    (tmp_path / "kept").write_text("a")
    (tmp_path / "kept").chmod(0o444)
    with pytest.raises(FileFault, match="may not be written: it is read-only, its mode is 444"):
        edit(tmp_path, "kept", ("a", "b", False))
    assert (tmp_path / "kept").read_text() == "a"


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize(
    "step",
    [
        "*** Delete File: kept",
        "*** Update File: kept\n@@\n-a\n+b",
        "*** Update File: kept\n*** Move to: other\n@@\n-a\n+b",
    ],
)
def test_a_patch_of_a_read_only_file_changes_nothing_at_all(tmp_path: Path, step: str, dry: bool):
    for name in ("first", "kept"):
        (tmp_path / name).write_text("a\n")
    (tmp_path / "kept").chmod(0o444)
    text = f"*** Begin Patch\n*** Update File: first\n@@\n-a\n+b\n{step}\n*** End Patch"
    with pytest.raises(FileFault, match=r"kept may not be (written|removed): it is read-only, its mode is 444"):
        changing.patch(Workspace(str(tmp_path)), text, dry=dry)
    assert [(tmp_path / name).read_text() for name in ("first", "kept")] == ["a\n", "a\n"]
    assert not (tmp_path / "other").exists()


def test_a_read_only_file_is_not_removed_but_a_link_to_one_is(tmp_path: Path):
    (tmp_path / "kept").write_text("a")
    (tmp_path / "kept").chmod(0o444)
    (tmp_path / "link").symlink_to("kept")
    workspace = Workspace(str(tmp_path))
    with pytest.raises(FileFault, match="may not be removed: it is read-only"):
        changing.remove(workspace, "kept", dry=False)
    changing.remove(workspace, "link", dry=False)
    assert (tmp_path / "kept").exists()
    assert not (tmp_path / "link").is_symlink()


def test_a_link_stays_and_its_target_changes_and_other_names_of_a_file_keep_the_old(tmp_path: Path):
    (tmp_path / "real").write_text("a")
    (tmp_path / "link").symlink_to("real")
    os.link(tmp_path / "real", tmp_path / "store")
    edit(tmp_path, "link", ("a", "b", False))
    assert (tmp_path / "link").is_symlink()
    assert ((tmp_path / "real").read_text(), (tmp_path / "store").read_text()) == ("b", "a")


def test_what_was_not_read_or_has_changed_since_is_not_changed(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("a")
    workspace, asked = Workspace(str(tmp_path)), [{"old_string": "a", "new_string": "b"}]
    with pytest.raises(FileFault, match="read it first"):
        changing.edit(workspace, "file", asked, None, dry=False)
    with pytest.raises(FileFault, match="read it first"):
        changing.write(workspace, "file", "b", None, dry=False)
    known = seen(file)
    file.write_text("a b")
    for attempt in (
        lambda: changing.edit(workspace, "file", asked, known, dry=False),
        lambda: changing.write(workspace, "file", "b", known, dry=False),
        lambda: changing.insert(workspace, "file", 0, "x", known, dry=False),
    ):
        with pytest.raises(FileFault, match="changed since it was read"):
            attempt()
    assert file.read_text() == "a b"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("", "x", False)], "old_string is empty"),
        ([("one", "one", False)], "are the same"),
        ([("none", "x", False)], "was not found"),
        ([("o", "x", False)], r"3 times \(lines 1, 2, 3\)"),
        ([("     1\tone", "x", False)], "begins with a line number"),
        ([("one\n  two", "x", False)], "its first line is like line 1"),
        ([("one", "1", False), ("one", "x", False)], "edit 2: old_string was not found.*nothing was changed"),
    ],
)
def test_an_edit_that_does_not_fit_says_why_and_changes_nothing(tmp_path: Path, edits, said: str):
    (tmp_path / "file").write_text("one\ntwo\nof\n")
    with pytest.raises(FileFault, match=said):
        edit(tmp_path, "file", *edits)
    assert (tmp_path / "file").read_text() == "one\ntwo\nof\n"


def test_lines_of_mixed_ends_keep_them(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"a\r\nb\nc\r\nd\r\n")
    edit(tmp_path, "file", ("a\nb", "x\ny", False))
    assert (tmp_path / "file").read_bytes() == b"x\r\ny\nc\r\nd\r\n"


def test_a_character_that_the_encoding_lacks_is_refused_in_an_edit(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"caf\xe9\n")
    with pytest.raises(FileFault, match="cp1252, which has no"):
        edit(tmp_path, "file", ("caf", "漢", False))
    assert (tmp_path / "file").read_bytes() == b"caf\xe9\n"


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"%PDF-1.7 x", b"\xff\xfeA"], ids=["nul", "pdf", "half"])
def test_what_is_no_text_is_not_edited(tmp_path: Path, content: bytes):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FileFault, match=r"binary|but is none"):
        edit(tmp_path, "file", ("A", "b", False))
    assert (tmp_path / "file").read_bytes() == content


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, said in (("pipe", "no regular file"), ("folder", "is a folder")):
        with pytest.raises(FileFault, match=said):
            edit(tmp_path, name, ("a", "b", False))
        with pytest.raises(FileFault, match=said):
            changing.write(Workspace(str(tmp_path)), name, "x", None, dry=False)


def test_what_cannot_be_moved_or_written_leaves_no_folder_behind(tmp_path: Path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("x")
    workspace = Workspace(str(tmp_path))
    for path, to, said in (
        ("d", "d/new/inside", "into itself"),
        ("none", "made/of/nothing", "there is no none"),
        ("f", "d", "there already"),
        ("f", "f", "there already"),
        (".", "d/all", "there is no ."),
    ):
        for dry in (True, False):
            with pytest.raises(FileFault, match=re.escape(said)):
                changing.move(workspace, path, to, dry=dry)
    for dry in (True, False):
        with pytest.raises(FileFault, match="names a folder"):
            changing.write(workspace, "made/", "x", None, dry=dry)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["d", "f"]
    changing.move(workspace, "f", "made/of/f", dry=False)
    assert (tmp_path / "made/of/f").read_text() == "x"


def test_nothing_is_written_through_a_link_that_leads_out(tmp_path: Path):
    (tmp_path / "work").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("a")
    (tmp_path / "work" / "link").symlink_to(outside)
    (tmp_path / "work" / "missing").symlink_to(tmp_path / "made")
    for name in ("link", "missing"):
        with pytest.raises(FileFault, match="outside the workspace"):
            changing.write(Workspace(str(tmp_path / "work")), name, "x", None, dry=False)
    assert outside.read_text() == "a"
    assert not (tmp_path / "made").exists()


def test_a_text_is_inserted_after_a_line(tmp_path: Path):
    file = tmp_path / "file"
    for line, before, after in ((0, "a\n", "x\na\n"), (1, "a", "a\nx\n"), (1, "a\r\nb\r\n", "a\r\nx\r\nb\r\n")):
        file.write_bytes(before.encode())
        changing.insert(Workspace(str(tmp_path)), "file", line, "x", seen(file), dry=False)
        assert file.read_bytes() == after.encode()
    with pytest.raises(FileFault, match="has 3 lines"):
        changing.insert(Workspace(str(tmp_path)), "file", 9, "x", seen(file), dry=False)
