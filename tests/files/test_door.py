"""The door: what is obeyed is a regular file of a bounded size, and no link of a tool's leads to it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolyard
from toolyard.files import accepted
from toolyard.files.door import Door, FileRefused

LIMIT = 1 << 20


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder that tools can write, with a secret beside it."""
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder.parent / "key").write_text("secret")
    return folder


def read(path: Path, *writable: Path, largest: int = LIMIT) -> bytes:
    return Door.to(map(str, writable)).read(path, largest=largest).data


def refusal(path: Path, *writable: Path, largest: int = LIMIT) -> str:
    with pytest.raises(FileRefused) as caught:
        read(path, *writable, largest=largest)
    problem = caught.value.problem()
    assert (problem.code, problem.where.file, bool(problem.hint)) == ("file_refused", path, True)
    return problem.message


def test_a_file_is_read_once_with_its_stamp_and_its_digest(work):
    file = work / "file"
    file.write_bytes(b"a\r\nb\rc\n\xc3\xa4")
    content = Door.to([str(work)]).read(file, largest=LIMIT)
    assert content.data == b"a\r\nb\rc\n\xc3\xa4"
    assert content.text() == "a\nb\nc\nä"
    assert content.digest == hashlib.sha256(content.data).hexdigest()
    assert content.stamp == (file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_ino)
    assert Door().read(file, largest=LIMIT).data == content.data


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(path.parent):
        listener.bind(path.name)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket], ids=["pipe", "socket"])
@pytest.mark.parametrize("inside", [True, False])
def test_what_never_opens_is_refused_at_once(work, make, inside):
    make(work / "odd")
    assert "not a regular file" in refusal(work / "odd", *([work] if inside else []))


def test_a_device_that_never_ends_is_refused_at_once(work):
    assert "not a regular file" in refusal(Path("/dev/zero"), work)


def test_a_folder_is_said_to_be_one(work):
    for door in (Door(), Door.to([str(work)])):
        with pytest.raises(IsADirectoryError):
            door.read(work, largest=LIMIT)
        (work / "folder").mkdir(exist_ok=True)
        with pytest.raises(IsADirectoryError):
            door.read(work / "folder", largest=LIMIT)
        with pytest.raises(FileNotFoundError) as caught:
            door.read(work / "none", largest=LIMIT)
        assert caught.value.filename == str(work / "none")


def test_a_large_file_is_refused_before_it_is_read_and_one_that_grows_while_it_is(work):
    with (work / "large").open("wb") as file:
        file.truncate(3 << 30)
    assert "larger than 1 MiB" in refusal(work / "large", work)
    assert Path("/proc/self/status").stat().st_size == 0
    assert "larger than 16 bytes" in refusal(Path("/proc/self/status"), largest=16)
    (work / "exact").write_bytes(b"x" * 16)
    assert read(work / "exact", largest=16) == b"x" * 16


def test_where_tools_can_write_no_link_is_followed_neither_to_a_file_nor_to_a_folder(work):
    outside = work.parent
    (work / "link").symlink_to(outside / "key")
    (work / "own").write_text("own")
    (work / "to-own").symlink_to("own")
    (work / "folder").symlink_to(outside)
    for name in ("link", "to-own"):
        assert "it is a link in a folder that tools can write" in refusal(work / name, work)
    assert "'folder' on the way to it is a link" in refusal(work / "folder" / "key", work)
    assert read(work / "folder" / "key") == b"secret", "where no tool can write, a link is its owner's"


def test_a_link_of_the_owners_is_followed_but_not_one_that_it_leads_to(work):
    outside = work.parent
    (work / "config").write_text("{}")
    (outside / "to-config").symlink_to("work/config")
    (outside / "to-work").symlink_to(work)
    assert read(outside / "to-config", work) == b"{}"
    assert read(outside / "to-work" / "config", work) == b"{}"
    (work / "config").unlink()
    (work / "config").symlink_to(outside / "key")
    for path in (outside / "to-config", outside / "to-work" / "config"):
        assert "is a link" in refusal(path, work)
    (work / "sub").symlink_to(outside)
    (outside / "deep").symlink_to("work/sub/key")
    assert "'sub' on the way to it" in refusal(outside / "deep", work)


def test_links_in_a_circle_end(work):
    (work.parent / "a").symlink_to("b")
    (work.parent / "b").symlink_to("a")
    assert "too many links" in refusal(work.parent / "a", work)
    assert Door.to([str(work)]).is_writable(str(work.parent / "a")), "as long as nobody knows better"
    assert Door.to([str(work)]).folder_problem(str(work.parent / "a" / "b")).code == "file_refused"


def test_dots_after_a_link_do_not_lead_into_the_workspace_unseen(work):
    (work / "sub").mkdir()
    (work / "file").symlink_to("../key")
    (work.parent / "way").symlink_to("work/sub")
    with pytest.raises(FileNotFoundError):
        read(work.parent / "way" / ".." / "file", work)


def test_names_with_dots_and_a_workspace_behind_a_link_mean_the_same_file(work):
    (work / "file").write_text("x")
    (work / "sub").mkdir()
    (work / "link").symlink_to(work.parent / "key")
    (work.parent / "other-name").symlink_to(work)
    assert read(work / "sub" / ".." / "file", work.parent / "other-name") == b"x"
    assert "is a link" in refusal(work / "link", work.parent / "other-name")


