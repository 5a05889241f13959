"""Cleaning up after an application that was killed: by the guard of its keeper, or by the next application."""

from __future__ import annotations

import contextlib
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.files.atomic import replace_file
from toolyard.files.inside import is_inside
from toolyard.files.removal import remove_tree
from toolyard.files.user_folders import records, records_folder
from toolyard.process.keeper.groups import kill_groups, members, remove_groups, with_belonging
from toolyard.process.private_folders import claimed_alone, remove_if_unclaimed
from toolyard.process.sandbox.git.nested import NestedRepositories
from toolyard.process.sandbox.git.repository_walk import RepositoryWalk
from toolyard.process.sandbox.mount_points import move_unwanted, remove_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.process.sandbox.mount_points import MountPoint


STARTED = 19
"""Where a process's start is told in its `stat`, counted from behind its name."""


class CleanupRecord:
    """What has to be removed if we are killed.

    It is obeyed later, so it is kept in the user's own folder, which nobody inside a sandbox can write; and it counts
    when nobody holds the lock of our shared folder, which nobody inside can open.
    """

    def __init__(self, claimed: str) -> None:
        self._claimed = claimed
        self.file = os.path.join(records_folder(), f"{os.path.basename(claimed)}.json")

    def write(self, left: Mapping[str, object]) -> None:
        """Write it down; OSError where that cannot be done: what we leave will stay."""
        os.makedirs(os.path.dirname(self.file), 0o700, exist_ok=True)
        record = {"claimed": self._claimed, "boot": boot(), "mounts": mounts(), **left}
        replace_file(Path(self.file), json.dumps(record).encode())

    def remove(self) -> None:
        """We are about to clean up ourselves: nobody else needs to."""
        with contextlib.suppress(OSError):
            os.unlink(self.file)


def mount_points_of_others() -> dict[str, bytes | None]:
    """What sandboxes have made to be mounted over, and the last of them that needs it removes."""
    return dict(point for record in records() for point in made_by(read_record(record)))


def made_by(left: Mapping[str, Any]) -> list[MountPoint]:
    """The mount points of a record."""
    return [(path, None if content is None else os.fsencode(content)) for path, content in left.get("mount_points", ())]


def others_in(folders: Sequence[str], record: str) -> bool:
    """Whether another application than the one of a record works in one of these folders, or around them."""
    return any(
        is_inside(theirs, ours) or is_inside(ours, theirs)
        for other in records()
        if other != record and is_alive(left := read_record(other))
        for theirs in left.get("workspace", ())
        for ours in folders
    )


def is_alive(left: Mapping[str, Any]) -> bool:
    """Whether the application of a record may live: nobody else holds its folder."""
    try:
        with claimed_alone(left.get("claimed", "")):
            return False
    except BlockingIOError:
        return True
    except OSError:  # there is no such folder
        return is_elsewhere(left)


def clean_up_abandoned() -> None:
    """Clean up after all applications that were killed together with whoever would have done it."""
    for record in records():
        run_each(partial(clean_up, record))


def clean_up(record: str) -> None:
    """Remove what an application must not leave, unless it lives; what could not be done is tried again later."""
    left = read_record(record)
    claimed = left.get("claimed", "")
    try:
        if os.path.lexists(claimed):
            with claimed_alone(claimed):
                is_done = remove_left(left, record)
                remove_tree(claimed)
        elif is_elsewhere(left):
            return
        else:
            is_done = remove_left(left, record)
    except BlockingIOError:
        return  # the application lives: only its keeper was lost
    if is_done:
        with contextlib.suppress(OSError):
            os.unlink(record)


def is_elsewhere(left: Mapping[str, Any]) -> bool:
    """Whether its application may live where its folder cannot be seen from here: a container shares this home."""
    return left.get("boot") == boot() and left.get("mounts") != mounts()


