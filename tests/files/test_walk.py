"""Trees of files that somebody else writes to while they are looked at."""

from __future__ import annotations

import os

import pytest

from toolyard.files import walk
from toolyard.files.walk import copy, digest, scan


def test_what_goes_while_it_is_looked_at_is_not_there(tmp_path, monkeypatch):
    for name in ("goes", "stays"):
        (tmp_path / name).touch()
    usual = walk.seen

    def seen(entry):
        (tmp_path / "goes").unlink(missing_ok=True)
        return usual(entry)

    monkeypatch.setattr(walk, "seen", seen)
    assert set(scan(str(tmp_path))) == {"stays"}


def test_a_pipe_is_no_content(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    tree = scan(str(tmp_path))
    assert (tree["pipe"], scan(str(tmp_path / "pipe"))) == (None, {})
    digest(str(tmp_path), tree)
    copy(str(tmp_path), tree, tmp_path / "copy")
    assert os.listdir(tmp_path / "copy") == ["file"]


def test_a_link_to_a_file_has_the_content_of_the_file(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    file, link = str(tmp_path / "file"), str(tmp_path / "link")
    assert digest(link, scan(link)) == digest(file, scan(file))


@pytest.mark.parametrize("take", [digest, lambda root, tree: copy(root, tree, f"{root}-copy")])
def test_a_link_or_a_pipe_that_is_put_in_the_way_after_a_tree_was_seen_is_not_followed(tmp_path, take):
    (tmp_path / "key").write_text("secret")
    for name, make in (("link", lambda path: path.symlink_to(tmp_path)), ("pipe", None)):
        root = tmp_path / name
        (root / "sub").mkdir(parents=True)
        (root / "sub" / "key").write_text("own")
        tree = scan(str(root))
        (root / "sub" / "key").unlink()
        if make:
            (root / "sub").rmdir()
            make(root / "sub")
        else:
            os.mkfifo(root / "sub" / "key")
        with pytest.raises(OSError):
            take(str(root), tree)
    assert "secret" not in [path.read_text() for path in tmp_path.glob("*-copy/**/*") if path.is_file()]
