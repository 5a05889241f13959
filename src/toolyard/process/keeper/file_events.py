"""The kernel's word that guarded files are replaced, and by what steps; whoever asks learns when it cannot tell.

How many files a user may have watched is limited, and those inside count for the same user. So nobody may rely on
being told: where the kernel does not tell, whoever guards looks by itself, in short intervals.
"""

from __future__ import annotations

import os
import struct

from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on

MOVED_FROM, MOVED_TO, DELETED = 0x40, 0x80, 0x200
GONE, CHANGED = 0x400 | 0x800, 0x4 | 0x8
"""Flags of inotify: it was deleted or moved; its links changed, or somebody has written it. The latter of a folder
would tell of all files in it."""
EMPTIED = GONE | MOVED_FROM | DELETED
"""Of a folder that is guarded: it tells nothing of its end as long as we hold it, but before that it is emptied."""
STEPS = MOVED_FROM | MOVED_TO | DELETED
OVERFLOWN = 0x4000
NOT_FOLLOWING, BESIDE_OTHERS = 0x02000000, 0x20000000
EVENT = struct.Struct("iIII")
AT_ONCE, MOST_READS = 1 << 16, 64
"""More than the kernel keeps for us. Whoever makes more happen while we read is not to keep us here."""


class FileEvents:
    """Two channels of the kernel's: one wakes us, and one tells afterwards what became of names.

    In the folders around guarded files much happens, of which nobody shall be woken.
    """

    def __init__(self) -> None:
        self._kernel, self._calls = Kernel(), numbers_on(os.uname().machine)
        self.fd = self._open()
        """Becomes readable when something may have been replaced; below 0 where the kernel cannot tell."""
        self._steps_fd = self._open()
        self._numbers: set[int] = set()
        """Of all that we are woken for."""
        self._folders: dict[int, str] = {}
        """By the kernel's number of each folder whose names we follow."""
        self._is_watched = self.fd >= 0
        self._unknown: set[str] = set()
        """The folders of whose names we are not told."""
        self._taken: dict[str, list[int]] = {}
        self.has_changes = False
        """Whether a file was written, or its links are others, since this was last set to false."""

    @property
    def is_blind(self) -> bool:
        """Whether something may be replaced that the kernel does not tell of."""
        return not self._is_watched

    def follow(self, path: str, flags: int) -> None:
        """Be woken when something happens to what is at a path."""
        number = self._add(self.fd, path, flags | NOT_FOLLOWING)
        if number < 0:
            self._is_watched = False
        else:
            self._numbers.add(number)

    def follow_name(self, path: str) -> None:
        """Know of all that happens to a name in its folder from now on."""
        folder = os.path.dirname(path)
        self._taken[path] = []
        number = self._add(self._steps_fd, folder, STEPS | BESIDE_OTHERS)
        if number < 0:
            self._unknown.add(folder)
        else:
            self._folders[number] = folder
            self._unknown.discard(folder)

    def hear(self) -> None:
        """Take note of what was told."""
        for _, mask, _ in self._read(self.fd):
            self.has_changes |= bool(mask & CHANGED)
            self._is_watched = self._is_watched and not mask & OVERFLOWN
        for number, mask, name in self._read(self._steps_fd):
            if mask & OVERFLOWN:
                self._unknown.update(self._folders.values())
            elif (folder := self._folders.get(number)) is not None and name:
                self._note(os.path.join(folder, os.fsdecode(name)), mask)

    def was_saved(self, path: str) -> bool:
        """Whether what is there came in one step, by rename, which nobody inside could do as long as it was guarded.

        Whatever else happened, for a moment there was nothing, or something that was not guarded, and anybody may
        have put there what is there now.
        """
        return os.path.dirname(path) not in self._unknown and self._taken.get(path) == [MOVED_TO]

    def forget(self) -> None:
        """Ask the kernel anew from here on: all that is guarded will be followed again."""
        for fd in (self.fd, self._steps_fd):
            if fd >= 0:
                os.close(fd)
        self.fd, self._steps_fd = self._open(), self._open()
        self._is_watched = self.fd >= 0
        self._numbers.clear()
        self._folders.clear()
        self._unknown.clear()
        self._taken.clear()

    def let_go(self) -> None:
        """Be told of nothing any more, just before our end.

        The kernel waits until nobody uses what it followed: once for all that was let go of, and otherwise once for
        each channel, which takes many milliseconds.
        """
        for fd, numbers in ((self.fd, self._numbers), (self._steps_fd, self._folders)):
            for number in numbers:
                self._kernel.call(self._calls["inotify_rm_watch"], fd, number)

    def _note(self, path: str, mask: int) -> None:
        if path in self._taken:
            self._taken[path].append(mask & STEPS)

    def _open(self) -> int:
        return self._kernel.call(self._calls["inotify_init1"], os.O_NONBLOCK | os.O_CLOEXEC)

    def _add(self, fd: int, path: str, flags: int) -> int:
        return self._kernel.call(self._calls["inotify_add_watch"], fd, os.fsencode(path) + b"\0", flags)

    def _read(self, fd: int) -> list[tuple[int, int, bytes]]:
        """All that a channel tells until now: of what, what, and the name in it."""
        found: list[tuple[int, int, bytes]] = []
        for _ in range(MOST_READS if fd >= 0 else 0):
            try:
                told = os.read(fd, AT_ONCE)
            except BlockingIOError:
                return found
            start = 0
            while start < len(told):
                number, mask, _, length = EVENT.unpack_from(told, start)
                start += EVENT.size
                found.append((number, mask, told[start : start + length].rstrip(b"\0")))
                start += length
        return [*found, (-1, OVERFLOWN, b"")] if fd >= 0 else found
