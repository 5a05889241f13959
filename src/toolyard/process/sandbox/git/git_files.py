"""The small files of a git folder, read and replaced one by one as git does it: under a lock, and by rename.

One of the two folders that are compared is written inside, so nothing in it is believed: no link is followed, only
regular files of a bounded size count, and their number is bounded.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time

from toolyard.core.regexes import late_pattern
from toolyard.files.steps import open_folder, open_itself, step_into, walk_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


ENTERED = late_pattern(
    r"(?:worktrees|(?:worktrees/[^/]+/?)?(?:(?:refs|logs)(?:/.*)?|info|rebase-merge|rebase-apply|sequencer)?)"
)
"""The folders whose files travel."""
MOST_FILES, DEEPEST, LONGEST, MOST_BYTES = 20_000, 24, 1 << 28, 1 << 29
JUST_NOW = 100_000_000
"""Nanoseconds within which another change may have the same time as the one that was seen."""
LOCK_PAUSE = 0.01
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PACKED = "packed-refs"

Stamp = tuple[int, int, int]


class TooManyFiles(OSError):
    """A folder holds more than anybody would compare."""


class IsLocked(OSError):
    """Somebody else changes the same file, or left a lock."""


class WasChanged(OSError):
    """A file is not what it was taken for any more."""


class GitFiles:
    """One git folder; what was read is remembered until it changes."""

    def __init__(self, root: str, is_wanted: Callable[[str], bool] = bool) -> None:
        """`is_wanted` tells by its path in the folder whether a file is read with all the others."""
        self.root = root
        self._is_wanted = is_wanted
        self._read: dict[str, tuple[Stamp, bytes]] = {}
        self._folders: dict[str, int] = {}
        self._watched: list[tuple[str, int]] = []
        self._is_unsure = True

    def has_changed(self) -> bool:
        """Whether something was made, replaced or removed since `contents` was last asked for.

        That is asked often, so it must be quick. Logs are not looked at: they change with what they are about.
        """
        try:
            return self._is_unsure or any(os.lstat(path).st_ctime_ns != time for path, time in self._watched)
        except OSError:
            return True

    def folders(self) -> list[str]:
        """Where something happens when `has_changed`: the folders that were seen, or the last one above."""
        if self._watched:
            return [path for path, _ in self._watched]
        return [self.root if os.path.isdir(self.root) else os.path.dirname(self.root)]

    def contents(self) -> dict[str, bytes]:
        """What each file that may travel holds, by its path in the folder."""
        found: dict[str, bytes] = {}
        self._folders, length, now = {}, 0, time.time_ns()
        with contextlib.ExitStack() as opened:
            try:
                top = opened.enter_context(self._folder(""))
            except (FileNotFoundError, NotADirectoryError):
                self._is_unsure = True
                return {}
            for name, facts, folder in self._walk(top, "", 0):
                length += facts.st_size
                if len(found) == MOST_FILES or length > MOST_BYTES:
                    raise TooManyFiles("there is more in the git folder than can be compared")
                if (data := self._content(name, facts, folder)) is not None:
                    found[name] = data
        self._read = {name: seen for name, seen in self._read.items() if name in found}
        self._watched = [
            (os.path.join(self.root, path), changed)
            for path, changed in self._folders.items()
            if not path.startswith(("logs", "info"))
        ]
        self._is_unsure = not self._folders or now - max(self._folders.values()) < JUST_NOW
        return found

    def has_folder(self, name: str) -> bool:
        """Whether `contents` has seen a folder."""
        return name in self._folders

    def content(self, name: str) -> bytes | None:
        """What one file holds now; None where there is none."""
        above, _, last = name.rpartition("/")
        try:
            with self._folder(above) as folder:
                return read_at(folder, last)
        except OSError:
            return None

    def fill(self, contents: Mapping[str, bytes]) -> None:
        """Write files into a folder that was just made, and that nobody else has seen yet."""
        for above in {name.rpartition("/")[0] for name in contents}:
            os.makedirs(os.path.join(self.root, above), exist_ok=True)
        for name, data in contents.items():
            fd = os.open(os.path.join(self.root, name), NEW, 0o666)
            write_all(fd, data)
            self._read[name] = stamp_of(os.fstat(fd)), data
            os.close(fd)
        self.contents()
        self._is_unsure = False

    def make_root(self) -> None:
        """Make the folder itself, and those that lead to it."""
        os.close(open_folder("/", filter(None, self.root.split("/")), pass_or_make))

    def make_folder(self, name: str) -> None:
        """Make a folder in it, unless it is there."""
        with self._folder(name, make=True):
            pass

    def add(self, name: str, data: bytes) -> None:
        """Write a file that is not there yet."""
        above, _, last = name.rpartition("/")
        with self._folder(above, make=True) as folder:
            write_at(folder, last, data)

    @contextlib.contextmanager
    def locked(self, name: str, patience: float) -> Iterator[LockedFile]:
        """Hold the lock of a file, as git does before it changes one."""
        above, _, last = name.rpartition("/")
        with self._folder(above, make=True) as folder:
            lock = take_lock(folder, f"{last}.lock", patience)
            try:
                yield LockedFile(folder, last, lock)
            finally:
                os.close(lock)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{last}.lock", dir_fd=folder)

    def remove_empty(self, name: str, below: str) -> None:
        """Remove the folders above a file that hold nothing any more, as far as they are below another one, if any."""
        above = name.rpartition("/")[0]
        with contextlib.suppress(OSError):
            while above and (not below or above.startswith(f"{below}/")):
                outer, _, last = above.rpartition("/")
                with self._folder(outer) as folder:
                    os.rmdir(last, dir_fd=folder)
                above = outer

    def _walk(self, folder: int, path: str, depth: int) -> Iterator[tuple[str, os.stat_result, int]]:
        """The files in an open folder and below, each with the folder it is in, as long as that is open."""
        self._folders[path] = os.fstat(folder).st_ctime_ns
        for name, facts in files_at(folder):
            inner = f"{path}/{name}" if path else name
            if stat.S_ISREG(facts.st_mode) and not name.endswith(".lock") and self._is_wanted(inner):
                yield inner, facts, folder
            elif stat.S_ISDIR(facts.st_mode) and ENTERED.fullmatch(inner) and depth < DEEPEST:
                try:
                    below = os.open(name, FOLDER, dir_fd=folder)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # any other fault is one: else all that is in it would be taken for removed
                try:
                    yield from self._walk(below, inner, depth + 1)
                finally:
                    os.close(below)

    def _content(self, name: str, facts: os.stat_result, folder: int) -> bytes | None:
        stamp = stamp_of(facts)
        if (seen := self._read.get(name)) and seen[0] == stamp:
            return seen[1]
        if facts.st_size > LONGEST:
            raise TooManyFiles(f"{name} is too long")
        data = read_at(folder, name.rpartition("/")[2])
        if data is not None and time.time_ns() - facts.st_ctime_ns > JUST_NOW:
            self._read[name] = stamp, data
        return data

    @contextlib.contextmanager
    def _folder(self, path: str, *, make: bool = False) -> Iterator[int]:
        """A folder in the git folder, opened without following a link."""
        root = open_itself(self.root)
        try:
            fd = descend(root, filter(None, path.split("/")), make_and_step if make else step)
        finally:
            os.close(root)
        try:
            yield fd
        finally:
            os.close(fd)


class LockedFile:
    """A file whose lock we hold."""

    def __init__(self, folder: int, name: str, lock: int) -> None:
        self._folder, self._name, self._lock = folder, name, lock

    def content(self) -> bytes | None:
        return read_at(self._folder, self._name)

    def replace(self, data: bytes) -> None:
        """Put this in its place, with the rights and the owner that it had."""
        with contextlib.suppress(OSError):
            before = os.lstat(self._name, dir_fd=self._folder)
            os.fchmod(self._lock, stat.S_IMODE(before.st_mode) & 0o777)
            os.fchown(self._lock, before.st_uid, before.st_gid)
        write_all(self._lock, data)
        with contextlib.suppress(OSError):  # an empty folder may stand there where a branch once had others below it
            os.rmdir(self._name, dir_fd=self._folder)
        os.rename(f"{self._name}.lock", self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._folder)


def descend(top: int, names: Iterable[str], take_step: Callable[[str, int], int]) -> int:
    """The folder that names lead to from an open one."""
    return walk_from(step(".", top), names, take_step)


def take_lock(folder: int, name: str, patience: float) -> int:
    """Make a lock file; whoever else holds it is waited for as long as that."""
    give_up_at = time.monotonic() + patience
    while True:
        try:
            return os.open(name, NEW, 0o666, dir_fd=folder)
        except FileExistsError:
            if time.monotonic() >= give_up_at:
                raise IsLocked(name) from None
            time.sleep(LOCK_PAUSE)


def step(name: str, folder: int) -> int:
    return os.open(name, FOLDER, dir_fd=folder)


def pass_or_make(name: str, folder: int) -> int:
    """Step into a folder, which is made where there is none; most above can be passed, and not written."""
    try:
        return step_into(name, folder)
    except FileNotFoundError:
        return make_and_step(name, folder)


def make_and_step(name: str, folder: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return step(name, folder)


def stamp_of(facts: os.stat_result) -> Stamp:
    """Changes when a file or a folder does; the time in it nobody can set."""
    return facts.st_ino, facts.st_ctime_ns, facts.st_size


def files_at(folder: int) -> list[tuple[str, os.stat_result]]:
    """What is in an open folder now."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


def read_at(folder: int, name: str) -> bytes | None:
    """What a regular file in an open folder holds; None where there is none, or it is too long."""
    try:
        fd = os.open(name, READ, dir_fd=folder)
    except PermissionError:
        raise  # it is there
    except OSError:
        return None
    with open(fd, "rb") as file:
        facts = os.fstat(fd)
        return file.read() if stat.S_ISREG(facts.st_mode) and facts.st_size <= LONGEST else None


def write_at(folder: int, name: str, data: bytes) -> None:
    fd = os.open(name, NEW, 0o666, dir_fd=folder)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
