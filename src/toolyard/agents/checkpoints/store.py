"""The kept states of one workspace: keep one, list them, go back to one, drop what nobody needs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.checkpoints.changes import differences, listing_of, of_paths, unified_diff
from toolyard.agents.checkpoints.coverage import Coverage, LeftOut, workspace_refusal
from toolyard.agents.checkpoints.objects import Digest, FileEntry, FolderEntry
from toolyard.agents.checkpoints.packs import Packs
from toolyard.agents.checkpoints.restore import Restored, WorkspaceWriter, with_parents
from toolyard.agents.checkpoints.scan import SeenFolder, WorkspaceScan
from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.files.locks import try_lock
from toolyard.files.own.entering import enter, facts_of_own, open_own, read_own, remove_own, replace_own, touch_own
from toolyard.files.own.folder_listing import FolderListing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.checkpoints.scan import SeenFolders

SOON_NAMED = 3600.0
"""By when a state that was kept is named, if its process lives, in seconds."""
SEEN_EVERY = 30.0
"""Seconds after which what was seen is written again."""
PATIENCE = 60.0
"""How many seconds to wait for another process that keeps a state of the same workspace."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One kept state."""

    id: str
    number: int
    made: float
    root: str
    """The digest of its top folder."""
    session: str = ""
    label: str = ""
    left_out: tuple[LeftOut, ...] = ()
    """All that was there and is no part of the state; going back to it leaves that alone."""

    @property
    def root_digest(self) -> Digest:
        return bytes.fromhex(self.root)


class CheckpointError(Exception):
    """A state cannot be kept, or not be had back; the message says why."""


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A way back that was begun: where to, and what was there before."""

    target: str
    safety: str
    paths: tuple[str, ...] = ()


class RestoreOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a way back did, and the state in which everything was before it."""

    safety: Checkpoint
    restored: Restored


SEEN_DECODER = msgspec.msgpack.Decoder(dict[str, SeenFolder])


