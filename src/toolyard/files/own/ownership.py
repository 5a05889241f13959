"""Folders of the application's own that lie where tools work: which of them we made, or a person let us use.

What is in such a folder is obeyed later, and the sandbox guards it; so one that a tool made must not pass for ours. A
folder is known again by its birth, which nobody can set, and where that is not told by its number.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.atomic import replace_file
from toolyard.files.door import Door, FileRefused, way_in
from toolyard.files.inside import is_inside
from toolyard.files.own.entering import enter, entered
from toolyard.files.own.unversioned import make_unversioned
from toolyard.files.user_folders import user_folder
from toolyard.files.write_times import birth_of, has_record, may_be_from_tools, spans_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LARGEST = 16 << 20
TRIES = 3
"""How often the birth of a folder is asked for while others make files in it."""
LOOK = "look at what made it, and remove it or move the folder away"


class OwnFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is ours."""

    path: str
    born: float
    inode: int
    at: str
    """When that was noted."""
    accepted: bool = False
    """Whether a person said so, who did not need to for what we made ourselves."""

    def is_still(self, folder: int) -> bool:
        """Whether it is the folder that was entered."""
        if self.born:
            return self.born == birth(folder)
        return self.inode == os.fstat(folder).st_ino


class FolderRefused(FileRefused):
    """A folder that we would write to, and do not use."""

    @property
    def hint(self) -> str:
        return super().hint if self.errno == errno.EACCES else LOOK


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What such a folder has of ours; others may have files there, too."""

    folders: tuple[str, ...]
    files: tuple[str, ...]


def real_place(path: str) -> str:
    """Where a folder is or will be, by no link but its owner's; FileRefused where a tool may have made one."""
    whole = os.path.abspath(path)
    door = Door.to([*Door.here().writable, *where_tools_worked(whole)])
    door.check_folder(whole)
    found = way_in(whole, door.writable)
    return os.path.join(found[0], *found[1]) if found else os.path.realpath(whole)


def where_tools_worked(whole: str) -> list[str]:
    """The folders on the way to a path, and itself, where tools ever worked; none where a link there is its owner's."""
    places = [*(whole[:end] for end in range(1, len(whole)) if whole[end] == os.sep), whole]
    links = [place for place in places if os.path.islink(place)]
    if any(not may_be_from_tools(link, os.lstat(link)) for link in links):
        return []
    return [place for place in places if has_record(place)]


def use(path: Path, parts: Parts, writable: Iterable[str] = ()) -> None:
    """Make a folder, or see that one that is there is ours and has nothing in our places that is not.

    `writable` are folders in which tools are going to work. FileRefused when it is not to be used.
    """
    place = str(path)
    is_new = make_unversioned(path)
    try:
        folder = enter(path)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise FolderRefused(errno.ELOOP, error.strerror or str(error), place) from None
    try:
        found = parts_in(folder, parts, place)
        if is_exposed(place, writable) and not is_known(place, folder):
            if not is_new and found and may_be_tools_own(place, folder, found):
                reason = "it was made, or changed, while tools could write it, so it is not taken for ours"
                raise FolderRefused(errno.EACCES, reason, place)
            with contextlib.suppress(OSError):  # then it is judged anew the next time
                remember(place)
    finally:
        os.close(folder)


def parts_in(folder: int, parts: Parts, place: str) -> list[str]:
    """What there is of ours; FolderRefused for a link, a pipe and the like, and for what is somebody else's.

    A file in the place of a folder, or a folder in that of a file, leads nowhere; whoever needs it tells of it.
    """
    found = []
    owners = {os.geteuid(), 0, os.stat(os.path.dirname(place)).st_uid}
    check_owner(os.fstat(folder), owners, "it", place)
    for name in (*parts.folders, *parts.files):
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if S_ISLNK(facts.st_mode):
            raise FolderRefused(errno.ELOOP, f"'{name}' in it is a link, of which none is followed there", place)
        if not S_ISDIR(facts.st_mode) and not S_ISREG(facts.st_mode):
            raise FolderRefused(errno.EINVAL, f"'{name}' in it is neither a file nor a folder", place)
        check_owner(facts, owners, f"'{name}' in it", place)
        found.append(name)
    return found


