"""Git's index: what was read of it is written anew, and what would lead git elsewhere is none."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from support import need
from toolyard.process.sandbox.git.outgoing.index_file import FILE, FOLDER, LINK, GitIndex, IndexEntry, read_index


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    argv = ["git", "-c", "user.name=Owner", "-c", "user.email=owner@example.org", *words]
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, env=env, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("split", ["false", "true"])
@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("ids", ["sha1", "sha256"])
def test_git_reads_the_same_from_what_is_written_anew(tmp_path, ids, version, split):
    need("git")
    git(tmp_path, "init", "-q", f"--object-format={ids}", ".")
    git(tmp_path, "config", "core.splitIndex", split)
    git(tmp_path, "config", "splitIndex.maxPercentChange", "90")
    (tmp_path / "sub").mkdir()
    for name in [f"file{number}" for number in range(100)] + ["n" * 200, "sub/ä\\b\nc"]:
        (tmp_path / name).write_text(name)
    (tmp_path / "sub" / "symbolic").symlink_to("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "update-index", "--index-version", version)
    git(tmp_path, "commit", "-qm", "x")
    (tmp_path / "file7").write_text("changed")
    (tmp_path / "file9").unlink()
    (tmp_path / "new").touch()
    (tmp_path / "later").touch()
    git(tmp_path, "add", "file7", "file9", "new")
    git(tmp_path, "add", "-N", "later")
    git(tmp_path, "update-index", "--skip-worktree", "file3")
    git(tmp_path, "update-index", "--assume-unchanged", "file4")
    before = git(tmp_path, "ls-files", "-s", "-v"), git(tmp_path, "status", "--porcelain")
    data = (tmp_path / ".git" / "index").read_bytes()
    assert (b"link" in data) == (split == "true")
    index = read_index(data, 20 if ids == "sha1" else 32, lambda name: (tmp_path / ".git" / name).read_bytes())
    (tmp_path / ".git" / "index").write_bytes(index.written())
    assert (git(tmp_path, "ls-files", "-s", "-v"), git(tmp_path, "status", "--porcelain")) == before
    git(tmp_path, "fsck", "--strict")


def entry(name: bytes, mode: bytes = FILE, *, flags: int = 0, extended: int = 0) -> IndexEntry:
    return IndexEntry(name, flags, extended, b"i" * 20, bytes(24) + mode + bytes(12))


HARMLESS = [b"a.github/x", b"b..c", b".gitignore", b"xgit/y", b"git~/z", b"x.git", b".git2/x", b"...", b"a\\b"]
HOSTILE: dict[str, list[IndexEntry]] = {
    **{
        f"the path {name!r}": [entry(name)]
        for name in (
            *(b".git/hooks/x", b"../x", b"a/../../x", b"/x", b"a//b", b"a/", b"", b"./x", b".GIT/x", b"a/.git/config"),
            *(b"git~1/x", b".git", b".git /x", b".git./x", b".git::$INDEX_ALLOCATION/x", b"a\\.git\\x", b"..\\x"),
            ".g\u200cit/x".encode(),
        )
    },
    "a link that names submodules": [entry(b".gitmodules", LINK)],
    "another order": [entry(b"b"), entry(b"a")],
    "the same twice": [entry(b"a"), entry(b"a")],
    "merged and not": [entry(b"a"), entry(b"a", flags=0x1000)],
    "a link and something below it": [entry(b"a", LINK), entry(b"a-b"), entry(b"a/x")],
    "a mode of no file": [entry(b"a", (0o140000).to_bytes(4, "big"))],
    "a folder that is not left out": [entry(b"a/", FOLDER)],
    "a folder in the git folder": [entry(b".git/hooks/", FOLDER, extended=0x4000)],
    "a flag that nobody knows": [entry(b"a", extended=0x1000)],
}


@pytest.mark.parametrize("version", [2, 4])
def test_ordinary_paths_are_read(version):
    index = GitIndex(version, 20, [entry(name) for name in sorted([*HARMLESS, b"n" * 4096])])
    assert read_index(index.written(), 20, {}.get) == index
    sparse = GitIndex(version, 20, [entry(b"a/", FOLDER, extended=0x4000)])
    assert read_index(sparse.written(), 20, {}.get).entries == sparse.entries


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("what", HOSTILE)
def test_what_would_lead_git_elsewhere_is_no_index(what, version):
    with pytest.raises(ValueError, match=r"elsewhere|order|entry|folder|submodule"):
        read_index(GitIndex(version, 20, HOSTILE[what]).written(), 20, {}.get)


def test_a_name_that_says_another_length_is_none():
    """Git goes by the length: what it reads next then lies where others see an extension."""
    data = bytearray(GitIndex(2, 20, [entry(b"aa"), entry(b"bb"), entry(b".git/hooks/x")]).written())
    data[8:12], data[12 + 60 : 12 + 62] = struct.pack(">I", 2), struct.pack(">H", 72 + 2)
    with pytest.raises(ValueError, match="not as long as it says"):
        read_index(bytes(data), 20, {}.get)


@pytest.mark.parametrize("extension", [b"abcd" + bytes(4), b"TREE" + b"\xff" * 4, b"TREE", (b"TREE" + bytes(4)) * 2])
def test_an_extension_that_git_must_know_or_cannot_read_is_refused(extension):
    data = GitIndex(2, 20, [entry(b"a")]).written()
    with pytest.raises(ValueError, match="extension"):
        read_index(data[:-20] + extension + data[-20:], 20, {}.get)


def test_extensions_are_not_written():
    """Git would believe them: one says of folders which tree they are, another which files need not be looked at."""
    data = GitIndex(2, 20, [entry(b"a")]).written()
    assert read_index(data[:-20] + b"TREE\0\0\0\1x" + data[-20:], 20, {}.get).written() == data


@pytest.mark.parametrize("bitmap", ["00000001" + "00000001" + "ffffffffffffffff", "00000001ffffffff", "", "00"])
def test_an_index_that_goes_on_from_another_replaces_nothing_that_is_not_there(bitmap):
    shared, own = GitIndex(2, 20, [entry(b"a")]).written(), GitIndex(2, 20, [entry(b"b")]).written()
    link = b"s" * 20 + bytes.fromhex(bitmap + "00000000") * 2
    data = own[:-20] + b"link" + struct.pack(">I", len(link)) + link + own[-20:]
    with pytest.raises(ValueError, match="bitmap"):
        read_index(data, 20, {f"sharedindex.{(b's' * 20).hex()}": shared}.get)