def test_a_link_that_is_put_in_place_while_we_read_is_never_followed(work):
    """A tool moves a file and a link to a secret to and fro."""
    (work / "sub").mkdir()
    (work / "sub" / "file").write_text("own")
    (work.parent / "sub").mkdir()
    (work.parent / "sub" / "file").write_text("secret")
    over = threading.Event()

    def swap() -> None:
        os.symlink(work.parent / "sub", work / "trap")
        while not over.is_set():
            for source, target in (("sub", "kept"), ("trap", "sub"), ("sub", "trap"), ("kept", "sub")):
                os.rename(work / source, work / target)

    tool = threading.Thread(target=swap)
    tool.start()
    found = set()
    try:
        for _ in range(3000):
            with contextlib.suppress(OSError):
                found.add(read(work / "sub" / "file", work))
    finally:
        over.set()
        tool.join(30)
    assert found == {b"own"}


def test_what_tools_may_have_written_has_no_effect_outside_until_a_person_accepts_it(work, monkeypatch):
    (work / "file").write_text("changed")
    monkeypatch.setattr(accepted, "may_be_from_tools", lambda path, _: path == str(work / "file"))
    door = Door((str(work),))
    with pytest.raises(FileRefused, match="was changed while tools could write it") as refused:
        door.read_accepted(work / "file", largest=LIMIT)
    assert refused.value.hint.endswith(f"toolyard trust accept {work / 'file'}")
    assert door.read(work / "file", largest=LIMIT).data == b"changed"
    assert door.read_accepted(work.parent / "key", largest=LIMIT).data == b"secret"
    accepted.accept(str(work / "file"))
    assert door.read_accepted(work / "file", largest=LIMIT).data == b"changed"


def test_a_file_that_was_away_for_a_moment_is_not_the_same(work):
    (work / "file").write_text("x")
    content = Door().read(work / "file", largest=LIMIT)
    assert content.is_still_at(str(work / "file"))
    os.rename(work / "file", work / "away")
    (work / "file").write_text("y")
    assert not content.is_still_at(str(work / "file"))
    os.rename(work / "away", work / "file")
    os.utime(work / "file", ns=(content.facts.st_atime_ns, content.facts.st_mtime_ns))
    assert not content.is_still_at(str(work / "file"))


def test_the_current_folder_is_minded_unless_it_is_the_systems_or_gone(work, monkeypatch):
    monkeypatch.chdir(work)
    assert Door.here().writable == (str(work),)
    monkeypatch.chdir("/usr")
    assert Door.here().writable == ()
    (work / "gone").mkdir()
    monkeypatch.chdir(work / "gone")
    (work / "gone").rmdir()
    assert Door.here().writable == ()


def test_on_a_read_only_file_system_links_are_their_owners(work, monkeypatch):
    (work / "link").symlink_to("../key")
    usual = os.statvfs

    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda path: ReadOnly if path == str(work) else usual(path))
    assert read(work / "link", work) == b"secret"
    monkeypatch.setattr(os, "statvfs", usual)
    work.chmod(0o555)
    assert "is a link" in refusal(work / "link", work), "a tool may have closed the folder behind it"


ROOMS = ("agents", "authoring", "builtin_plugins", "config", "kinds", "permissions", "plugins")
WAYS_AROUND = re.compile(
    r"""\.read_(text|bytes)\(|(?<![\w.])(?<!def\ )open\(|os\.open\(|\.open\((["']rb?["'])?\)|shutil\.which"""
)
NOT_OBEYED = {
    "authoring/discover.py": 'with file.open("x"',
    "permissions/grants.py": "lock = os.open(",
    "permissions/judge.py": "shutil.which(name) is not None",
    "permissions/expansion/outputs.py": "found = shutil.which(values[0])",
    "plugins/contract.py": "def read_text(",
    "builtin_plugins/feature-system-message/feature_system_message/runtime.py": "self._context.read_text(name)",
    "agents/sessions/claim.py": "self._fd = os.open(",
    "builtin_plugins/telemetry/telemetry.py": 'out = open(file, "a"',
}
"""What looks like a way around and is none: files that are written, programs that are only looked for, and the door
itself under another name."""
STORES = ("agents/checkpoints/",)
"""Of the store, which tools cannot write; and the workspace's own files, which are kept and never obeyed."""


def test_there_is_no_other_way_in():
    top = Path(toolyard.__file__).parent
    found = [
        f"{path.relative_to(top)}: {line.strip()}"
        for room in ROOMS
        for path in (top / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if WAYS_AROUND.search(line) and NOT_OBEYED.get(str(path.relative_to(top)), "\0") not in line
        if not str(path.relative_to(top)).startswith(STORES)
    ]
    assert found == []


@given(st.lists(st.sampled_from(["/a", "/a/b", "/a/b/c", "/ab", "/b", "/", "/usr"])))
def test_folders_inside_others_and_the_systems_own_need_no_mention(folders):
    writable = Door.to(folders).writable
    assert set(writable) <= set(folders) - {"/", "/usr"}
    assert all(
        any(one == top or one.startswith(f"{top}/") for top in writable)
        for one in folders
        if len(one) > 1 and one != "/usr"
    )
    assert not any(one != other and one.startswith(f"{other}/") for one in writable for other in writable)