def check_owner(facts: os.stat_result, owners: Iterable[int], which: str, place: str) -> None:
    """Ours, root's, or that of the folder around it, as on disks where all is somebody's."""
    if facts.st_uid not in owners:
        raise FolderRefused(errno.EPERM, f"{which} belongs to somebody else (user {facts.st_uid})", place)


def is_exposed(place: str, writable: Iterable[str]) -> bool:
    """Whether tools can write where a folder is, or could; never in our own state folder."""
    if is_inside(place, os.path.realpath(user_folder("state"))):
        return False
    return Door.to([*Door.here().writable, *writable]).is_writable(place) or bool(spans_above(place))


def may_be_tools_own(place: str, folder: int, found: Sequence[str]) -> bool:
    """Whether tools may have made a folder, or what is in it of ours."""
    facts = {os.path.join(place, name): os.stat(name, dir_fd=folder, follow_symlinks=False) for name in found}
    return any(may_be_from_tools(path, one) for path, one in {place: os.fstat(folder), **facts}.items())


def is_known(place: str, folder: int) -> bool:
    """Whether the folder that was entered is ours."""
    return any(one.path == place and one.is_still(folder) for one in own_folders())


def known_below(tops: Iterable[str]) -> list[str]:
    """Those of ours in some folders, all links followed, that are still there."""
    real = [os.path.realpath(top) for top in tops]
    return [one.path for one in own_folders() if any(is_inside(one.path, top) for top in real) and is_still_there(one)]


def is_still_there(one: OwnFolder) -> bool:
    try:
        with entered(one.path) as folder:
            return one.is_still(folder)
    except OSError:
        return False


def own_folders() -> list[OwnFolder]:
    """All of them; none where that cannot be read, or others may write it."""
    try:
        content = Door().read(own_folders_file(), largest=LARGEST)
        ours = content.facts.st_uid == os.geteuid() and not content.facts.st_mode & 0o022
        return decode_json(content.data, list[OwnFolder]) if ours else []
    except (OSError, ValueError):
        return []


def remember(place: str, *, accepted: bool = False) -> OwnFolder:
    """Keep a folder as ours; OSError when that cannot be done."""
    from datetime import UTC, datetime

    with entered(place) as folder:
        born, inode = birth(folder), os.fstat(folder).st_ino
    at = datetime.now(UTC).isoformat(timespec="seconds")
    added = OwnFolder(path=place, born=born, inode=inode, at=at, accepted=accepted)
    with changing() as kept:
        kept[:] = [one for one in kept if one.path != place and os.path.isdir(one.path)] + [added]
    return added


def forget(place: str) -> list[OwnFolder]:
    """Take it back; tells what was."""
    with changing() as kept:
        gone = [one for one in kept if one.path == place]
        kept[:] = [one for one in kept if one not in gone]
    return gone


def birth(folder: int) -> float:
    """When a folder came to be; 0.0 where the file system does not tell."""
    for _ in range(TRIES):
        facts = os.fstat(folder)
        if (born := birth_of(folder, facts)) or os.fstat(folder).st_ctime_ns == facts.st_ctime_ns:
            return born
    return 0.0


@contextlib.contextmanager
def changing() -> Iterator[list[OwnFolder]]:
    """Read, change and write the record as one step, whoever else does so."""
    file = own_folders_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = own_folders()
        yield kept
        text = json.dumps(msgspec.to_builtins(kept))  # in ASCII, whatever names of files hold
        replace_file(file, f"{text}\n".encode(), durable=True)
    finally:
        os.close(lock)


def own_folders_file() -> Path:
    return user_folder("state") / "own-folders.json"
