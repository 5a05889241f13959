"""Putting the guard back on a file that its owner replaces while something runs inside.

A mount guards the file that was there when it was made, and is gone as soon as that file is replaced by rename, as
editors do. The guard process hears of it from the kernel, stops everything inside, sees to it that nothing stays that
somebody inside may have written meanwhile, mounts the new file again and lets all go on. Where what is inside cannot
be stopped it is ended. This module imports next to nothing until it happens.
"""

from __future__ import annotations

import os
import stat
import time

from toolyard.process.keeper.groups import read, with_belonging, write
from toolyard.process.process_tree import children_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolyard.process.sandbox.backends.kernel import Kernel

GONE, CHANGED = 0x400 | 0x800, 0x4 | 0x8
"""Flags of inotify: it was deleted or moved; its links changed, or somebody has written it. The latter of a folder
would tell of all files in it."""
NOT_FOLLOWING = 0x02000000
MOST_READ = 1 << 20
MOST_TRIES = 20
FROZEN_WITHIN, SETTLED_WITHIN, LOOK_EVERY = 0.5, 1.0, 0.0002
SURELY_LATER = 0.005
"""Longer than the kernel takes for a rename, in seconds."""
OWNING_USERS = 0xB701
"""The request for the user namespace that a namespace belongs to."""
MS_RDONLY, MS_REMOUNT, MS_BIND, KEPT_FLAGS = 1, 32, 4096, 0xF
SAFELY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
SEPARATOR = b"\0"


class FileGuards:
    """The files that are guarded, each held open as it was, and the kernel's word when one is replaced."""

    def __init__(self, listed: str, groups: list[str], started: int) -> None:
        """`listed` is the file that names them; what is replaced is told in one beside it."""
        self._told = told_beside(listed)
        self._groups = groups
        self._started = started
        self._kernel: Kernel | None = None
        self._held: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}
        """What each held when it was surely guarded: in the moment of a rename even the file before can be written."""
        self.events = -1
        """Becomes readable when something may have been replaced; -1 where there is nothing to watch."""
        if paths := paths_in(listed):
            self._watch(paths)

    def restore(self, end_all: Callable[[], None]) -> None:
        """After an event: stop all that is inside, put back what was replaced, and let it go on; or end it."""
        self._forget_events()
        if not (replaced := self._replaced()):
            self._remember()
            return
        seen = {path: content(path) for path in replaced}  # at once: perhaps nobody has touched it yet
        frozen = freeze(self._groups)
        if not frozen:
            end_all()
        try:
            moved = {path: self._put_back(path, seen[path]) for path in replaced}
            self._guard_again(moved, is_frozen=bool(frozen))
        except OSError:
            end_all()
        finally:
            thaw(frozen)

    def _replaced(self) -> list[str]:
        return [path for path, held in self._held.items() if identity(path) != identity(held)]

    def _remember(self) -> None:
        """Read again what their owner wrote into files without replacing them."""
        now = {path: content(held) or b"" for path, held in self._held.items()}
        time.sleep(SURELY_LATER)
        replaced = self._replaced()
        self._contents |= {path: data for path, data in now.items() if path not in replaced}

    def _guard_again(self, moved: dict[str, str], *, is_frozen: bool) -> None:
        """Mount what is there now, again if its owner replaces it just then, and tell what was done."""
        for _ in range(MOST_TRIES):
            self._forget_events()
            again = [*moved, *(path for path in self._replaced() if path not in moved)]
            self._hold(again)
            if is_frozen:
                self._mount(again)
            if not self._replaced():
                self._tell({path: moved.get(path, "") for path in again})
                return
        raise OSError("it is replaced faster than it can be mounted")

    def _forget_events(self) -> None:
        try:
            while os.read(self.events, 1 << 16):
                pass
        except BlockingIOError:
            return

    def get_ready(self) -> None:
        """Import what will be needed, when there is time for it."""
        if self.events >= 0:
            import fcntl  # noqa: F401

            import toolyard.process.sandbox.replaced_files  # noqa: F401

    def _watch(self, paths: list[str]) -> None:
        from toolyard.process.sandbox.backends.kernel import Kernel
        from toolyard.process.sandbox.backends.system_calls import numbers_on

        self._kernel, self._calls = Kernel(), numbers_on(os.uname().machine)
        self.events = self._kernel.call(self._calls["inotify_init1"], os.O_NONBLOCK | os.O_CLOEXEC)
        if self.events >= 0:
            self._hold(paths)

    def _hold(self, paths: Iterable[str]) -> None:
        """Keep hold of each file as it is now, and hear when it is replaced."""
        for path in paths:
            if (before := self._held.pop(path, None)) is not None:
                os.close(before)
            try:
                self._held[path] = os.open(path, SAFELY)
            except OSError:
                continue
            self._contents[path] = content(self._held[path]) or b""
            if self._kernel:
                is_folder = stat.S_ISDIR(os.fstat(self._held[path]).st_mode)
                flags = NOT_FOLLOWING | GONE | (0 if is_folder else CHANGED)
                self._kernel.call(self._calls["inotify_add_watch"], self.events, os.fsencode(path) + b"\0", flags)

    def _put_back(self, path: str, seen: bytes | None) -> str:
        """Make what is there its owner's, in a new file that nobody inside has open; tells where the rest went.

        First of all comes what was there before: to look at what was found takes longer than git may need to obey it.
        """
        from toolyard.process.sandbox.replaced_files import keep_wanted, swap

        held, before = self._held[path], self._contents[path]
        if stat.S_ISDIR(os.fstat(held).st_mode):
            raise IsADirectoryError(path)
        if identity(path) is None:
            settle(path)
        found_at = swap(path, before, like=held)
        if found_at is None:
            return ""
        settle(found_at)
        settle(path)
        return keep_wanted(path, found_at, content(found_at), before=before, seen=seen, like=held)

    def _mount(self, paths: Iterable[str]) -> None:
        """Guard them again for all who are inside; OSError where that cannot be done."""
        if (child := os.fork()) == 0:
            try:
                self._mount_inside(paths)
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise OSError("nothing can be mounted inside")

    def _mount_inside(self, paths: Iterable[str]) -> None:
        import fcntl

        mounts = os.open(f"/proc/{innermost(self._started)}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        for namespace in (fcntl.ioctl(mounts, OWNING_USERS), mounts):
            self._call("setns", namespace, 0)
        for place in paths:
            name = os.fsencode(place) + b"\0"
            self._call("mount", name, name, None, MS_BIND, None)
            kept = os.statvfs(place).f_flag & KEPT_FLAGS
            self._call("mount", None, name, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, None)

    def _call(self, name: str, *words: int | bytes | None) -> None:
        if self._kernel is None or self._kernel.call(self._calls[name], *words) < 0:
            raise OSError(f"{name} is refused")

    def _tell(self, moved: dict[str, str]) -> None:
        """Write down which file is where now, and where what was put aside went."""
        told = b""
        for path, to in moved.items():
            facts = os.lstat(path)
            fields = (path, to, str(facts.st_dev), str(facts.st_ino))
            told += b"".join(os.fsencode(field) + SEPARATOR for field in fields)
        fd = os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, told)
        finally:
            os.close(fd)


