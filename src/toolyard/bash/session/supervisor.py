"""The shells of a session, one after the other: the next one begins where the last one ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from toolyard.bash.session.control_channel import ShellGone
from toolyard.bash.session.handover import listed
from toolyard.bash.session.interrupt import PATIENCE, interrupt_command
from toolyard.bash.session.shell import Shell
from toolyard.bash.session.shell_process import ShellSetup
from toolyard.core.reach import is_beyond
from toolyard.errors import ShellError
from toolyard.process.child import Children, read_wait_status
from toolyard.process.environment import NON_INTERACTIVE, ParentEnvironment, as_bytes
from toolyard.process.interpreter import find_interpreter

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from toolyard.bash.session.command import Command
    from toolyard.bash.session.handover import CarriedState
    from toolyard.core.reach import Reach
    from toolyard.process.limits import Limits


CLOSE_GRACE = 0.2
GIVEN_BACK = (
    "The shell was given back while it had nothing to do; this is a fresh one, variables, functions, aliases, options, "
    "traps and directory were taken over."
)
LEAVE_PATIENCE = 2.0
"""How long a shell may take to end that has nothing left to do."""
PARENT = ParentEnvironment()
NOT_PASSED_ON = frozenset({
    b"COLUMNS", b"HISTFILE", b"IGNOREEOF", b"LINES", b"MAIL", b"MAILCHECK", b"MAILPATH", b"PROMPT_COMMAND", b"PS0",
    b"PS1", b"PS2", b"PS4", b"TMOUT",
})  # fmt: skip
"""Variables that mean something only to a shell with a person before it, or could read what we send it (PS4, which
root's bash takes from nobody)."""


class ShellSupervisor:
    """Holds the current shell, starts the next one with the saved state of the last, and ends them all."""

    def __init__(
        self,
        *,
        cwd: str,
        env: Mapping[str, str] | None,
        limits: Limits,
        tty: bool,
        children: Children | None,
        parent: ParentEnvironment | None,
    ) -> None:
        self.current: Shell | None = None
        self.is_closed = False
        self._here: Shell | None = None
        """The shell that waits while one elsewhere runs a command."""
        self._away_with: CarriedState | None = None
        """What that one elsewhere began with."""
        self._away_for = ""
        """And the command that it runs."""
        self._is_away = False
        self._left_away: tuple[str, ...] = ()
        self._away_in: Children | None = None
        """What keeps in the shell elsewhere, while there is one."""
        self._notice: str | None = None
        """What the caller of the next command has to know of its shell."""
        self._first_cwd = cwd
        self._env = env
        self._limits = limits
        self._tty = tty
        self._children = children
        self._parent = parent or PARENT
        self._borrowed: Children | None = None
        self._past: list[Shell] = []
        """Earlier shells in which something may still run."""
        self._recovery: asyncio.Task[None] | None = None
        self._next_state: bytes | None = None
        self._next_cwd: str | None = None
        self._next_status = 0

    @property
    def cwd(self) -> str:
        """Where the shell is, or the next one will be."""
        return self.current.cwd if self.current else self._next_cwd or self._first_cwd

    @property
    def holds_state(self) -> bool:
        """Whether there is no shell, but the state of the one that was given back."""
        return self.current is None and self._next_state is not None

    @property
    def children(self) -> Children | None:
        """Who owns the shell here, unless it is borrowed."""
        return self._children

    @property
    def is_away(self) -> bool:
        """Whether the current shell is one elsewhere, for one command."""
        return self._is_away

    async def go_away(self, children: Children, carried: CarriedState, command: str) -> None:
        """Start a shell elsewhere, for one command, with what is carried over; the one here waits."""
        here, self._away_for, self._left_away = self.current, command, ()
        self.current = await self._start(None, children=children, carried=carried)
        self._here, self._away_with, self._away_in, self._is_away = here, carried, children, True

    async def come_back(self, *, keep: bool) -> None:
        """Go on with the shell here, with what the one elsewhere has changed; that one ends, unless it is kept."""
        away, carried = self.current, self._away_with
        changed = b""
        if away and carried and away.process.exit_status is None and not away.trouble:
            with contextlib.suppress(ShellError, ShellGone):
                changed = (await self._told_by(away, carried)).lines_since(carried)
        self._is_back()
        if away:
            await self._let_go(away, keep=keep)
        if changed.strip() and self.current and self.current.process.exit_status is None:
            with contextlib.suppress(ShellError, ShellGone):
                await self.current.take_back(changed)

    async def _told_by(self, away: Shell, carried: CarriedState) -> CarriedState:
        """The state of the shell elsewhere; of one that reaches less far, only what nobody obeys."""
        state = await away.tell_state()
        if self._here is None or not is_beyond(reach_of(self._children), reach_of(self._away_in)):
            return state
        taken = state.without_obeyed(carried, await self._here.tell_state(), self._away_for)
        self._left_away = taken.left
        return taken

    def take_left_away(self) -> tuple[str, ...]:
        """What stayed in the shell elsewhere that was last come back from."""
        left, self._left_away = self._left_away, ()
        return left

    async def move(self, children: Children, *, keep: bool, unseen: bool) -> None:
        """Go on elsewhere for good, with what can be carried over; `unseen` means that nobody has looked at that.

        What another shell saved for the next one is code, and not for a shell elsewhere.
        """
        if self._next_state is not None:
            self._next_state = None
            self._notice = "The session goes on with another reach, in a fresh shell."
        here, carried = self.current, None
        if here and here.process.exit_status is None and not here.trouble:
            carried = await here.tell_state()
        if carried and unseen:
            given, quiet = self._variables()
            carried = carried.unseen(given | quiet)
        # A call that is cancelled meanwhile leaves the session where it is, and knowing that.
        there = await self._start_there(children, carried) if here else None
        self._children, self.current = children, there
        if here:
            await self._let_go(here, keep=keep)
        if carried and carried.left:
            self._notice = f"The session goes on with another reach, without {listed(list(carried.left))}."

    async def _start_there(self, children: Children, carried: CarriedState | None) -> Shell:
        """A shell to go on in; where the folder of the last is not to be had, at the session's beginning."""
        try:
            return await self._start(None, children=children, carried=carried)
        except ShellError:
            carried = carried and replace(carried, cwd=self._first_cwd)
            return await self._start(None, children=children, carried=carried)

    async def _let_go(self, shell: Shell, *, keep: bool) -> None:
        """End a shell, but nothing that it left running; one that is kept has jobs whose ends it has to tell."""
        self._past = [*(past for past in self._past if not past.process.is_gone), shell]
        if keep:
            return
        shell.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_PATIENCE):
                await shell.process.exited.wait()
        if shell.process.exit_status is None:
            shell.process.kill(grace=0)
        else:
            shell.close()

    def _is_back(self) -> None:
        self.current, self._here = self._here, None
        self._is_away, self._away_with, self._away_in, self._notice = False, None, None, None

    async def give_back(self) -> bool:
        """End the shell, which has nothing to do, and hold its state for the next; False where something would be lost.

        The state holds whatever secrets its variables do, so that it stays in memory.
        """
        shell = self.current
        if shell is None or self._is_away or shell.process.exit_status is not None or not shell.has_only_state():
            return False
        state, status = await shell.snapshot(), shell.status
        if state is None:
            return False
        shell.finish()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_PATIENCE):
                await shell.process.exited.wait()
        if shell.process.exit_status is None:
            shell.process.kill(grace=0)
            await shell.process.wait_gone()
        self._notice = GIVEN_BACK
        self._retire(shell)
        self._next_state, self._next_status = self._next_state or state, status
        return True

    def take_notice(self) -> str | None:
        notice, self._notice = self._notice, None
        return notice

    async def ready(self, gone: Shell | None = None) -> Shell:
        """The current shell, or a fresh one if there is none or it is gone."""
        if self.is_closed:
            raise ShellError("the session is closed")
        if gone:
            await gone.process.exited.wait()
        elif self.current:
            await asyncio.sleep(0)  # so that the loop can report its end, if it ended while nobody called us
        if self.current and self.current.process.exit_status is None:
            return self.current
        if self.current:
            self._retire(self.current)
        try:
            self.current = await self._start(self._next_state)
        except ShellError:
            if self._next_state is None:
                raise
            self.current = await self._start(None)
            self._notice = "The shell ended, and its state cannot be taken over; this is a fresh one."
        self.current.status, self._next_status = self._next_status, 0
        self._next_state = None
        return self.current

    async def start_beside(self) -> Shell:
        """A shell that goes on with the state of the current one, and reaches as far; that stays as it is."""
        here = await self.ready()
        state = await here.snapshot()
        self._next_cwd = here.cwd
        beside = await self._start(state, children=self._away_in)
        self._past.append(beside)
        return beside

    async def end_command(self, shell: Shell, command: Command, *, patience: float = PATIENCE) -> None:
        """End a command; the shell with it, if it does not come back."""
        if not await interrupt_command(shell, command, patience=patience) and shell.process.exit_status is None:
            self._notice = "The shell could not be brought back from its last command; this is a fresh one."
            shell.process.kill(grace=0)
            await shell.process.wait_gone()

    def recover_by(self, work: Coroutine[None, None, None]) -> None:
        """Do in the background what must be done before the next command: nobody waits for it who was cancelled."""
        if self.is_closed:
            work.close()
        else:
            self._recovery = asyncio.ensure_future(work)

    def take_recovery(self) -> asyncio.Task[None] | None:
        """That work, for somebody who has more to do after it."""
        recovery, self._recovery = self._recovery, None
        return recovery

    async def wait_recovered(self) -> None:
        """Wait for that work; whoever is cancelled while waiting does not stop it."""
        if self._recovery:
            await asyncio.shield(self._recovery)
            self._recovery = None

    async def settled(self) -> None:
        """Wait for that work, however it ends."""
        if self._recovery:
            await asyncio.wait([self._recovery])

    def cancel_recovery(self) -> None:
        if self._recovery:
            self._recovery.cancel()
            self._recovery = None

    async def discard(self, shell: Shell) -> None:
        """End a shell that lives but can run nothing more."""
        shell.process.kill(grace=0)
        await shell.process.wait_gone()
        self._notice = "The last shell could run no more commands; this is a fresh one."

    def leave_behind(self, shell: Shell) -> None:
        """Let a shell go on with its command; the next one takes over the state from before that command."""
        self._past.append(shell)
        if self._is_away:
            self._is_back()
            return
        self.current = None
        self._next_state, self._next_cwd = shell.saved_state(), shell.cwd
        self._notice = "The last command still runs as a job, in its own shell; this is a fresh one" + (
            " with the state from before it." if self._next_state else "."
        )

    async def end_all(self) -> None:
        shells = [*self._past, *filter(None, (self.current, self._here))]
        self._is_back()
        self._past, self.current = [], None
        for shell in shells:
            shell.process.kill(grace=CLOSE_GRACE)
        for shell in shells:
            await shell.process.wait_gone()
            shell.close()

    def forget(self) -> None:
        """Let the next shell begin with nothing of the last."""
        self._notice = self._next_state = self._next_cwd = None
        self._next_status = 0

    async def aclose(self) -> None:
        """Give the keeper back, if it was borrowed."""
        if self._borrowed:
            children, self._borrowed = self._borrowed, None
            await return_keeper(children)

    async def _start(
        self, state: bytes | None, *, children: Children | None = None, carried: CarriedState | None = None
    ) -> Shell:
        program = find_interpreter("bash")
        if program is None:
            raise ShellError("there is no bash on the PATH; a session needs bash 4.4 or later")
        children = children or self._children or self._borrowed
        if children is None:
            children = self._borrowed = borrow_keeper()
        cwd = (carried.cwd if carried else self._next_cwd) or self._first_cwd
        # A folder of a sandbox may be none here, and what was approved for one must not run in another.
        if not carried and cwd != self._first_cwd and not os.path.isdir(cwd):  # noqa: ASYNC240 - a moment
            cwd = self._first_cwd
        if not carried and self._next_cwd:
            cwd = self._nearest_folder(cwd)
        env, extra = self._variables()
        setup = ShellSetup(program=program.path, cwd=cwd, env=env, extra_env=extra, limits=self._limits, tty=self._tty)
        return await Shell.start(children.keeper, setup, state=state, carried=carried)

    def _nearest_folder(self, cwd: str) -> str:
        """Where a session goes on whose folder was removed, and its beginning too; the caller is told."""
        nearest = cwd
        while not os.path.isdir(nearest):
            nearest = os.path.dirname(nearest)
        if nearest != cwd:
            self._notice = " ".join(filter(None, (self._notice, f"{cwd} is gone, so that it begins in {nearest}.")))
        return nearest

    def _variables(self) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """What the shell sees: the application's variables less credentials, or those it was given."""
        if self._env is None:
            given = self._parent.current()
        else:
            given = {as_bytes(name): as_bytes(value) for name, value in self._env.items()}
        given = {name: value for name, value in given.items() if name not in NOT_PASSED_ON}
        quiet = {as_bytes(name): as_bytes(value) for name, value in NON_INTERACTIVE.items()}
        return given, {name: value for name, value in quiet.items() if self._env is None or name not in given}

    def _retire(self, shell: Shell) -> None:
        """After the end of a shell: what it left running goes on, and the next shell begins where it was."""
        self._next_cwd = shell.cwd
        self._next_state = shell.saved_state()
        code, number = read_wait_status(shell.process.exit_status or 0)
        how = f"was killed by signal {number}" if number else f"ended with status {code}"
        if shell.was_told_to_end:
            how = "could not be brought back from its last command"
        kept = (
            "variables, functions, aliases, options and directory were taken over"
            if self._next_state
            else "its state could not be taken over"
        )
        self._notice = self._notice or f"The shell {how}; this is a fresh one, {kept}."
        self._past = [*(past for past in self._past if not past.process.is_gone), shell]
        shell.close()
        self.current = None


def reach_of(children: Children | None) -> Reach:
    """How far those reach who run there."""
    return children.sandbox.reach if children and children.sandbox else "outside"


SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Children, list[int]]] = WeakKeyDictionary()
"""For each event loop the keeper that its sessions share, and how many they are."""


def borrow_keeper() -> Children:
    """The loop's keeper, a new one for the first session."""
    loop = asyncio.get_running_loop()
    children, users = SHARED.setdefault(loop, (Children(), [0]))
    users[0] += 1
    return children


async def return_keeper(children: Children) -> None:
    """The last session that returns the keeper ends it."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop)
    if shared is None or shared[0] is not children:
        return
    shared[1][0] -= 1
    if shared[1][0] == 0:
        del SHARED[loop]
        await children.aclose()
