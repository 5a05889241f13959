"""A sessions folder that somebody laid out: links in it lead nowhere, and what it says has no effect outside of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import struct
from pathlib import Path

import apsw
import pytest

from scripted_provider import ScriptedProvider, bash
from toolyard import AgentApplication
from toolyard.agents.checkpoints.changes import listing_of
from toolyard.agents.checkpoints.objects import ENCODER, FileEntry
from toolyard.agents.checkpoints.packs import Damaged, Packs
from toolyard.agents.sessions.claim import SessionClaim
from toolyard.agents.sessions.database import StoreError
from toolyard.agents.sessions.folder_vfs import registered
from toolyard.agents.sessions.store import SessionStore
from toolyard.errors import ToolyardError

pytestmark = pytest.mark.anyio
SECONDS = 60
OUTPUT = {"limit_bytes": 1000, "keep_days": 1}
CONFIG = {
    "provider": "scripted",
    "plugins": ["shell:command", "shell:session"],
    "sandbox": {"mode": "off"},
    "output": OUTPUT,
}
LONG = "seq 3000"


async def work_with(sessions: Path) -> None:
    """What people do: calls with long output, a conversation with states, a way back, a search, a deletion."""
    provider = ScriptedProvider(bash("date +%N > changed; " + LONG), "Done.", bash("date +%N > changed"), "Again.")
    async with asyncio.timeout(SECONDS), AgentApplication(CONFIG, sessions, tools=[provider]) as app:
        await app.call_tool("shell", {"command": LONG})
        with contextlib.suppress(StoreError, ToolyardError, OSError):
            session = await app.open_session()
            async for _ in session.send("go"):
                pass
            async for _ in session.send("again"):
                pass
            await session.rewind()
            await app.session_store().search("done")
        app.get_config_errors()


def all_facts(top: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([top, *top.rglob("*")]):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (facts.st_mode, facts.st_mtime_ns if content is not None else 0, content)
    return found


def age(top: Path) -> None:
    for path in [*top.rglob("*"), top]:
        os.utime(path, (1, 1), follow_symlinks=False)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    (work / "changed").write_text("first")
    return work


@pytest.mark.timeout(600)
async def test_no_name_of_a_used_sessions_folder_leads_out_of_it_when_it_is_a_link(workspace: Path) -> None:
    sessions, used, outside = workspace / "sessions", workspace.parent / "used", workspace.parent / "outside"
    await work_with(sessions)
    sessions.rename(used)
    names = sorted(str(path.relative_to(used)) for path in used.rglob("*"))
    assert {"audit", "audit.head", "sessions.sqlite", "outputs", "checkpoints", "locks"} <= set(names)
    names += ["sessions.sqlite-wal", "sessions.sqlite-shm", "sessions.sqlite-journal", "audit.next-day"]
    for name in names:
        for is_like_it in (True, False):
            for folder in (outside, sessions):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(used, sessions)
            lay_out(sessions / name, outside, is_like_it=is_like_it)
            before = all_facts(outside)
            await work_with(sessions)
            assert all_facts(outside) == before, name


def lay_out(place: Path, outside: Path, *, is_like_it: bool) -> None:
    """A link in a place to something outside: to what was there, or to the other kind of thing."""
    (outside / "letters").mkdir(parents=True)
    for name in ("old", "letters/old"):
        (outside / name).write_text("precious")
    target = outside / "target"
    if place.is_dir() == is_like_it:
        shutil.copytree(place if place.is_dir() else outside / "letters", target)
    elif is_like_it and place.exists():
        shutil.copy(place, target)
    else:
        target.write_bytes(b"")
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(target)
    age(outside)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER evil AFTER INSERT ON sessions BEGIN DELETE FROM events; END",
        "CREATE VIEW evil AS SELECT * FROM sessions",
        "CREATE TABLE evil (a)",
        "CREATE INDEX evil ON sessions (lower(title))",
        "DROP TABLE indexed; CREATE VIEW indexed AS SELECT 1 AS upto",
    ],
)
async def test_a_store_with_parts_that_are_not_ours_is_not_used(tmp_path: Path, statement: str) -> None:
    file = tmp_path / "sessions.sqlite"
    SessionStore(file).close()
    with apsw.Connection(str(file)) as hostile:
        hostile.execute(statement)
    with pytest.raises(StoreError, match="something that Toolyard did not make"):
        SessionStore(file)


def hot_journal(names: Path) -> bytes:
    """A journal that a crash seems to have left, of a change that was made together with others, told in a file."""
    name = os.fsencode(names)
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 0, 1, 1, 512, 4096)
    end = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name))
    return header.ljust(512, b"\0") + end + bytes.fromhex("d9d505f920a163d7")


async def test_a_journal_beside_the_store_removes_no_file_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "sessions" / "sessions.sqlite"
    SessionStore(file).close()
    (precious := tmp_path / "sessions.sqlite-mj12345699A").write_text("x")  # as SQLite itself calls such a file
    file.with_name("sessions.sqlite-journal").write_bytes(hot_journal(precious))
    with contextlib.suppress(StoreError):
        SessionStore(file).close()
    assert precious.exists()


def test_sqlite_gets_no_file_but_those_of_the_store(tmp_path: Path) -> None:
    (precious := tmp_path / "precious").write_text("x")
    vfs = registered()
    for steps in (vfs.xFullPathname, lambda name: vfs.xDelete(name, False), lambda name: vfs.xOpen(name, [6, 0])):
        for name in (str(precious), f"/proc/self/cwd/{precious}", f"/proc/self/fd/0/../{precious}"):
            with pytest.raises(apsw.CantOpenError, match="no file of the store"):
                steps(name)
    assert precious.exists()


async def test_an_open_store_stays_in_its_folder_when_another_takes_the_place(tmp_path: Path) -> None:
    place, outside = tmp_path / "sessions", tmp_path / "outside"
    outside.mkdir()
    store = SessionStore(place / "sessions.sqlite")
    await store.create("default")
    place.rename(tmp_path / "moved")
    place.symlink_to(outside)
    row = await store.create("default")
    store.close()
    assert list(outside.iterdir()) == []
    assert SessionStore(tmp_path / "moved" / "sessions.sqlite").has(row.id)


def test_a_session_cannot_be_called_as_a_file_elsewhere(tmp_path: Path) -> None:
    (precious := tmp_path / "precious.lock").write_text("x")
    with pytest.raises(StoreError, match="no id of a session"):
        SessionClaim(tmp_path / "locks", "../precious")
    assert precious.read_text() == "x"


@pytest.mark.parametrize("name", [b"..", b".", b"", b"../above", b"/etc/x", b"a\0b"])
def test_a_kept_state_names_nothing_above_the_workspace(tmp_path: Path, name: bytes) -> None:
    packs = Packs(tmp_path / "packs")
    with packs.writing() as writer:
        digest = writer.add(ENCODER.encode({name: FileEntry(0o644, 1, b"x" * 20)}))
    with pytest.raises(Damaged, match="a name in it"):
        listing_of(packs, digest)