def told_beside(listed: str) -> str:
    """Where it is told what was replaced."""
    return f"{listed}.replaced"


def paths_in(listed: str) -> list[str]:
    """The paths that a file names; none when there is no such file."""
    return [os.fsdecode(path) for path in (content(listed) or b"").split(SEPARATOR)[:-1]]


def innermost(pid: int) -> int:
    """The last of a chain of processes that each have started one: the guard, bubblewrap, the keeper."""
    while found := children_of(pid):
        pid = found[0]
    return pid


def content(file: str | int) -> bytes | None:
    """What a regular file holds, by its path or its descriptor; None when it is none, or is too long."""
    try:
        fd = os.open(file, SAFELY) if isinstance(file, str) else os.dup(file)
    except OSError:
        return None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_READ:
            return None
        return os.pread(fd, MOST_READ, 0)
    finally:
        os.close(fd)


def identity(file: str | int) -> tuple[int, int] | None:
    """Which file is at a path, or behind a descriptor."""
    try:
        facts = os.lstat(file) if isinstance(file, str) else os.fstat(file)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def settle(path: str) -> None:
    """Wait until an editor that makes the file anew has done so; not for longer than a moment."""
    import fcntl

    give_up_at = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < give_up_at:
        try:
            fd = os.open(path, SAFELY)
        except OSError:
            time.sleep(LOOK_EVERY)
            continue
        try:
            # The kernel gives a lease for reading only on what nobody has open for writing.
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            time.sleep(LOOK_EVERY)
        else:
            return
        finally:
            os.close(fd)


def freeze(groups: Iterable[str]) -> list[str]:
    """Stop all processes of some groups; the folders that did, none when they cannot be stopped."""
    folders = [folder for folder in with_belonging(groups) if write(folder, "cgroup.freeze", "1")]
    give_up_at = time.monotonic() + FROZEN_WITHIN
    while not all("frozen 1" in read(folder, "cgroup.events") for folder in folders):
        if time.monotonic() > give_up_at:
            thaw(folders)
            return []
        time.sleep(LOOK_EVERY)
    return folders


def thaw(folders: Iterable[str]) -> None:
    for folder in folders:
        write(folder, "cgroup.freeze", "0")
