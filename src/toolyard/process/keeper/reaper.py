"""The keeper's account of processes: which call each belongs to, which have ended, and the end of those that must go.

What a child leaves behind by double fork or `setsid` becomes a child of the keeper, which is a *subreaper*. Which call
such an orphan belongs to is told by its mark, which a process cannot lose by accident (`spawn.Marks`).
"""

from __future__ import annotations

import os
import select
import time

from toolyard.process.process_tree import (
    LINUX,
    descendants,
    kill_trees,
    mark_of,
    may_still_print,
    open_children_list,
    read_children,
    signal_all,
    signal_one,
)

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

    from toolyard.process.keeper.wire import Channel
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

ORPHAN_GRACE = 0.5
"""How long what outlived its call may take to end by itself after SIGTERM."""
OUTPUT_GRACE = 5.0
"""How long what a call printed through, `> >(sort)`, may take to print the rest."""
GIVE_UP_AFTER = 3.0
"""How long to try SIGKILL on processes that do not die (in uninterruptible sleep) before reporting them."""
TICK = 0.01
KILL_SPELL = 0.02
"""How long at a time the keeper only kills, before it looks after its other calls again."""
REAPS_AT_ONCE = 2048
REAP_EVERY = 1.0
"""How long an adopted process that has ended may stay in the table while a call runs."""
SWEEP_AFTER = 0.1


class Call:
    """One child, the root, and everything that descends from it."""

    __slots__ = (
        *("cut_short", "deadline", "exit_fd", "folder", "groups", "id", "kills_since", "marks", "pid", "released"),
        *("finishes_until", "status", "was_signalled"),
    )  # fmt: skip

    def __init__(self, id: int, pid: int, marks: range, folder: bytes | None, groups: list[bytes]) -> None:
        self.id = id
        self.pid = pid
        self.marks = marks
        self.folder = folder
        self.groups = groups
        """Of a shell: what it leaves running may go on, and both are removed with the last of it."""
        self.released = False
        """Whether the application has taken what an ended shell left in its folder."""
        self.exit_fd = os.pidfd_open(pid) if LINUX else None
        """Becomes readable when the root ends."""
        self.status: int | None = None
        """The root's wait status; None while it runs."""
        self.was_signalled = False
        self.cut_short = False
        """Whether the root was still running when its end was asked for."""
        self.deadline: float | None = None
        """When SIGTERM gives way to SIGKILL; None while nobody wants the tree to end."""
        self.kills_since: float | None = None
        self.finishes_until: float | None = None
        """While the root has ended, and something of it may still have to print."""


