"""The locks of git's configurations: git outside must not replace a configuration while something can run inside.

Git writes `config.lock` and moves it into the place of `config`. Somebody inside could write to the first, and the move
takes the guard off the second. So the lock is held by a file of ours, which is a mount point inside. When nothing runs
inside it is moved out of the way under another name, and moved back before something runs; the mount goes with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time

from toolyard.files.user_folders import user_folder
from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on
from toolyard.process.sandbox.draft import HELD
from toolyard.process.sandbox.watch import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.files.write_times import Identity
    from toolyard.process.sandbox.mount_points import MountPoint


AT_FDCWD, RENAME_NOREPLACE = -100, 1
TRIES, PAUSE = 50, 0.002
"""How often to look again whether git outside has let go of its lock, which takes it a moment."""


class ConfigLocks:
    """Locks that several applications hold together; whoever lets go last moves them out of the way."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Held from the beginning, so that they can be made and mounted."""
        self._claims = {path: open_claim(path) for path in paths}
        self._which: dict[str, Identity | None] = {}
        self._move = NewName()
        for path, claim in self._claims.items():
            fcntl.flock(claim, fcntl.LOCK_SH)
            self._move(away(path), path)
        self._is_held = True
        self.are_lost = False
        """Whether one of them is not the file any more that is mounted inside."""

    def note_made(self) -> None:
        """They are there now, and will be mounted."""
        self._which = {path: identity_of(path) for path in self._claims}

    def left(self) -> list[MountPoint]:
        """What may have to be removed at the end beside the locks themselves."""
        return [(away(path), HELD) for path in self._claims]

    def hold(self) -> bool:
        """Nobody outside can change a configuration from here on; whether somebody could before."""
        if self._is_held:
            return False
        self._is_held = True
        for path, claim in self._claims.items():
            fcntl.flock(claim, fcntl.LOCK_SH)
            if identity_of(path) != self._which[path] and not (self._is_away(path) and self._move_patiently(path)):
                self.are_lost = True
        return True

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Held for a moment, in which we change a configuration ourselves."""
        is_ours_alone = self.hold()
        try:
            yield
        finally:
            if is_ours_alone:
                self.release()

    def release(self) -> None:
        """Nothing runs inside: its owner may change it, unless it is held by another."""
        if not self._is_held or not self._which:
            return
        self._is_held = False
        for path, claim in self._claims.items():
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if identity_of(path) == self._which[path]:
                    os.rename(path, away(path))
            except OSError:
                continue  # another sandbox needs it
            finally:
                fcntl.flock(claim, fcntl.LOCK_UN)

    def close(self) -> None:
        for claim in self._claims.values():
            os.close(claim)
        self._claims.clear()

    def _move_patiently(self, path: str) -> bool:
        """Move a lock back into its place; git outside may have one of its own there for a moment."""
        for _ in range(TRIES):
            if self._move(away(path), path):
                return True
            time.sleep(PAUSE)
        return False

    def _is_away(self, path: str) -> bool:
        return identity_of(away(path)) == self._which[path] is not None


def away(path: str) -> str:
    """The name of a lock while nobody holds it."""
    return f"{path}.free"


def open_claim(path: str) -> int:
    """The file by whose lock applications agree who holds it; nobody inside can open that."""
    folder = user_folder("state") / "written" / "locks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class NewName:
    """Gives a file a name that nothing has, as one step; tells whether it has it now."""

    def __init__(self) -> None:
        self._kernel = Kernel()
        self._number = numbers_on(os.uname().machine)["renameat2"]

    def __call__(self, source: str, target: str) -> bool:
        names = (os.fsencode(source) + b"\0", os.fsencode(target) + b"\0")
        return self._kernel.call(self._number, AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_NOREPLACE) == 0
