"""Mount points for what must not be created in a workspace, and moving away what cannot be prevented.

A mount needs something to be mounted on. Where a protected file is missing, an empty folder, a file that changes
nothing for whoever reads it, or a socket that nobody listens at is made while the sandbox lasts. Everybody can see it,
and the last sandbox that needs it removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

from toolyard.files.plain_text import data_at
from toolyard.files.steps import open_itself, step_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


MountPoint = tuple[str, bytes | None]
"""A path, and the content of a file; None for a folder."""
SOCKET = b"\0socket"
"""In the place of a content: a socket, which git does not see either, and over which a file can be mounted."""
REPOSITORY = b"\0repository"
"""In the place of a content: a git folder without anything, at which git stops."""
EMPTY_HEAD = b"ref:  refs/heads/main  \n"
"""Of such a folder; git reads it as any other, and never writes it so."""
LONGEST_KEPT = 48
"""Characters of a name that stay in that of what is moved aside, whatever they take on the disk."""
MOST_KEPT = 100
LOCK_TRIES, LOCK_PAUSE = 20, 0.002
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""How the kernel refuses who may not write a folder, and so everybody inside."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class MountPoints:
    """Made at once, and removed when no sandbox needs them any more."""

    def __init__(self, wanted: Sequence[MountPoint], also_left: Sequence[MountPoint] = ()) -> None:
        """`also_left` is what may be there at the end beside what is made now."""
        # Locked first: another sandbox that ends just now would otherwise remove what we have seen to be there.
        folders = sorted({os.path.dirname(path) for path, _ in wanted})
        there = [folder for folder in folders if os.path.isdir(folder)]
        self._locks = locks_on(there)
        failed = {path: error for path, content in wanted if (error := make(path, content))}
        self.made = [(path, content) for path, content in wanted if path not in failed]
        """Those that are there now."""
        self.without_room = [path for path, error in failed.items() if error.errno in NO_ROOM]
        """Whoever makes room inside can make these."""
        self.unguarded = [path for path in failed if path not in self.without_room and not is_closed(path)]
        """Those that somebody inside may be able to make, though we are not."""
        self._locks += locks_on(folder for folder in folders if folder not in there)
        self.to_remove = [*self.made, *also_left]

    def remove(self) -> None:
        """Remove what is still as it was and what no other sandbox needs."""
        for fd in self._locks:
            os.close(fd)
        self._locks.clear()
        remove_unused(self.to_remove)


def remove_unused(mount_points: Iterable[MountPoint]) -> None:
    """Remove mount points in folders that no sandbox has locked; those last that hold others."""
    for path, content in reversed(list(mount_points)):
        above, name = os.path.split(path)
        with contextlib.suppress(OSError):
            fd = open_to_lock(above)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_unchanged(name, fd, content)
            finally:
                os.close(fd)


def make(path: str, content: bytes | None) -> OSError | None:
    """Make a mount point unless it is there; tell why there is none, if so."""
    name = os.path.basename(path)
    try:
        with folder_itself(os.path.dirname(path)) as folder, writable(folder):
            if content is None:
                os.mkdir(name, dir_fd=folder)
            elif content == REPOSITORY:
                make_empty_repository(name, folder)
            elif content == SOCKET:
                os.mknod(name, stat.S_IFSOCK | 0o600, dir_fd=folder)
            else:
                make_file(name, folder, content)
    except FileExistsError:
        return None
    except OSError as error:
        return error
    return None


def make_file(name: str, folder: int, content: bytes) -> None:
    """A new file in an open folder; none where there is no room for all of it."""
    fd = os.open(name, NEW_FILE, 0o644, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            file.write(content)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise


def is_closed(path: str) -> bool:
    """Whether nobody inside can make something at a path: the folder where it would be is closed to us, too."""
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    try:
        with folder_itself(above) as folder, writable(folder):
            return not os.access(f"/proc/self/fd/{folder}", os.W_OK | os.X_OK)
    except OSError as error:
        return error.errno in CLOSED


def locks_on(folders: Iterable[str]) -> list[int]:
    return [fd for folder in folders if (fd := lock_shared(folder)) is not None]


def open_to_lock(folder: str) -> int:
    """A folder itself, by a handle that can be locked."""
    with folder_itself(folder) as opened:
        return os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=opened)


def lock_shared(folder: str) -> int | None:
    """Lock a folder against the removal of mount points, as long as the descriptor is open."""
    try:
        fd = open_to_lock(folder)
    except OSError:
        return None
    # Whoever removes something has the folder locked for a moment; one that never lets go must not stop us.
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            time.sleep(LOCK_PAUSE)
        else:
            break
    return fd


def remove_unchanged(name: str, folder: int, content: bytes | None) -> None:
    """Remove a mount point in an open folder, if it is still as it was made."""
    if content is None:
        os.rmdir(name, dir_fd=folder)
    elif content == SOCKET:
        if is_socket(name, folder):
            os.unlink(name, dir_fd=folder)
    elif content == REPOSITORY:
        remove_empty_repository(name, folder)
    elif is_file(name, folder) and data_at(name, folder, len(content) + 1) == content:
        os.unlink(name, dir_fd=folder)


def make_empty_repository(name: str, folder: int) -> None:
    """Make a git folder without anything in an open folder, or what is missing of one."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    git = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        for below in ("objects", "refs"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(below, dir_fd=git)
        with contextlib.suppress(FileExistsError):
            make_file("HEAD", git, EMPTY_HEAD)
    except OSError:
        remove_unfinished(name, git, folder)
        raise
    finally:
        os.close(git)


