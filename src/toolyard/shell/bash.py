"""One bash process and its private channels: commands go in, records and output come out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import secrets
import select
import signal
import time
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from toolyard.errors import ProcessError, ShellError
from toolyard.process.cgroups import ControlGroup
from toolyard.process.child import read_wait_status
from toolyard.process.keeper_link import Home
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.private_folders import PrivateFolder
from toolyard.process.process_tree import LINUX, pid_outside, processor_seconds
from toolyard.shell.channels import OutputChannel, OwnOutput, Terminal
from toolyard.shell.handover import leave_script, snapshot_script, takes_over
from toolyard.shell.limits_hit import which_limit
from toolyard.shell.wire import (
    BUILTIN,
    HAS_NO_ERRORS,
    SOURCING,
    Record,
    Records,
    hides_much,
    lists_traps,
    may_define,
    plain_word,
    quoted,
    record_line,
    run_line,
    run_lines_to_the_end,
    sets_exit_trap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.process.keeper_link import KeeperLink, Spawned
    from toolyard.shell.channels import Transcript

__all__ = ["NOTHING_TO_READ", "TERMINAL", "Bash", "BashSetup", "Command", "ShellGone"]

OLDEST = 404
"""Bash 4.4, as a number with two digits for the minor version."""
START_PATIENCE = 20.0
QUICK = 0.0005
"""After a command that took longer, the next is not waited for in the loop's own time."""
SWIFT_PATIENCE = 10
"""In milliseconds. A wait that ends before the next tick of the kernel's clock makes it set an alarm, which on a
virtual machine costs as much as all the rest."""
ABORT = getattr(signal, "SIGRTMAX", 64) - 7
"""The signal of ours."""
GREETING, PROBE = 0, 1
"""The numbers of records that are not of a command: the first of all, and the one that our own script asks for."""
LAST_STATUS = re.compile(r"\$\{?\?|\bexit\s*(?:$|[;&|\n])")
NOTHING_TO_READ = b"/dev/null"
TERMINAL = b"/dev/tty"
PRINT_NOTHING = b"exec >/dev/null\n"
MARKS = (1 << 20) - 1
EVERY_LIMIT = Limits(cpu_seconds=0, memory_bytes=0, file_bytes=0, open_files=0, processes=0)
NO_MARK = -1
"""Of a command that starts nothing, and so has nothing that would carry one."""

Change = Literal["done", "ended", "timeout", "waiting", "too_much"]


class BashSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What every shell of a session starts with."""

    program: str
    cwd: str
    env: Mapping[bytes, bytes]
    extra_env: Mapping[bytes, bytes]
    limits: Limits
    tty: bool


class ShellGone(Exception):
    """The shell has ended since we last heard of it, and does not know of what it was told."""


class Command:
    """A command from the moment it is sent."""

    __slots__ = (
        *("_waiter", "changes", "channel", "ended", "input", "mark", "news", "number", "record", "started", "text"),
        "transcript",
    )

    def __init__(self, number: int, text: str, transcript: Transcript, mark: int) -> None:
        self.number = number
        self.text = text
        self.transcript = transcript
        self.mark = mark
        self.started = self.ended = time.monotonic()
        self.record: Record | None = None
        self.channel: OutputChannel | OwnOutput | None = None
        self.input: int | None = None
        """Where to write what it shall read, if it reads."""
        self.news: str | None = None
        """What the caller has to know of the shell that it runs in."""
        self.changes: list[Change] = []
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, change: Change) -> None:
        """Something happened to it."""
        self.changes.append(change)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next_change(self, *, within: float | None = None) -> Change:
        """The next thing that happens, `timeout` when nothing does in time."""
        loop = asyncio.get_running_loop()
        if not self.changes:
            self._waiter = loop.create_future()
            alarm = None if within is None else loop.call_later(max(within, 0.0), self.tell, "timeout")
            try:
                await self._waiter
            finally:
                if alarm:
                    alarm.cancel()
        return self.changes.pop(0)


class Bash:
    """A bash that waits for commands."""

    def __init__(self, setup: BashSetup, folder: PrivateFolder) -> None:
        self.setup = setup
        self.pid = 0
        self.cwd = setup.cwd
        self.flags = ""
        self.exit_status: int | None = None
        """Its wait status once it has ended."""
        self.status = 0
        """The exit status of the last command, as `$?` has it."""
        self.current: Command | None = None
        self.trouble: str | None = None
        """Why this shell can run no more commands, though it lives."""
        self.is_quick = True
        """Whether the last command took next to nothing."""
        self.has_own_pids = False
        """Whether processes have other numbers where it is."""
        self._limits = setup.limits
        """Those of the command that it runs now."""
        self.is_limited = setup.limits != NO_LIMITS
        self._first_mark = 0
        self._numbers = PROBE
        nonce = secrets.token_hex(6)
        self._nonce = nonce.encode()
        self._folder = folder
        self._records = Records(nonce, folder.path)
        self._expected: dict[int, Callable[[Record], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._terminal: Terminal | None = None
        self._channel: OutputChannel | None = None
        self._own_output = OwnOutput()
        self._group = ControlGroup()
        self._spawned: Spawned | None = None
        self._watching: asyncio.Task[None] | None = None
        self._control = self._answers = -1
        self._script = -1
        self._script_size = 0
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._exited = asyncio.Event()
        self._swift = b""
        """How to ask for the record of a builtin, once the shell has been heard of."""
        self._same_as_before = b""
        """What a record says besides the status, as long as nothing has changed."""
        self._greeted = False
        self._plain_words = True
        self._can_source = True
        self._can_abort = True
        """Whether the trap on our own signal is set; without it the signal would end the shell."""
        self._leaves_state = True
        """Whether the EXIT trap is ours, by which the shell hands its state on."""
        self._lost_words: list[bytes] = []
        self._dot = SOURCING[0]
        self._looking = False
        self._aborted: Command | None = None
        self._has_snapshot = False
        self._on_screen: Transcript | None = None
        """Who hears what is printed on the terminal: the last command, also a moment after its end."""
        self._over: Record | None = None
        """The record of a command that is over, while we look at what it did."""
        self._poll, self._both = select.poll(), select.poll()
        self._first_rlimits: dict[int, int] = {}

    @classmethod
    async def start(cls, keeper: KeeperLink, setup: BashSetup, *, state: bytes | None = None) -> Bash:
        """A shell that is ready, with the state of another if that is given."""
        bash = cls(setup, new_folder(keeper))
        try:
            bash._spawn(keeper, state)
            async with asyncio.timeout(START_PATIENCE):  # unlike wait_for it never loses a cancellation
                await bash._started
        except BaseException as error:
            bash.kill()
            bash.close()
            bash._folder.remove()
            if isinstance(error, TimeoutError):
                raise ShellError(f"{setup.program} does not answer") from None
            raise
        return bash

    def pid_here(self, pid: int) -> int:
        """The number of a child of its own, of which it told the number that it has where the shell is."""
        return pid_outside(pid, self.pid) if pid and self.has_own_pids else pid

    # --- commands

    @property
    def is_swift(self) -> bool:
        """Whether a builtin can be run by itself now, with nothing before or after it."""
        free = self._plain_words and self._leaves_state and not self._expected and "x" not in self.flags
        return free and self.is_quick and self._swift != b""

    def run_swiftly(self, text: str) -> tuple[int | None, bytes]:
        """Run a builtin that starts nothing: its status and what it printed; no status when it is not over at once.

        Going through the event loop would double what such a command costs, and so would all that only others need.
        So it is waited for in the loop's own time, for some milliseconds at most, and its record is read at a glance.
        """
        self._numbers += 1
        number = b"%d" % self._numbers
        form = b"%b\n%b" if text in HAS_NO_ERRORS else b"%b 2>&1\n%b"
        self._send(form % (text.encode(), self._swift % number))
        ready = self._both.poll(SWIFT_PATIENCE)
        if ready and ready[0][0] != self._answers:
            ready = self._both.poll(SWIFT_PATIENCE)  # what it printed came first
        if not ready or ready[0][0] != self._answers:
            return None, b""
        data = os.read(self._answers, 65536)
        words = data.split(b" ", 4)
        if len(words) > 4 and words[2] == number and words[4] == self._same_as_before:
            self.status = int(words[3])
            # The two are looked at in this order, so that what was printed before the record is seen with it.
            return self.status, self._own_output.take() if len(ready) > 1 else b""
        return None, data

    def adopt(self, text: str, transcript: Transcript, heard: bytes) -> Command:
        """Go on with a builtin that was not over at once, or changed something."""
        command = self.current = Command(self._numbers, text, transcript, NO_MARK)
        command.channel = self._own_output
        for record in self._records.feed(heard):
            self._take(record)
        words = heard.split(b" ", 4)
        if command.record and len(words) > 4:
            self._same_as_before = words[4]
        return command

    def limit(self, limits: Limits) -> None:
        """Let the next command have limits of its own, which its processes keep; the shell has other ones after it.

        Only the lower, soft half of each can be set, for nobody could raise the other again.
        """
        if limits is self._limits or limits == self._limits:
            return
        self._limits = limits
        self.is_limited = limits != NO_LIMITS
        wanted = dict(limits.as_rlimits())
        for which, given in self._rlimits().items():
            value = wanted.get(which, given)
            if which == resource.RLIMIT_CPU and which in wanted:
                value += round(processor_seconds(self.pid))
            with contextlib.suppress(OSError, ValueError):
                _, most = resource.prlimit(self.pid, which)
                least = value if most == resource.RLIM_INFINITY else min(value, most)
                resource.prlimit(self.pid, which, (most if value == resource.RLIM_INFINITY else least, most))

    def _rlimits(self) -> dict[int, int]:
        """The limits that the shell started with, as far as a command may have others."""
        if not self._first_rlimits:
            for which, _ in EVERY_LIMIT.as_rlimits():
                self._first_rlimits[which], _ = resource.prlimit(self.pid, which)
        return self._first_rlimits

    def submit(self, text: str, transcript: Transcript, *, stdin: bytes, snapshot: bool = False) -> Command:
        """Send a command; the shell must be free."""
        word = plain_word(text) if self._plain_words and "x" not in self.flags else None
        if word in BUILTIN and not self.setup.tty:
            self._numbers += 1
            command = Command(self._numbers, text, transcript, NO_MARK)
            command.channel = self._own_output
            lines = b"%b 2>&1\n%b" % (text.encode(), self._ask(command.number))
        else:
            command = self._new_command(text, transcript)
            lines = self._with_streams(command, word, stdin)
        self._has_snapshot = snapshot or not self._leaves_state or (word is None and sets_exit_trap(text))
        if self._has_snapshot:
            lines = self._own(b"snapshot") + b"\n" + lines
        self._send(lines)
        self.current = command
        self._on_screen = transcript
        return command

    def _with_streams(self, command: Command, word: str | None, stdin: bytes) -> bytes:
        """A command that may start and read anything: it prints to a channel that it may go on to hold."""
        output = TERMINAL
        if not self.setup.tty:
            command.channel = self._channel = self._channel or self._new_channel()
            output = self._channel.word
        if word is None:
            return self._from_file(command.text, stdin=stdin, output=output, number=command.number)
        return run_line(command.text.encode(), stdin=stdin, output=output) + self._ask(command.number)

    def wait_briefly(self, command: Command) -> bool:
        """Whether a command is over at once, as most are that bash runs by itself.

        Going through the event loop would double what such a command costs. So after one that took next to nothing the
        next is waited for in the loop's own time, for a millisecond at most.
        """
        if self.is_quick and self._poll.poll(1):
            self._hear()
        return command.record is not None

    def follow(self, command: Command) -> None:
        """Read what it prints as it comes."""
        if command.channel:
            command.channel.follow(command.transcript)

    def start_job(
        self, text: str, transcript: Transcript, *, interactive: bool, on_end: Callable[[Record], None]
    ) -> Command:
        """Send a command that goes on beside the shell; its status is the process id of the job."""
        command = self._new_command(text, transcript)
        channel = command.channel = self._new_channel()
        self._numbers += 1
        self._expected[self._numbers] = on_end
        script = f"j{self._numbers}"
        self._folder.write(script, text.encode("utf-8", "surrogateescape"))
        stdin = self._open_input(command) if interactive else NOTHING_TO_READ
        job = run_line(self._own(script.encode()), stdin=stdin, output=channel.word)
        before = self._note_words(text)
        # With job control it gets a process group of its own, and does not go with the shell when that ends.
        on, off = (b"", b"") if "m" in self.flags else (b"\\builtin set -m\n", b"\\builtin set +m\n")
        self._send(
            before + on + b"( " + job + self._ask(self._numbers) + b") &\n" + off + self._ask(command.number, b"$!")
        )
        self.current = command
        return command

    def _open_input(self, command: Command) -> bytes:
        """A pipe that a job reads; it has no end as long as we hold it."""
        name = f"i{command.number}"
        command.input = self._folder.new_pipe(name, os.O_RDWR)
        return quoted(self._folder.place(name))

    async def ask_status(self, pid: int) -> int:
        """The exit status of a job as the shell remembers it."""
        self._numbers += 1
        answer: asyncio.Future[int] = self._loop.create_future()
        self._expected[self._numbers] = lambda record: answer.set_result(record.status)
        self._send(b"\\builtin wait %d\n" % pid + self._ask(self._numbers))
        return await answer

    def keep_channel(self, command: Command) -> OutputChannel | None:
        """Leave a command's output to whoever still prints to it; the next command gets another."""
        channel = command.channel
        if channel is self._channel:
            self._channel = None
        return channel if isinstance(channel, OutputChannel) else None

    # --- signals and the end

    def interrupt(self) -> None:
        """Let the shell give up what it is doing, and come back if it was stopped.

        Both signals must find it at once: one that came alone to a shell that reads its next line would let the trap
        jump out of bash's own reading, which it does not survive.
        """
        self._hear()
        if self.exit_status is not None or self.current is None:
            return
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGSTOP)
            if self._can_abort:
                self._aborted = self.current
                os.kill(self.pid, ABORT)
            os.kill(self.pid, signal.SIGINT)
            os.kill(self.pid, signal.SIGCONT)

    def ask_again(self, command: Command) -> None:
        """Repeat the request for a record, which an interrupt may have swept away, and with it what else we asked."""
        self._looking = False
        if self._over:
            self._conclude(command, self._over)
            return
        if self.exit_status is None:
            with contextlib.suppress(ShellGone):
                self._send(self._ask(command.number))

    def type(self, text: str) -> None:
        """Type on the terminal."""
        if self._terminal:
            self._terminal.write(text.encode("utf-8", "surrogateescape"))

    def drain_terminal(self) -> None:
        """Take what was printed on the terminal by now."""
        if self._terminal:
            self._terminal.drain()

    @property
    def terminal_name(self) -> str:
        """The path of its terminal."""
        return self._terminal.name if self._terminal else ""

    def state(self) -> bytes | None:
        """What the shell left behind for the next one; one that was killed could leave only what it wrote before."""
        if self.exit_status == signal.SIGKILL and not self._has_snapshot:
            return None
        try:
            return takes_over(self._folder.read("state"))
        except OSError:
            return None

    def kill(self, *, grace: float = 0.2) -> None:
        """End it and everything that it started; an interactive bash heeds no other signal to end."""
        if self.pid and self.exit_status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGHUP)
        if self._spawned:
            self._spawned.kill(grace=grace)

    async def has_exited(self) -> None:
        """Wait for its own end, of which we may hear a moment later than of what follows from it."""
        await self._exited.wait()

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._watching is None or self._watching.done()

    def forget_job(self, on_end: Callable[[Record], None]) -> None:
        """Nobody waits for the end of a job any more."""
        self._expected = {number: heard for number, heard in self._expected.items() if heard is not on_end}

    async def gone(self) -> None:
        """Wait until nothing of it is left."""
        if self._watching:
            await asyncio.wait([self._watching])

    def close(self) -> None:
        """Let go of the channels; what the shell started may go on."""
        if self._watching:
            self._watching.cancel()
        if self._spawned and self.exit_status is not None:
            self._spawned.release()
        if self._answers >= 0:
            self._loop.remove_reader(self._answers)
        for fd in (self._control, self._answers, self._script):
            if fd >= 0:
                os.close(fd)
        self._control = self._answers = self._script = -1
        if self._channel:
            self._channel.close()
        self._own_output.close()
        if self._terminal:
            self._terminal.close()
        self._folder.close()

    # --- inside

    def _spawn(self, keeper: KeeperLink, state: bytes | None) -> None:
        self._script = self._folder.new_file("command")
        self._script_path = quoted(self._folder.place("command"))
        kept = quoted(self._folder.place("state"))
        self._folder.write("leave", leave_script(kept))
        self._folder.write("probe", self._ask(PROBE))
        self._folder.write("snapshot", snapshot_script(kept))
        if state is not None:
            self._folder.write("before", state)
        self._terminal = Terminal(self._on_terminal)
        control, self._control = os.pipe()
        self._answers, status = os.pipe()
        os.set_blocking(self._answers, False)
        os.set_blocking(self._control, False)
        self._send(self._first_lines(taking_over=state is not None))
        self._loop.add_reader(self._answers, self._hear)
        self._poll.register(self._answers, select.POLLIN)
        self._both.register(self._answers, select.POLLIN)
        self._both.register(self._own_output.fd, select.POLLIN)
        limits = self._make_group()
        home = Home(
            terminal=os.fsencode(self._terminal.name),
            folder=os.fsencode(self._folder.path),
            groups=[os.fsencode(folder) for folder in self._group.folders],
            on_started=self._on_started,
            on_exited=self._on_exited,
        )
        self._spawned = keeper.spawn(
            [os.fsencode(self.setup.program), b"--noprofile", b"--norc", b"--noediting", b"+o", b"history", b"-i"],
            cwd=os.fsencode(self.setup.cwd),
            env=self.setup.env if state is None else {},  # of which the state has what is left
            extra_env=self.setup.extra_env if state is None else {},
            limits=limits.as_rlimits(),
            fds={0: control, 1: self._own_output.theirs, 2: status},
            home=home,
        )
        self.has_own_pids = keeper.own_pids
        self._watching = self._loop.create_task(self._watch_spawn(self._spawned))

    def _make_group(self) -> Limits:
        """Limit all processes together where that can be; tell what is left for each of them."""
        limits = self.setup.limits
        if limits.memory_bytes is not None or limits.processes is not None:
            self._group = ControlGroup.create(memory_bytes=limits.memory_bytes, processes=limits.processes)
        return replace(
            limits,
            memory_bytes=None if self._group.holds("memory") else limits.memory_bytes,
            processes=None if self._group.holds("pids") else limits.processes,
        )

    def limits_hit(self, status: int, output: str) -> str | None:
        """Which limit a command that failed has run into, if one of ours."""
        return which_limit(self._limits, self._group.hits(), status, output)

    async def _watch_spawn(self, spawned: Spawned) -> None:
        """Hear of a start that fails, of a keeper that is lost, and of an end that was asked for."""
        try:
            ended = await spawned.ended()
            self._on_exited(ended.wait_status if ended else signal.SIGKILL)
            self._group.remove()  # a keeper in a sandbox cannot
        except ProcessError as error:
            if not self._started.done():
                self._started.set_exception(ShellError(f"{self.setup.program} cannot be started: {error}"))
            self._on_exited(signal.SIGKILL)

    def _first_lines(self, *, taking_over: bool) -> bytes:
        version = b"$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))"
        lines = [
            b"PS1= PS2=",
            b"set +H +m",
            b"unset HISTFILE MAILCHECK",
            self._leave_trap(),
            self._abort_trap(),
            *([self._own(b"before") + b" </dev/null &>/dev/null"] if taking_over else []),
        ]
        imported = any(name.startswith(b"BASH_FUNC_") for name in self.setup.env)
        self._plain_words = not (taking_over or imported)
        look = b"" if self._plain_words else PRINT_NOTHING + self._look_around()
        return b"\n".join(lines) + b"\n" + look + self._ask(GREETING, version)

    def _leave_trap(self) -> bytes:
        return b"trap " + quoted(b"\\. " + quoted(self._folder.place("leave"))) + b" EXIT"

    def _abort_trap(self) -> bytes:
        """By a signal of our own, which bash heeds once the child it waits for is gone, it gives up the rest too."""
        return b"trap 'kill -s INT $$' %d" % ABORT

    def _ask(self, number: int, what: bytes = b"$?") -> bytes:
        return record_line(self._nonce, number, what)

    def _new_command(self, text: str, transcript: Transcript) -> Command:
        self._numbers += 1
        mark = 0
        if self._first_mark:
            mark = self._first_mark + 1 + self._numbers % MARKS
            with contextlib.suppress(OSError):
                resource.prlimit(self.pid, resource.RLIMIT_RTTIME, (mark, resource.RLIM_INFINITY))
        return Command(self._numbers, text, transcript, mark)

    def _new_channel(self) -> OutputChannel:
        self._numbers += 1
        try:
            return OutputChannel(self._folder, f"o{self._numbers}")
        except OSError as error:
            raise ShellError(f"a bash session's output cannot be read: {error.strerror}") from error

    def _from_file(self, text: str, *, stdin: bytes, output: bytes, number: int) -> bytes:
        """Anything that is more than plain words: bash reads it like a script, so that it acts as it would in one."""
        if self._terminal:
            self._terminal.catch_up()
        before = self._note_words(text)
        after = last = b""
        self._write_script(text)
        if lists_traps(text):
            before += b"\\builtin trap - %d%b\n" % (ABORT, b" EXIT" if self._leaves_state else b"")
            self._can_abort = False
        if hides_much(text):
            after += self._look_around()
        if self.status and "e" not in self.flags and (not self._plain_words or LAST_STATUS.search(text)):
            last = b"(exit %d)" % self.status
        source, ask = self._dot + b" " + self._script_path, self._ask(number)
        if self._leaves_state and not sets_exit_trap(text):
            before += last + b"\n" if last else b""
            return before + run_line(source, stdin=stdin, output=output) + ask + after
        source = last + b"; " + source if last else source
        return before + run_lines_to_the_end(source, stdin=stdin, output=output, ask=ask) + after

    def _look_around(self) -> bytes:
        """Ask whether the EXIT trap is still ours, and whether our one word still means what it did."""
        self._looking = True
        self._can_source = False
        self._numbers += 1
        self._expected[self._numbers] = self._on_look
        trap = b"\\builtin trap -p EXIT >%b\n" % quoted(self._folder.place("trap"))
        return trap + self._own(b"probe") + b"\n" + self._ask(self._numbers)

    def _on_look(self, _: Record) -> None:
        if not self._can_source:
            self._try_another_word()
            return
        try:
            trap = self._folder.read("trap")
        except OSError:
            trap = b"unknown"
        self._leaves_state = not trap or os.fsencode(self._folder.path) in trap
        lines = b"" if trap else b"\\builtin %b\n" % self._leave_trap()
        if not self._can_abort:
            lines += b"\\builtin %b\n" % self._abort_trap()
            self._can_abort = True
        with contextlib.suppress(ShellGone):
            self._send(lines)
        self._looked()

    def _try_another_word(self) -> None:
        """Our word means something else now: a function, or nothing at all."""
        self._lost_words.append(self._dot)
        word = next((word for word in SOURCING if word not in self._lost_words), None)
        if word is None and len(self._lost_words) > len(SOURCING):
            self.trouble = "bash has no way left to read a file"
            self._looked()
            return
        self._dot = word or SOURCING[0]
        with contextlib.suppress(ShellGone):
            self._send((b"" if word else b"\\builtin enable .\n") + self._look_around())

    def _looked(self) -> None:
        """A command that was over waits for this."""
        self._looking = False
        if self._over and self.current:
            self._conclude(self.current, self._over)

    def _write_script(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        try:
            os.pwrite(self._script, data, 0)
            if len(data) < self._script_size:
                os.ftruncate(self._script, len(data))
        except OSError as error:
            self._script_size = 1 << 62  # unknown, so that the next is cut to its size
            raise ShellError(f"there is no room for the command's text: {error.strerror}") from error
        self._script_size = len(data)

    def _own(self, name: bytes) -> bytes:
        """Run a script of our own, which prints nothing."""
        return self._dot + b" " + quoted(os.fsencode(self._folder.path) + b"/" + name)

    def _note_words(self, text: str) -> bytes:
        """Once words may mean anything, nothing is plain any more, and what bash itself prints is for nobody."""
        if not self._plain_words or not may_define(text):
            return b""
        self._plain_words = False
        return PRINT_NOTHING

    def _send(self, lines: bytes) -> None:
        try:
            os.write(self._control, lines)
        except BlockingIOError:
            raise ShellError("the shell does not read its commands any more") from None
        except BrokenPipeError:
            raise ShellGone from None

    def _hear(self) -> None:
        if self._answers < 0:
            return
        try:
            data = os.read(self._answers, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._answers)
            return
        for record in self._records.feed(data):
            self._take(record)

    def _take(self, record: Record) -> None:
        command = self.current
        if command is not None and record.number == command.number:
            if self._looking:
                self._over = record
            else:
                self._conclude(command, record)
        elif expected := self._expected.pop(record.number, None):
            expected(record)
        elif record.number == PROBE:
            self._can_source = True
        elif record.number == GREETING and not self._started.done():
            self._greet(record)

    def _conclude(self, command: Command, record: Record) -> None:
        self._over = None
        self.current = None
        if self._aborted is command and record.status == 128 + ABORT:  # our own signal is nobody else's business
            record = record._replace(status=128 + signal.SIGINT)
        self.cwd, self.flags, self.status = record.cwd, record.flags, record.status
        if record.trouble:
            self.trouble = f"bash cannot open its channels any more ({record.trouble})"
        command.record = record
        command.ended = time.monotonic()
        self.is_quick = command.ended - command.started < QUICK
        command.tell("done")

    def _greet(self, record: Record) -> None:
        self.cwd, self.flags = record.cwd, record.flags
        version = record.status
        if version < OLDEST:
            has = f"{self.setup.program} is version {version // 100}.{version % 100}"
            self._started.set_exception(ShellError(f"{has}; a session needs bash 4.4 or later"))
        else:
            self._greeted = True
            if not self.setup.tty:
                self._swift = self._ask(0).replace(b" 0 ", b" %b ", 1)
            self._begin()
        if self._terminal:
            self._terminal.taken()

    def _on_started(self, pid: int, mark: int) -> None:
        self.pid = pid
        self._first_mark = mark if LINUX else 0
        with contextlib.suppress(OSError):
            self._group.add(pid)
        self._begin()

    def _begin(self) -> None:
        """Bash has spoken and the keeper has named it, in whichever order."""
        if self.pid and self._greeted and not self._started.done():
            self._started.set_result(None)

    def _on_terminal(self, data: bytes) -> None:
        if self._on_screen:
            self._on_screen.add(data)

    def _on_exited(self, wait_status: int) -> None:
        if self.exit_status is not None:
            return
        self.exit_status = wait_status
        self._exited.set()
        self.status, _ = read_wait_status(wait_status)
        if not self._started.done():
            self._started.set_exception(ShellError(f"{self.setup.program} ended at once with status {self.status}"))
        if self.current:
            self.current.tell("ended")


def new_folder(keeper: KeeperLink) -> PrivateFolder:
    """A folder for a shell's channels, where the keeper's children can reach it."""
    try:
        return PrivateFolder(keeper.exchange)
    except OSError as error:
        raise ShellError(f"there is no room for a bash session's channels: {error}") from error
