"""Control groups: limits on several processes together, and their common end, where the system lets us have a group."""

from __future__ import annotations

import os
from pathlib import Path

from toolyard.process.keeper.groups import (
    SEPARATOR,
    is_removed,
    kill_groups,
    members,
    read,
    remove_groups,
    with_belonging,
    write,
)

ROOT = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
MEMORY = (("memory.max", "memory.limit_in_bytes"), ("memory.events", "memory.oom_control"))
PREFIX = "toolyard-"
ENDS_GROUPS_SINCE = (5, 14)
PROCESSES = (("pids.max", "pids.max"), ("pids.events", "pids.events"))
"""The file that sets a limit and the one that counts its hits, each in the second and in the first version."""


class ControlGroup:
    """A group: one folder for all controllers (version 2), one for each (version 1), or some of both."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.folders: list[Path] = []
        self._counters: dict[str, tuple[Path, str]] = {}
        self._seen: dict[str, int] = {}
        self._most_processes = "max"

    @classmethod
    def create(cls, *, memory_bytes: int | None, processes: int | None, of: str = "") -> ControlGroup:
        """A group with those limits that can be had; `holds` tells which. It ends with the group `of`, if any."""
        group = cls(f"{of}{SEPARATOR}{os.urandom(6).hex()}" if of else f"{PREFIX}{os.urandom(6).hex()}")
        if memory_bytes is not None:
            group._limit("memory", MEMORY, memory_bytes, "oom_kill")
        if processes is not None:
            group._limit("pids", PROCESSES, processes, "max")
            group._most_processes = str(processes)
        return group

    @classmethod
    def of_a_keeper(cls, *, memory_bytes: int | None = None, processes: int | None = None) -> ControlGroup:
        """A group that ends all of its processes at once, beside what it limits; `can_end` tells whether it does."""
        group = cls.create(memory_bytes=memory_bytes, processes=processes)
        if parent := ending_parent():
            group._add(parent / group.name)
        return group

    @property
    def can_end(self) -> bool:
        """Whether the kernel ends all of it, however fast its processes fork."""
        return self.holds("pids") or any((folder / "cgroup.kill").exists() for folder in self.folders)

    def paths(self) -> list[str]:
        return [str(folder) for folder in self.folders]

    def holds(self, controller: str) -> bool:
        """Whether the group enforces the limit of a controller."""
        return controller in self._counters

    def add(self, pid: int) -> None:
        """Put a process in, if the system lets us; what it starts from now on is in it too."""
        for folder in self.folders:
            write(str(folder), "cgroup.procs", str(pid))

    def kill(self) -> None:
        """End every process in it, and in the groups that belong to it."""
        kill_groups(self.paths())

    def open_again(self) -> None:
        """Let processes be started in it again, where somebody was killed while ending it."""
        for folder in self.paths():
            if read(folder, "pids.max").strip() == "0" and not members(folder):
                write(folder, "pids.max", self._most_processes)

    def hits(self) -> list[str]:
        """The controllers whose limit was reached since the last time."""
        found = []
        for controller, (file, word) in self._counters.items():
            count = read_count(file, word)
            if count > self._seen.get(controller, 0):
                found.append(controller)
            self._seen[controller] = count
        return found

    def remove(self) -> None:
        """Remove the group if it has no process."""
        self.folders = [folder for folder in self.folders if not is_removed(str(folder))]

    def end(self) -> None:
        """Remove the group, and those that belong to it, with whatever is still in them."""
        paths = self.paths()
        if not all(is_removed(folder) for folder in with_belonging(paths)):
            kill_groups(paths)
            remove_groups(paths)
        self.folders.clear()

    def _limit(self, controller: str, files: tuple[tuple[str, str], tuple[str, str]], value: int, word: str) -> None:
        """Set one limit, in the group that there is already or in one of this controller's own."""
        for version, parent in enumerate((unified_parent(controller), own_parent(controller))):
            if parent is None:
                continue
            folder = parent / self.name
            was_there = folder in self.folders
            if self._add(folder) and write(str(folder), files[0][version], str(value)):
                self._counters[controller] = (folder / files[1][version], word)
                return
            if not was_there and folder in self.folders:
                self.folders.remove(folder)
                is_removed(str(folder))

    def _add(self, folder: Path) -> bool:
        """Make a folder part of the group; whether it is."""
        if folder in self.folders:
            return True
        try:
            folder.mkdir()
        except OSError:
            return False
        self.folders.append(folder)
        return True


def can_end_groups() -> bool:
    """Whether a group can be had that ends all of its processes at once."""
    return ending_parent() is not None or own_parent("pids") is not None


def ending_parent() -> Path | None:
    """Where a group can be made whose processes the kernel ends at once; such groups need no controllers."""
    parent = own_unified()
    # Processes are moved by whoever may write the list of the group that they leave.
    usable = parent and os.access(parent, os.W_OK) and os.access(parent / "cgroup.procs", os.W_OK)
    return parent if usable and kernel_version() >= ENDS_GROUPS_SINCE else None


def unified_parent(controller: str) -> Path | None:
    """Where a group can be made in the second version, if children there may have the controller."""
    parent = own_unified()
    return parent if parent and controller in read_text(parent / "cgroup.subtree_control").split() else None


def own_unified() -> Path | None:
    """The group of the second version that we are in, which is alone or beside the first version's."""
    for line in read_text(OWN_GROUPS).splitlines():
        number, _, path = line.split(":", 2)
        for root in (ROOT, ROOT / "unified"):
            if number == "0" and (root / "cgroup.controllers").exists():
                return root / path.lstrip("/")
    return None


def own_parent(controller: str) -> Path | None:
    """Where a group can be made in the first version, which has a tree for each controller."""
    for line in read_text(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        parent = ROOT / controller / path.lstrip("/")
        if controller in controllers.split(",") and os.access(parent, os.W_OK):
            return parent
    return None


def kernel_version() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())


def read_count(file: Path, word: str) -> int:
    """The number after a word in a file of counters."""
    words = read_text(file).split()
    return int(words[words.index(word) + 1]) if word in words[:-1] else 0


def read_text(file: Path) -> str:
    """What the kernel says there; nothing when there is no such file."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