def remove_unfinished(name: str, git: int, folder: int) -> None:
    """Remove what is there of such a folder for all of which there was no room; nothing that holds something."""
    with contextlib.suppress(OSError):
        for below in os.listdir(git):
            os.rmdir(below, dir_fd=git)
        os.rmdir(name, dir_fd=folder)


def is_empty_repository(path: str) -> bool:
    """Whether a git folder is one that was made so, and nobody has used."""
    try:
        with folder_itself(path) as git:
            return is_unused(git)
    except OSError:
        return False


def is_unused(git: int) -> bool:
    """The same of an open folder; OSError where something in it is neither a folder nor what it is known by."""
    below = [name for name in listing_at(git) if name != "HEAD"]
    return data_at("HEAD", git, len(EMPTY_HEAD) + 1) == EMPTY_HEAD and not any(has_entries(name, git) for name in below)


def has_entries(name: str, folder: int) -> bool:
    with folder_in(name, folder) as opened:
        return bool(listing_at(opened))


def remove_empty_repository(name: str, folder: int) -> None:
    """Remove it, if it is one; a folder that somebody uses by now stays, and the rest with it."""
    with folder_in(name, folder) as git:
        if not is_unused(git):
            return
        for below in ("refs", "objects"):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(below, dir_fd=git)
        os.unlink("HEAD", dir_fd=git)
    os.rmdir(name, dir_fd=folder)


def is_socket(path: str, folder: int | None = None) -> bool:
    """Of a path, or of a name in an open folder."""
    try:
        return stat.S_ISSOCK(os.lstat(path, dir_fd=folder).st_mode)
    except OSError:
        return False


def is_file(name: str, folder: int) -> bool:
    return stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode)


def move_unwanted(paths: Iterable[str]) -> dict[str, str]:
    """Move away what should not have been created; tells where each went."""
    moved = {}
    for path in paths:
        if is_nothing(path):
            continue
        with contextlib.suppress(OSError), folder_itself(os.path.dirname(path)) as folder, writable(folder):
            moved[path] = os.path.join(os.path.dirname(path), move_aside(os.path.basename(path), folder))
    return moved


def is_nothing(path: str) -> bool:
    """Whether there certainly is nothing; who may not look cannot tell."""
    try:
        os.lstat(path)
    except PermissionError:
        return False
    except OSError:
        return True
    return False


def move_aside(name: str, folder: int) -> str:
    """Give something in an open folder another name, which is told."""
    place = free_name(f"{name[:LONGEST_KEPT]}.from-sandbox", folder)
    os.rename(name, place, src_dir_fd=folder, dst_dir_fd=folder)
    return place


@contextlib.contextmanager
def writable(folder: int) -> Iterator[None]:
    """While this lasts we may write to an open folder of ours, although somebody inside changed its mode."""
    itself = f"/proc/self/fd/{folder}"
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    is_closed = mode & stat.S_IRWXU != stat.S_IRWXU and os.fstat(folder).st_uid == os.geteuid()
    if is_closed:
        os.chmod(itself, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        if is_closed:
            os.chmod(itself, mode)


@contextlib.contextmanager
def folder_itself(path: str) -> Iterator[int]:
    """A folder opened without following links: one on the way must not make us move what is elsewhere."""
    fd = open_itself(path, step_even_if_closed)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def folder_in(name: str, folder: int) -> Iterator[int]:
    """A folder in an open folder; OSError for a link."""
    fd = step_even_if_closed(name, folder)
    try:
        yield fd
    finally:
        os.close(fd)


def listing_at(folder: int) -> dict[str, bool | None]:
    """The names in an open folder, and whether each is one itself, None for a link.

    Also where somebody inside took our right to look.
    """
    itself = f"/proc/self/fd/{folder}"  # a handle that is only for going on from there cannot be listed
    try:
        with os.scandir(itself) as entries:
            return {entry.name: kind_of(entry) for entry in entries}
    except PermissionError:
        with writable(folder), os.scandir(itself) as entries:
            return {entry.name: kind_of(entry) for entry in entries}


def kind_of(entry: os.DirEntry[str]) -> bool | None:
    return None if entry.is_symlink() else entry.is_dir(follow_symlinks=False)


def step_even_if_closed(name: str, folder: int) -> int:
    """Open a folder in an open folder, even if somebody inside took our right to enter it."""
    try:
        return step_into(name, folder)
    except PermissionError:
        with writable(folder):
            return step_into(name, folder)


def free_name(wanted: str, folder: int) -> str:
    """A name that nothing has; a random one if somebody took all the usual ones."""
    usual = (wanted, *(f"{wanted}-{number}" for number in range(2, MOST_KEPT)))
    return next((name for name in usual if is_free(name, folder)), f"{wanted}-{os.urandom(8).hex()}")


def is_free(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False