class Reaper:
    """The calls under way. Tells the application of exits, and of each call's end when nothing of it is left."""

    def __init__(self, channel: Channel, *, has_marks: bool) -> None:
        self.channel = channel
        self.has_marks = has_marks
        self.poll = select.poll()
        self.calls: dict[int, Call] = {}
        self.roots: dict[int, Call] = {}
        """Calls whose root runs, by its process id."""
        self.exits: dict[int, Call] = {}
        """The same by the descriptor that becomes readable then."""
        self.exited: list[Call] = []
        """Calls whose root has ended and that have not been looked at since."""
        self.own_children = open_children_list()
        self.more_to_reap = False
        self.sweep_at: float | None = None
        self.release_at = 0.0

    def add(self, call: Call) -> None:
        self.calls[call.id] = self.roots[call.pid] = call
        if call.exit_fd is not None:
            self.exits[call.exit_fd] = call
            self.poll.register(call.exit_fd, select.POLLIN)

    def poll_timeout(self) -> int | None:
        """How many milliseconds the loop may sleep; None for ever."""
        if self.more_to_reap:
            return 0
        if self.channel.is_stalled or any(call.deadline or call.finishes_until for call in self.calls.values()):
            return int(TICK * 1000)
        if self.sweep_at is not None:
            return max(0, int((self.sweep_at - time.monotonic()) * 1000) + 1)
        return int(REAP_EVERY * 1000) if self.calls else None

    def kill(self, id: int, *, grace: float) -> None:
        self.reap()  # what has ended by itself until now was not cut short
        if call := self.calls.get(id):
            call.cut_short = call.cut_short or call.status is None
            self.begin_end(call, grace=grace)

    def release(self, id: int) -> None:
        """The application needs nothing more of a shell that has ended."""
        if call := self.calls.get(id):
            call.released = True
            self.finish_released()

    def end_all(self) -> None:
        for call in self.calls.values():
            self.begin_end(call, grace=ORPHAN_GRACE)

    def begin_end(self, call: Call, *, grace: float) -> None:
        """Ask the whole tree to end, and set the moment from which it is forced to."""
        now = time.monotonic()
        call.deadline = min(call.deadline or now + grace, now + grace)
        if signal_all(self.tree(call), signal.SIGTERM):
            call.was_signalled = True

    def collect(self, ended: list[Call]) -> None:
        """Take in the exits of these roots; with none, look for any process that has ended."""
        for call in ended:
            if call.status is None:
                _, status = os.waitpid(call.pid, 0)
                self.take_exit(call, status)
        if not ended:
            self.reap()

    def reap(self) -> None:
        """Collect ended children, ours or adopted, but not for ever: a chain of forks ends them as fast as we can."""
        self.more_to_reap = True
        for _ in range(REAPS_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == 0:
                self.more_to_reap = False
                return
            if call := self.roots.get(pid):
                self.take_exit(call, status)

    def take_exit(self, call: Call, status: int) -> None:
        del self.roots[call.pid]
        call.status = status
        self.exited.append(call)
        self.forget_exit(call)

    def forget_exit(self, call: Call) -> None:
        exit_fd, call.exit_fd = call.exit_fd, None
        if exit_fd is not None:
            del self.exits[exit_fd]
            self.poll.unregister(exit_fd)
            os.close(exit_fd)

    def advance(self) -> None:
        """Bring every ending tree one step further, and end what belongs to nobody."""
        while self.exited:
            call = self.exited.pop()
            if call.deadline is None:
                self.after_exit(call)
        now = time.monotonic()
        for call in list(self.calls.values()):
            if call.deadline is not None:
                self.advance_end(call, call.deadline, now)
            elif call.finishes_until is not None:
                self.end_rest(call, call.finishes_until, now)
        if self.sweep_at is not None and now >= self.sweep_at:
            self.sweep_at = None
            self.kill_unowned(until=now + KILL_SPELL)
        if now >= self.release_at:
            self.release_at = now + REAP_EVERY
            self.finish_released()

    def after_exit(self, call: Call) -> None:
        """The root has ended by itself: report at once when it left nothing, else end what it left."""
        if call.folder is not None:
            self.channel.send(("exited", call.id, call.status))
            return
        if not LINUX:
            signal_one(call.pid, 0, signal.SIGKILL)  # the group is all we know of the tree there
        if any(pid not in self.roots for pid in self.children()):
            self.reap()  # only what has not ended by itself is left
            if self.is_left(call):
                now = time.monotonic()
                call.finishes_until = now + OUTPUT_GRACE
                self.end_rest(call, call.finishes_until, now)
                return
        self.report(call, [])

    def end_rest(self, call: Call, until: float, now: float) -> None:
        """End what a root left, but for what has its output to finish."""
        if not self.is_left(call):
            self.report(call, [])
        elif now >= until or not may_still_print(self.tree(call), now - until + OUTPUT_GRACE):
            self.begin_end(call, grace=ORPHAN_GRACE)

    def advance_end(self, call: Call, deadline: float, now: float) -> None:
        if not self.is_left(call):
            self.report(call, [])
        elif now >= deadline:
            call.kills_since = call.kills_since or now
            if now - call.kills_since > GIVE_UP_AFTER:
                self.report(call, sorted(self.tree(call)))
            elif kill_trees(lambda: list(self.heads(call)), self.reap, until=now + KILL_SPELL):
                call.was_signalled = True

    def finish_released(self) -> None:
        """Report shells that have ended and left nothing, or nothing any more."""
        self.reap()
        for call in list(self.calls.values()):
            if call.released and not self.is_left(call):
                self.report(call, [])

    def report(self, call: Call, left: list[int]) -> None:
        if call.was_signalled:
            self.reap()  # what was killed is gone from the process table too
        self.calls.pop(call.id, None)
        self.roots.pop(call.pid, None)
        self.forget_exit(call)
        if call.folder is not None:
            remove_folder(call.folder)
        for group in call.groups:
            remove_empty(group)
        self.channel.send(("gone", call.id, call.pid, call.status or 0, call.cut_short, left))
        # A list of children read while children end can miss one: look again when things are quiet.
        if self.sweep_at is None:
            self.sweep_at = time.monotonic() + SWEEP_AFTER

    def kill_unowned(self, *, until: float) -> None:
        """Kill adopted processes whose call is over, and look again until there are none."""
        if self.unowned():
            kill_trees(self.unowned, self.reap, until=until)
            self.sweep_at = time.monotonic() + SWEEP_AFTER

    def kill_children(self) -> None:
        """Before the keeper goes: whatever is still its child, also what lost its mark."""
        give_up_at = time.monotonic() + GIVE_UP_AFTER
        while self.children() and time.monotonic() < give_up_at:
            kill_trees(self.children, self.reap, until=give_up_at)

    def tree(self, call: Call) -> dict[int, int]:
        """Every living process of a call, with its start time."""
        return descendants(self.heads(call))

    def is_left(self, call: Call) -> bool:
        """Whether anything of a call is left: whatever of it lives is one of its heads, or below one.

        A head that has ended counts until we collect it: what it forked last may be our child only since we looked.
        """
        return any(True for _ in self.heads(call))

    def heads(self, call: Call) -> Iterator[int]:
        """Our own children of a call: its root, and the adopted ones that carry its mark."""
        if call.status is None:
            yield call.pid
        for pid in self.children():
            if pid not in self.roots and self.belongs(pid, call):
                yield pid

    def belongs(self, orphan: int, call: Call) -> bool:
        """Whether an adopted process is of a call; without marks, when it can be of no other."""
        return mark_of(orphan) in call.marks if self.has_marks else len(self.calls) == 1

    def unowned(self) -> list[int]:
        """Adopted processes that belong to no running call."""
        owned = [call.marks for call in self.calls.values()]
        marks = {pid: mark_of(pid) for pid in self.children() if pid not in self.roots}
        return [
            pid for pid, mark in marks.items() if not any(mark in each for each in owned) and (mark or not self.calls)
        ]

    def children(self) -> list[int]:
        """Our own children, read from a file that stays open: this happens at the end of every call."""
        return read_children(self.own_children)


def remove_folder(folder: bytes) -> None:
    """Remove a shell's folder with the files in it; it has no folders of its own, and some files may just have gone."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:  # noqa: SIM105 - contextlib takes longer to import than all this
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass
    remove_empty(folder)


def remove_empty(folder: bytes) -> None:
    """Remove a folder that is empty; of control groups, one without a process."""
    try:  # noqa: SIM105
        os.rmdir(folder)
    except OSError:
        pass
