"""The guard: starts a keeper and outlives it, to end what the keeper cannot when it was killed or stopped.

A shell starts the keeper in the background and becomes the guard, so that the two interpreters start side by side. The
guard is the keeper's parent and a *subreaper*: when the keeper dies, whatever it owned becomes the guard's. It sees
the end of the application and of the keeper by handles on them, and the keeper sees the end of the guard by a pipe, so
that each of the two ends everything when the other is gone. It says on its standard input when it watches, before which
nothing is started inside. Whoever of them was stopped is made to go on by the end of
its parent. An application that cleans up itself dismisses the guard by a byte on its standard input, and is told by one
when nothing of the keeper's is left: until a process that was told of files is gone takes the kernel a while longer.
"""

from __future__ import annotations

import os
import select
import sys
import time

from toolyard.process.keeper.file_guards import FileGuards
from toolyard.process.keeper.groups import kill_groups
from toolyard.process.process_tree import (
    become_subreaper,
    children_of,
    go_on_without_parent,
    kill_trees,
    open_children_list,
    read_children,
)

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

KEEPER_PATIENCE = 2.0
"""How long the keeper may take to end everything by itself after the end of the application."""
READY_AFTER = 0.5
"""Seconds after which the guard has the time to import what it may need."""
OWNER_PATIENCE = 10.0
"""How long an application may take to be gone once it has let go of everything."""
READY, ALL_ENDED = b"r", b"e"
"""What the application is told when the guard watches, and when nothing of its keeper's is left."""
GIVE_UP_AFTER = 3.0
"""How long to try SIGKILL on processes that do not die (in uninterruptible sleep)."""

GUARD_SCRIPT = """trap '' HUP INT TERM
python=$1 package=$2 owner=$3 alive=$4 cleanup_file=$5 groups=$6 guards=$7
shift 7
(
  set -f
  IFS='
'
  for group in $groups; do echo 0 >"$group/cgroup.procs"; done 2>/dev/null
  unset IFS
  exec "$@" $$ </dev/null
) &
exec "$python" -I -S -c 'import sys; sys.path.append(sys.argv[1])
from toolyard.process.keeper.guard import main; main()' "$package" "$owner" "$alive" "$cleanup_file" "$groups" \
  "$guards" $!
"""
"""Puts what becomes the keeper into its control groups, starts it, and becomes the guard."""


class Guard:
    """Watches until the application or the keeper is gone, and then sees to it that nothing of the keeper's is left."""

    def __init__(self, owner: int, keeper: int, groups: list[str]) -> None:
        self.owner = owner
        """Becomes readable when the application ends."""
        self.keeper = keeper
        """What we started; in a sandbox the keeper is below it."""
        self.groups = groups
        self.status: int | None = None
        """The wait status of what we started, once it has ended."""
        become_subreaper()
        self.own_children = open_children_list()

    def watch(self, files: FileGuards) -> None:
        """Until the keeper has ended, or had its time to end after the application has; over guarded files, too."""
        try:
            keeper_exit = os.pidfd_open(self.keeper)
        except OSError:  # it has ended, and the shell that we were took note of it
            return
        ready = wait_for((self.owner, keeper_exit, files.events), READY_AFTER)
        if not ready:
            files.get_ready()
        while not ready or ready == {files.events}:
            files.restore(self.end_all)
            ready = wait_for((self.owner, keeper_exit, files.events), files.look_after)
        if keeper_exit in ready:
            return
        for pid in (self.keeper, *children_of(self.keeper)):
            signal_if_there(pid, signal.SIGCONT)
        wait_for((keeper_exit,), KEEPER_PATIENCE)

    def end_all(self) -> None:
        """End whatever is left: by its groups, and by what becomes our child when its parent ends."""
        kill_groups(self.groups)
        give_up_at = time.monotonic() + GIVE_UP_AFTER
        while self.children() and time.monotonic() < give_up_at:
            kill_trees(self.children, self.reap, until=give_up_at)

    def owner_has_ended(self) -> bool:
        """Wait until the application is gone, or says on our standard input that it cleans up itself."""
        poll = select.poll()
        poll.register(self.owner, select.POLLIN)
        poll.register(0, select.POLLIN)
        if any(fd == 0 for fd, _ in poll.poll()) and was_dismissed():
            return False
        poll.unregister(0)
        return bool(poll.poll(int(OWNER_PATIENCE * 1000)))

    def children(self) -> list[int]:
        return read_children(self.own_children)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.keeper:
                self.status = status


def wait_for(handles: tuple[int, ...], seconds: float | None) -> set[int]:
    """Which of some handles can be read; those below 0 are passed over."""
    poll = select.poll()
    for fd in handles:
        if fd >= 0:
            poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(None if seconds is None else int(seconds * 1000))}


def signal_if_there(pid: int, number: int) -> None:
    try:  # noqa: SIM105 - contextlib takes longer to import than all this
        os.kill(pid, number)
    except OSError:
        pass


def main() -> None:
    owner, alive = int(sys.argv[-6]), int(sys.argv[-5])
    cleanup_file, groups, guards = sys.argv[-4], [name for name in sys.argv[-3].split("\n") if name], sys.argv[-2]
    keeper = int(sys.argv[-1])
    close_others({owner, alive})
    be_quick()
    go_on_without_parent()
    guard = Guard(owner, keeper, groups)
    files = FileGuards(guards, groups, keeper)
    tell_owner(READY)
    guard.watch(files)
    guard.end_all()
    files.look_once_more()
    take_turns()
    if os.path.exists(cleanup_file) and guard.owner_has_ended():
        from toolyard.process.sandbox.cleanup import clean_up

        clean_up(cleanup_file)
    tell_owner(ALL_ENDED)  # nor to be put back
    files.let_go()
    os._exit(os.waitstatus_to_exitcode(guard.status) & 0xFF if guard.status is not None else 1)


def was_dismissed() -> bool:
    """Whether the application says so, which may have ended without reading what we told it: that is an error."""
    try:
        return bool(os.read(0, 1))
    except OSError:
        return False


def tell_owner(word: bytes) -> None:
    try:  # noqa: SIM105
        os.write(0, word)
    except OSError:  # it is gone, or waits for our end
        pass


def be_quick() -> None:
    """Be woken before others, where we may."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return


def take_turns() -> None:
    """Be as others are from now on."""
    try:  # noqa: SIM105
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pass


def close_others(kept: set[int]) -> None:
    """Hold nothing of the keeper's: the application knows of its end by the end of the channel."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            try:  # noqa: SIM105
                os.close(fd)
            except OSError:
                pass
