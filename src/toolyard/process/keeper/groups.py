"""Ending control groups, and stopping them: whatever a process does to hide, it stays in its group, and the kernel
ends or stops that as a whole.

The guard needs this too, so it imports next to nothing.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

EMPTY_WITHIN = 2.0
"""How long the processes of a killed group may take to be gone; only the kernel itself can hold one for longer."""
FROZEN_WITHIN, FROZEN_EVERY = 0.5, 0.0002
LOOK_EVERY = 0.001
SEPARATOR = "."
"""Between the name of a keeper's group and what tells the groups of its shells apart."""


def kill_groups(folders: Iterable[str]) -> None:
    """End every process of these, which are one group to several controllers, and of the groups that belong to it.

    Nobody forks meanwhile, and whoever is still listed is killed again: the kernel's own way to end a group passes over
    processes whose first thread has ended.
    """
    groups = with_belonging(folders)
    most = {folder: read(folder, "pids.max") for folder in groups}
    for folder in groups:
        write(folder, "pids.max", "0")
        write(folder, "cgroup.freeze", "1")
    for folder in groups:
        write(folder, "cgroup.kill", "1")
    for folder in groups:
        kill_listed(folder)
    for folder in groups:
        write(folder, "cgroup.freeze", "0")
        if most[folder].strip() not in ("", "0"):  # zero is what somebody else wrote who ends the same group
            write(folder, "pids.max", most[folder])


def freeze(groups: Iterable[str]) -> list[str]:
    """Stop all processes of some groups; the folders that did, none when they cannot be stopped."""
    folders = [folder for folder in with_belonging(groups) if write(folder, "cgroup.freeze", "1")]
    give_up_at = time.monotonic() + FROZEN_WITHIN
    while not all("frozen 1" in read(folder, "cgroup.events") for folder in folders):
        if time.monotonic() > give_up_at:
            thaw(folders)
            return []
        time.sleep(FROZEN_EVERY)
    return folders


def thaw(folders: Iterable[str]) -> None:
    for folder in folders:
        write(folder, "cgroup.freeze", "0")


def remove_groups(folders: Iterable[str]) -> None:
    """Remove groups whose processes have been killed, as soon as those are gone."""
    give_up_at = time.monotonic() + EMPTY_WITHIN
    for folder in with_belonging(folders):
        while not is_removed(folder) and time.monotonic() < give_up_at:
            time.sleep(LOOK_EVERY)


def with_belonging(folders: Iterable[str]) -> list[str]:
    """The groups of a keeper's shells first: they are beside its own, and have its name before their own."""
    found: list[str] = []
    for folder in folders:
        parent, name = os.path.split(folder)
        try:
            beside = [each for each in os.listdir(parent) if each.startswith(name + SEPARATOR)]
        except OSError:
            beside = []
        found += [*(os.path.join(parent, each) for each in beside), folder]
    return found


def kill_listed(folder: str) -> None:
    """Kill what a group lists until it lists nothing."""
    give_up_at = time.monotonic() + EMPTY_WITHIN
    while (pids := members(folder)) and time.monotonic() < give_up_at:
        kill_members(folder, pids)
        time.sleep(LOOK_EVERY)


def kill_members(folder: str, pids: list[int]) -> None:
    """Kill by handles that were opened before the list is read again, so that a reused number is never hit."""
    handles = {pid: handle for pid in pids if (handle := open_handle(pid)) is not None}
    still = set(members(folder))
    for pid, handle in handles.items():
        try:
            if pid in still:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            continue
        finally:
            os.close(handle)


def open_handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def members(folder: str) -> list[int]:
    return [int(pid) for pid in read(folder, "cgroup.procs").split()]


def read(folder: str, name: str) -> str:
    """What a group says; nothing when it has no such file."""
    try:
        with open(f"{folder}/{name}", "rb") as file:
            return file.read().decode()
    except OSError:
        return ""


def write(folder: str, name: str, text: str) -> bool:
    """Tell a group something; whether it took it. A file that is not there is not made."""
    try:
        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
