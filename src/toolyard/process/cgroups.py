"""Control groups: limits on several processes together, where the system lets us have a group of our own."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
MEMORY = (("memory.max", "memory.limit_in_bytes"), ("memory.events", "memory.oom_control"))
PROCESSES = (("pids.max", "pids.max"), ("pids.events", "pids.events"))
"""The file that sets a limit and the one that counts its hits, each in the second and in the first version."""


class ControlGroup:
    """A group with limits: one folder for all controllers (version 2), or one for each (version 1)."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self._counters: dict[str, tuple[Path, str]] = {}
        self._seen: dict[str, int] = {}

    @classmethod
    def create(cls, *, memory_bytes: int | None, processes: int | None) -> ControlGroup:
        """A group with those limits that can be had; `holds` tells which."""
        group = cls()
        name = f"toolyard-{secrets.token_hex(6)}"
        if memory_bytes is not None:
            group._limit("memory", name, MEMORY, memory_bytes, "oom_kill")
        if processes is not None:
            group._limit("pids", name, PROCESSES, processes, "max")
        return group

    def holds(self, controller: str) -> bool:
        """Whether the group enforces the limit of a controller."""
        return controller in self._counters

    def add(self, pid: int) -> None:
        """Put a process in, if the system lets us; what it starts from now on is in it too."""
        with contextlib.suppress(OSError):
            for folder in self.folders:
                (folder / "cgroup.procs").write_text(str(pid))

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
        for folder in self.folders:
            remove_group(folder)
        self.folders.clear()

    def _limit(
        self, controller: str, name: str, files: tuple[tuple[str, str], tuple[str, str]], value: int, word: str
    ) -> None:
        """Set one limit, in the group that there is already or in one of this controller's own."""
        for version, parent in enumerate((unified_parent(controller), own_parent(controller))):
            if parent is None:
                continue
            folder = parent / name
            try:
                folder.mkdir(exist_ok=True)
                (folder / files[0][version]).write_text(str(value))
            except OSError:
                if folder not in self.folders:
                    remove_group(folder)
                continue
            if folder not in self.folders:
                self.folders.append(folder)
            self._counters[controller] = (folder / files[1][version], word)
            return


def remove_group(folder: str | Path) -> None:
    """Remove a group; one that still has a process stays."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def unified_parent(controller: str) -> Path | None:
    """Where a group can be made in the second version, if children there may have the controller."""
    for line in read_text(OWN_GROUPS).splitlines():
        number, _, path = line.split(":", 2)
        parent = ROOT / path.lstrip("/")
        if number == "0" and controller in read_text(parent / "cgroup.subtree_control").split():
            return parent
    return None


def own_parent(controller: str) -> Path | None:
    """Where a group can be made in the first version, which has a tree for each controller."""
    for line in read_text(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        parent = ROOT / controller / path.lstrip("/")
        if controller in controllers.split(",") and os.access(parent, os.W_OK):
            return parent
    return None


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