class CheckpointStore:
    """All states of a workspace. Its methods take time: call them in a thread."""

    def __init__(
        self, folder: Path, workspace: Path, *, home: Path, coverage: Coverage | None = None, own: Sequence[Path] = ()
    ) -> None:
        """`own` are folders of the application that may lie in the workspace and are no part of it."""
        if reason := workspace_refusal(workspace, home):
            raise CheckpointError(f"no state of {workspace} is kept: {reason}")
        self.workspace = os.path.realpath(workspace)
        self.coverage = coverage or Coverage()
        self._own = (folder, *own)
        self._folder = folder / workspace_name(self.workspace)
        self._records = self._folder / "states"
        try:
            os.close(enter(self._records, make=True))
        except OSError as error:
            raise CheckpointError(f"{self._records}: {error.strerror or error}") from None
        self._listing = FolderListing(self._records)
        self._packs = Packs(self._folder / "packs")
        self._seen: SeenFolders | None = None
        self._seen_written: float | None = None
        self._users = -1
        """Locked, together with others, as long as we work with the states."""

    def keep(self, *, session: str = "", label: str = "", without: Collection[str] = ()) -> Checkpoint:
        """Keep the state of now, without some paths; the last one when nothing changed since."""
        with self._locked():
            made = self._keep(session, label, without)
            if self._packs.size() > self.coverage.total:
                self._drop_oldest(made)
            return made

    def checkpoints(self) -> list[Checkpoint]:
        """All states, oldest first; a record that cannot be read is none."""
        found = []
        for name in self._listing.sizes():
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                if name.endswith(".json") and not name.startswith("."):
                    found.append(decode_json(read_own(self._records / name), Checkpoint))
        return sorted(found, key=lambda one: one.number)

    def find(self, id: str) -> Checkpoint:
        """A state by its id."""
        for one in self.checkpoints():
            if one.id == id:
                return one
        raise CheckpointError(f"the state '{id}' is not kept any more")

    def changes(self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()) -> list[Change]:
        """What differs between two states, of these paths or all."""
        self._packs.reread()
        found = list(differences(self._packs, before.root_digest, after.root_digest))
        return of_paths(found, paths) if paths else found

    def diff(self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()) -> str:
        """The same as a patch."""
        return unified_diff(self._packs, self.changes(before, after, paths))

    def preview(self, target: Checkpoint, paths: Sequence[str] = (), *, without: Collection[str] = ()) -> list[Change]:
        """What going back would change, without changing it."""
        now = self.keep(label="looked at before going back", without=without)
        never = {one.path for one in (*now.left_out, *target.left_out)}
        changes = self.changes(now, target, paths)
        return [change for change in changes if never.isdisjoint(with_parents(change.path))]

    def restore(
        self, target: Checkpoint, paths: Sequence[str] = (), *, session: str = "", without: Collection[str] = ()
    ) -> RestoreOutcome:
        """Go back to a state, all of it or these paths; first the state of now is kept.

        When this is interrupted, even by the end of the machine, `finish` goes on with it.
        """
        with self._locked():
            safety = self._keep(session, f"before going back to {target.id}", without)
            journal = Unfinished(target=target.id, safety=safety.id, paths=tuple(paths))
            replace_own(self._journal, encode_json(journal), durable=True)
            return self._carry_out(safety, safety, target, paths)

    def unfinished(self) -> Unfinished | None:
        """A way back that was begun and did not end."""
        try:
            return decode_json(read_own(self._journal), Unfinished)
        except (OSError, msgspec.MsgspecError):
            return None

    def finish(self, *, without: Collection[str] = ()) -> RestoreOutcome | None:
        """Go on with a way back that was interrupted, if one was."""
        with self._locked():
            journal = self.unfinished()
            if journal is None:
                return None
            now = self._keep("", "in the middle of going back", without)
            return self._carry_out(self.find(journal.safety), now, self.find(journal.target), journal.paths)

    def collect(self, find_needed: Callable[[Sequence[Checkpoint]], Collection[str]]) -> int:
        """Drop the states that nobody needs; the number of bytes that were freed.

        What is needed is asked for when no state can be kept meanwhile. Where others work with these states, one of
        them may be about to name what it has just kept, so that young ones are spared.
        """
        with self._locked(), self._alone() as is_alone:
            journal, kept = self.unfinished(), self.checkpoints()
            needed = {*find_needed(kept), *((journal.target, journal.safety) if journal else ())}
            for one in kept:
                if one.id not in needed and (is_alone or self._age(one) > SOON_NAMED):
                    remove_own(self._record_of(one))
            return self._packs.keep_only(self._live())

    def _drop_oldest(self, spared: Checkpoint | None = None) -> int:
        """Drop states, the oldest first, until the rest is within the bound; the number of bytes that were freed."""
        journal, freed = self.unfinished(), 0
        needed = {one.id for one in (spared or self._last(),) if one}
        needed |= {journal.target, journal.safety} if journal else set()
        for one in self.checkpoints():
            if self._packs.size() <= self.coverage.total:
                break
            if one.id not in needed:
                remove_own(self._record_of(one))
                freed += self._packs.keep_only(self._live())
        return freed

    def size(self) -> int:
        """Bytes on disk."""
        return self._packs.size()

    def close(self) -> None:
        self._packs.close()
        if self._users >= 0:
            os.close(self._users)
            self._users = -1

    def _keep(self, session: str, label: str, without: Collection[str]) -> Checkpoint:
        before = self._seen_before()
        never = [identity(folder) for folder in (*self._own, self._folder)]
        with self._packs.writing() as writer:
            scan = WorkspaceScan(writer, self.coverage, seen=before, never=never, without=without)
            root = scan.run(self.workspace)
        if scan.seen != before:
            self._seen = scan.seen
            self._write_seen(scan.seen)
        last = self._last()
        if last and (last.root, last.left_out) == (root.hex(), tuple(scan.left_out)):
            touch_own(self._record_of(last))  # somebody else is about to name it
            return last
        made = Checkpoint(
            id=secrets.token_hex(6),
            number=last.number + 1 if last else 1,
            made=time.time(),
            root=root.hex(),
            session=session,
            label=label,
            left_out=tuple(scan.left_out),
        )
        replace_own(self._record_of(made), encode_json(made), durable=True)
        return made

    def _write_seen(self, seen: SeenFolders) -> None:
        """For the next process, which reads again what changed since; so that this need not be done each time."""
        now = time.monotonic()
        if self._seen_written is None or now - self._seen_written > SEEN_EVERY:
            self._seen_written = now
            replace_own(self._folder / "seen", encode_seen(seen))

    def _last(self) -> Checkpoint | None:
        name = max((name for name in self._listing.sizes() if name.endswith(".json")), default=None)
        try:
            return decode_json(read_own(self._records / name), Checkpoint) if name else None
        except (OSError, msgspec.MsgspecError):
            return next(reversed(self.checkpoints()), None)

    def _seen_before(self) -> SeenFolders:
        """What was seen last, as long as all of it is still kept."""
        if self._seen is None:
            try:
                self._seen = SEEN_DECODER.decode(read_own(self._folder / "seen"))
            except (OSError, msgspec.MsgspecError):
                self._seen = {}
            self._seen = {path: one for path, one in self._seen.items() if self._is_kept(one)}
        return self._seen

    def _is_kept(self, folder: SeenFolder) -> bool:
        contents = (entry.content for entry in folder.entries.values() if isinstance(entry, FileEntry))
        return folder.listing in self._packs and all(content in self._packs for content in contents)

    def _carry_out(
        self, safety: Checkpoint, now: Checkpoint, target: Checkpoint, paths: Sequence[str]
    ) -> RestoreOutcome:
        never = [one.path for one in (*now.left_out, *target.left_out)]
        writer = WorkspaceWriter(self.workspace, self._packs, never=never)
        try:
            restored = writer.apply(self.changes(now, target, paths))
        finally:
            writer.close()
        remove_own(self._journal)
        return RestoreOutcome(safety=safety, restored=restored)

    def _live(self) -> set[Digest]:
        """Every object that a state needs."""
        live: set[Digest] = set()
        waiting = [one.root_digest for one in self.checkpoints()]
        while waiting:
            listing = waiting.pop()
            if listing in live:
                continue
            live.add(listing)
            for entry in listing_of(self._packs, listing).values():
                if isinstance(entry, FolderEntry):
                    waiting.append(entry.listing)
                elif isinstance(entry, FileEntry):
                    live.add(entry.content)
        self._seen = None  # what it says is kept may be gone
        return live

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; what another left half-written is removed."""
        fd = open_own(self._folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            if not try_lock(fd, fcntl.LOCK_EX, PATIENCE):
                raise CheckpointError("another process keeps a state of this workspace and does not end")
            self._join_users()
            self._packs.remove_leftovers()
            if self._packs.reread():
                self._seen = None  # it may name contents that are gone
            yield
        finally:
            os.close(fd)

    def _join_users(self) -> None:
        """Whoever collects holds that lock alone only within the other one, so that nobody waits here."""
        if self._users < 0:
            self._users = open_own(self._folder / "users", os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._users, fcntl.LOCK_SH)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether nobody else, in any process, works with the states."""
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        except BlockingIOError:
            is_alone = False
        try:
            yield is_alone
        finally:
            fcntl.flock(self._users, fcntl.LOCK_SH)

    def _age(self, checkpoint: Checkpoint) -> float:
        """Seconds since it was last kept."""
        return abs(time.time() - facts_of_own(self._record_of(checkpoint)).st_mtime)

    @property
    def _journal(self) -> Path:
        return self._folder / "going-back"

    def _record_of(self, checkpoint: Checkpoint) -> Path:
        return self._records / f"{checkpoint.number:08}.json"


def encode_seen(seen: SeenFolders) -> bytes:
    """What was seen, for the next process; folders with names that are no text are only read again."""
    try:
        return msgspec.msgpack.encode(seen)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode({path: one for path, one in seen.items() if is_text(path, one)})


def is_text(path: str, folder: SeenFolder) -> bool:
    return not any("\udc80" <= char <= "\udcff" for name in (path, *folder.stamps, *folder.folders) for char in name)


def workspace_name(workspace: str) -> str:
    """A folder for each workspace, whose name people can still read."""
    mark = blake2b(os.fsencode(workspace), digest_size=6).hexdigest()
    readable = "".join(char if char.isascii() and char.isalnum() else "-" for char in os.path.basename(workspace))
    return f"{readable[:40]}-{mark}"


def identity(path: Path) -> tuple[int, int]:
    facts = os.stat(path)
    return facts.st_dev, facts.st_ino