def boot() -> str:
    """This start of the system; after the next, nothing of it lives."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def mounts() -> int:
    """Which file systems are seen from here."""
    try:
        return os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return 0


def remove_left(left: Mapping[str, Any], record: str) -> bool:
    """The groups first: whatever lives in them could make again what is removed. Tells whether all of it was done."""
    groups = left.get("groups", ())
    is_done = run_each(
        lambda: kill_groups(groups),
        lambda: remove_groups(groups),
        lambda: move_unwanted(left.get("unwanted", ())),
        lambda: disarm_repositories(left),
        lambda: exchange_once_more(left, record),
        lambda: remove_unused(made_by(left)),
        lambda: remove_common(left.get("common", ())),
    )
    return end_span(left) and is_done  # after all that we change ourselves


def run_each(*steps: Callable[[], object]) -> bool:
    """Take all steps of an end, whatever some of them raise: nobody inside may keep one by another. Tells of success.

    What a step reads was written inside, and nobody knows all that can be wrong with it.
    """
    is_done = True
    for step in steps:
        try:
            step()
        except Exception:
            is_done = False
            import logging

            logging.getLogger("toolyard.sandbox").exception("a step of the clean-up failed; the others are taken")
    return is_done


def disarm_repositories(left: Mapping[str, Any]) -> None:
    NestedRepositories(
        left.get("workspace", ()),
        left.get("since", 0),
        left.get("guarded", {}),
        repositories=[git for git, *_ in left.get("repositories", {}).get("places", ())],
        sealed=left.get("sealed", ()),
        walk=RepositoryWalk(caches=left.get("caches", "")),
    ).sweep(at_end=True)


def end_span(left: Mapping[str, Any]) -> bool:
    """Say when tools could write for the last time; False while something of theirs may go on, so that nobody knows."""
    span = left.get("span", "")
    if span and may_go_on(left):
        return False
    if span:
        with contextlib.suppress(OSError):
            os.rename(span, f"{span}.ended")
            os.utime(f"{span}.ended")
    return True


def may_go_on(left: Mapping[str, Any]) -> bool:
    """Whether something that an application started in its sandbox may live, although its groups were ended."""
    if left.get("boot") != boot() or left.get("own_pids"):  # which end with the first of their processes
        return False
    if groups := left.get("groups"):
        return any(members(group) for group in with_belonging(groups))
    return any(is_confined_since(pid, left.get("since", 0.0)) for pid in os.listdir("/proc") if pid.isdigit())


def is_confined_since(pid: str, moment: float) -> bool:
    """Whether a process started after a moment and has more filters than we do, which all inside have and keep."""
    try:
        fields = Path("/proc", pid, "stat").read_text(errors="replace").rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[STARTED]) / os.sysconf("SC_CLK_TCK")
        is_over = fields[0] in "ZX"
        return not is_over and time.time() - age > moment - 1 and filters_of(pid) > filters_of("self")
    except (OSError, IndexError, ValueError):  # it has ended
        return False


def filters_of(pid: str) -> int:
    """How many filters of system calls a process has."""
    status = dict(line.partition(":\t")[::2] for line in Path("/proc", pid, "status").read_text().splitlines())
    return int(status.get("Seccomp_filters", status.get("Seccomp", "0")))


def remove_common(places: Sequence[str]) -> None:
    for place in places:
        with contextlib.suppress(OSError):  # the application of another sandbox may still claim it
            remove_if_unclaimed(place)


def exchange_once_more(left: Mapping[str, Any], record: str) -> None:
    """Hand over what git inside did before everybody was killed."""
    if not (repositories := left.get("repositories")):
        return
    from toolyard.process.sandbox.git.inside_repository import InsideRepository, PrivateGitFolder
    from toolyard.process.sandbox.git.workspace_repositories import WorkspaceRepositories

    folders = [
        PrivateGitFolder(InsideRepository(git, is_new=is_new), place, objects)
        for git, place, objects, is_new in repositories["places"]
        if os.path.isdir(place)
    ]
    roots = left.get("workspace", ())
    is_alone = not others_in(roots, record)
    WorkspaceRepositories(folders, roots, program=repositories["program"]).exchange(at_end=True, with_modules=is_alone)


def read_record(file: str) -> dict[str, Any]:
    """What there is to remove; nothing when somebody else has done that meanwhile."""
    try:
        with open(file, encoding="utf-8") as text:
            left = json.load(text)
    except (OSError, ValueError):
        return {}
    return left if isinstance(left, dict) else {}
