"""Being told by the kernel that something happened in folders, so that nobody has to look at every call.

Whoever remembers how folders were asks `is_look_due` before each look. It is due when the kernel told of something, be
it that a folder further up was moved or removed, if it cannot tell, and after a while in any case: some file systems
change from elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from typing import Protocol

from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


LOOK_ANYWAY_AFTER = 1.0
CHANGES = 0x100 | 0x200 | 0x40 | 0x80 | 0x400 | 0x800
"""Flags of inotify: something was created, deleted or moved in a folder, or the folder itself was."""
OF_ITSELF = 0x400 | 0x800
"""The last two of them alone: of folders further up, in which much happens that does not matter."""
WRITES = 0x2
"""And this: a file in it was written."""
ONLY_FOLDERS, BESIDE_OTHERS = 0x01000000, 0x20000000
FOLLOW_AT = 4
"""Which time of looking the kernel is asked to tell: to stop it again takes longer than to look three times, before a
call, after it and at the end, which is all that most applications of the command line do.
"""
NOT_WATCHING = -1
EVENT = struct.Struct("iIII")
AT_ONCE = 1 << 16
NOTHING = bytes(4)
"""How much there is to be read, as the kernel writes a number."""


class FolderEvents:
    """One channel of the kernel's, of which a user may have few, for several groups of folders."""

    def __init__(self) -> None:
        self._fd = NOT_WATCHING
        self._is_closed = False
        self._groups: list[EventListener] = []

    def new_group(self, *, writes: bool = False) -> FolderGroup:
        """Folders that are looked at together; with `writes` also files count that are changed where they are."""
        group = FolderGroup(self, CHANGES | (WRITES if writes else 0))
        self._groups.append(group)
        return group

    def add_listener(self, listener: EventListener) -> None:
        """Let somebody know who follows folders one by one."""
        self._groups.append(listener)

    def close(self) -> None:
        """Stop for good; from now on everything may have changed."""
        self._is_closed = True
        if self._fd != NOT_WATCHING:
            os.close(self._fd)
            self._fd = NOT_WATCHING
        for group in self._groups:
            group.forget()

    def hear(self) -> None:
        """Let each group know of what happened in its folders by now; asked at every call, so that it must be quick."""
        if self._fd == NOT_WATCHING or fcntl.ioctl(self._fd, termios.FIONREAD, NOTHING) == NOTHING:
            return  # to read in vain takes several times as long
        try:
            told = os.read(self._fd, AT_ONCE)
        except BlockingIOError:
            return
        numbers, start = set(), 0
        while start < len(told):
            number, _, _, length = EVENT.unpack_from(told, start)
            numbers.add(number)
            start += EVENT.size + length
        for group in self._groups:
            if len(told) > AT_ONCE // 2 or -1 in numbers:
                group.forget()
            elif any(number in group.numbers for number in numbers):
                group.tell(numbers)

    def follow(self, folders: Iterable[str], flags: int) -> set[int] | None:
        """The numbers by which the kernel will tell of folders and of the ways to them; None if it tells of no more."""
        inner = [*folders]
        around, above = ways_to(inner)
        numbers = {self.follow_one(folder, flags) for folder in inner}
        numbers |= {self.follow_one(folder) for folder in around}
        numbers |= {self.follow_one(folder, OF_ITSELF) for folder in above}
        return None if min(numbers, default=0) < 0 else numbers

    def follow_one(self, folder: str, flags: int = CHANGES) -> int:
        """The number of one folder, the same as long as it is the same one; below 0 if the kernel cannot tell."""
        if self._fd == NOT_WATCHING and (self._is_closed or not self._open()):
            return NOT_WATCHING
        path = os.fsencode(folder) + b"\0"
        return self._kernel.call(self._calls["inotify_add_watch"], self._fd, path, flags | ONLY_FOLDERS | BESIDE_OTHERS)

    def _open(self) -> bool:
        self._kernel, self._calls = Kernel(), numbers_on(os.uname().machine)
        fd = self._kernel.call(self._calls["inotify_init1"], os.O_NONBLOCK | os.O_CLOEXEC)
        self._fd = fd if fd >= 0 else NOT_WATCHING
        return fd >= 0


def ways_to(folders: Iterable[str]) -> tuple[set[str], set[str]]:
    """The folders with a link that leads to these, and those further up that we could replace, or anybody who is we."""
    links: set[str] = set()
    above: set[str] = set()
    waiting, seen = [*folders], set[str]()
    while waiting:
        path = waiting.pop()
        while path not in seen and path != os.sep:
            seen.add(path)
            parent = os.path.dirname(path)
            if os.path.islink(path):
                links.add(parent)
                waiting.append(os.path.realpath(path))
            elif os.access(parent, os.W_OK):
                above.add(path)
            path = parent
    return links, above


class EventListener(Protocol):
    """Hears of folders."""

    @property
    def numbers(self) -> Collection[int]:
        """By which the kernel tells of the folders that count."""

    def tell(self, numbers: Collection[int]) -> None:
        """Something happened in one of them."""

    def forget(self) -> None:
        """Something may have happened in any of them."""


class FolderGroup:
    """Folders that somebody remembers the state of."""

    def __init__(self, events: FolderEvents, flags: int) -> None:
        self._events = events
        self._flags = flags
        self._looks = 0
        self.quiet_until = 0.0
        """No look is due before that, unless the kernel tells of something."""
        self.numbers: set[int] = set()

    def is_look_due(self, folders: Callable[[], Iterable[str]]) -> bool:
        """Whether it is time to look at what is in these folders; whatever happens there from now on is told."""
        if time.monotonic() < self.quiet_until:
            return False
        self._looks += 1
        if self._looks >= FOLLOW_AT:
            numbers = self._events.follow(folders(), self._flags)
            self.numbers = numbers or set()
            self.quiet_until = 0.0 if numbers is None else time.monotonic() + LOOK_ANYWAY_AFTER
        return True

    def tell(self, numbers: Collection[int]) -> None:  # noqa: ARG002 - all of them are looked at together
        self.forget()

    def forget(self) -> None:
        """The next look is due at once."""
        self.quiet_until = 0.0


def are_quiet(groups: Iterable[FolderGroup]) -> bool:
    """Whether a look is due at none of them; asked several times in every call."""
    now = time.monotonic()
    for group in groups:  # noqa: SIM110 - a generator costs more than all of this
        if now >= group.quiet_until:
            return False
    return True
