"""One bash that waits for commands, and its private channels: commands go in, records and output come out.

It owns the parts, none of which knows of this: the process (`bash_process`), the line that we talk on (`control_line`),
what we need inside (`foothold`), what is said for a command (`command_lines`), where it prints (`channels`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from typing import TYPE_CHECKING

from toolyard.bash.session.bootstrap import ABORT, Foothold
from toolyard.bash.session.channels import OutputChannel, OwnOutput, Terminal
from toolyard.bash.session.command import NO_MARK, Command
from toolyard.bash.session.control_channel import GREETING, PROBE, ControlLine, ShellGone
from toolyard.bash.session.fast_builtins import SwiftBuiltins
from toolyard.bash.session.handover import takes_over
from toolyard.bash.session.protocol import BUILTIN, plain_word, quoted, sets_exit_trap
from toolyard.bash.session.script_lines import CommandLines
from toolyard.bash.session.shell_process import BashProcess, BashSetup
from toolyard.errors import ShellError
from toolyard.process.private_folders import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.bash.session.protocol import Record
    from toolyard.process.keeper.link import KeeperLink
    from toolyard.process.limits import Limits
    from toolyard.process.output import Transcript


OLDEST = 404
"""Bash 4.4, as a number with two digits for the minor version."""
VERSION = b"$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))"
QUICK = 0.0005
"""After a command that took longer, the next is not waited for in the loop's own time."""
NOTHING_TO_READ = b"/dev/null"
TERMINAL = b"/dev/tty"
MARKS = (1 << 20) - 1


class Bash:
    """A bash that waits for commands."""

    def __init__(self, setup: BashSetup, folder: PrivateFolder) -> None:
        self.process = BashProcess(setup, self._on_exit)
        self.cwd = setup.cwd
        self.flags = ""
        self.status = 0
        """The exit status of the last command, as `$?` has it."""
        self.current: Command | None = None
        self.waiting: Command | None = None
        """The current one while it waits for somebody to type, and nobody for it."""
        self.trouble: str | None = None
        """Why this shell can run no more commands, though it lives."""
        self._setup = setup
        self._folder = folder
        with contextlib.ExitStack() as opened:  # all of it or nothing
            opened.callback(folder.close)
            self.terminal = opened.enter_context(contextlib.closing(Terminal(self._on_terminal)))
            self._control = opened.enter_context(contextlib.closing(ControlLine(folder.path, self._take)))
            self._own_output = opened.enter_context(contextlib.closing(OwnOutput()))
            self._foothold = Foothold(self._control, folder, self._on_looked)
            self._lines = opened.enter_context(contextlib.closing(CommandLines(self._control, self._foothold, folder)))
            self._opened = opened.pop_all()
        self._channel: OutputChannel | None = None
        self._swift: SwiftBuiltins | None = None
        self._is_quick = True
        """Whether the last command took next to nothing."""
        self._aborted: Command | None = None
        self._has_snapshot = False
        self._on_screen: Transcript | None = None
        """Who hears what is printed on the terminal: the last command, also a moment after its end."""
        self._over: Record | None = None
        """The record of a command that is over, while we look at what it did."""

    @classmethod
    async def start(cls, keeper: KeeperLink, setup: BashSetup, *, state: bytes | None = None) -> Bash:
        """A shell that is ready, with the state of another if that is given."""
        with contextlib.ExitStack() as undo:
            folder = new_folder(keeper)
            undo.callback(folder.remove)
            bash = cls(setup, folder)
            undo.callback(bash.close)
            undo.callback(bash.process.kill)
            bash._spawn(keeper, state)
            await bash.process.ready()
            undo.pop_all()
        return bash

    # --- commands

    @property
    def is_swift(self) -> bool:
        """Whether a builtin can be run by itself now, with nothing before or after it."""
        foothold = self._foothold
        free = foothold.plain_words and foothold.leaves_state and self._control.is_quiet and "x" not in self.flags
        return free and self._is_quick and self._swift is not None

    def run_swiftly(self, text: str) -> tuple[int | None, bytes]:
        """Run a builtin when the shell `is_swift`: status and output; no status when one has to `adopt` it."""
        if self._swift is None:
            return None, b""
        status, heard = self._swift.run(text, self._control.next_number())
        if status is not None:
            self.status = status
        return status, heard

    def adopt(self, text: str, transcript: Transcript, heard: bytes) -> Command:
        """Go on with a builtin that was not over at once, or changed something."""
        command = self.current = Command(self._control.last_number, text, transcript, NO_MARK)
        command.channel = self._own_output
        self._control.take(heard)
        if command.record and self._swift:
            self._swift.learn(heard)
        return command

    def limit(self, limits: Limits) -> None:
        """Let the next command have these limits."""
        self.process.limits.change(self.process.pid, limits)

    def submit(self, text: str, transcript: Transcript, *, stdin: bytes, snapshot: bool = False) -> Command:
        """Send a command; the shell must be free."""
        word = plain_word(text) if self._foothold.plain_words and "x" not in self.flags else None
        if word in BUILTIN and not self._setup.tty:
            command = Command(self._control.next_number(), text, transcript, NO_MARK)
            command.channel = self._own_output
            lines = self._lines.for_builtin(text, command.number)
        else:
            command = self._new_command(text, transcript)
            lines = self._with_streams(command, stdin, is_plain=word is not None)
        self._has_snapshot = snapshot or not self._foothold.leaves_state or (word is None and sets_exit_trap(text))
        self._control.send(self._lines.after_snapshot(lines) if self._has_snapshot else lines)
        self.current = command
        self._on_screen = transcript
        return command

    def _with_streams(self, command: Command, stdin: bytes, *, is_plain: bool) -> bytes:
        """A command that may start and read anything: it prints to a channel that it may go on to hold."""
        output = TERMINAL
        if not self._setup.tty:
            command.channel = self._channel = self._channel or self._new_channel()
            output = self._channel.word
        if is_plain:
            return self._lines.for_words(command.text, command.number, stdin=stdin, output=output)
        self.terminal.catch_up()
        last = 0 if "e" in self.flags else self.status
        return self._lines.for_text(command.text, command.number, stdin=stdin, output=output, last_status=last)

    def wait_briefly(self, command: Command) -> bool:
        """Whether a command is over at once, as most are that bash runs by itself.

        Going through the event loop would double what such a command costs. So after one that took next to nothing the
        next is waited for in the loop's own time, for a millisecond at most.
        """
        if self._is_quick and self._control.has_answer(within_ms=1):
            self._control.hear()
        return command.record is not None

    def follow(self, command: Command) -> None:
        """Read what it prints as it comes."""
        if command.channel:
            command.channel.follow(command.transcript)

    def keep_channel(self, command: Command) -> OutputChannel | None:
        """Leave a command's output to whoever still prints to it; the next command gets another."""
        channel = command.channel
        if channel is self._channel:
            self._channel = None
        return channel if isinstance(channel, OutputChannel) else None

    # --- jobs

    def start_job(
        self, text: str, transcript: Transcript, *, interactive: bool, on_end: Callable[[Record], None]
    ) -> Command:
        """Send a command that goes on beside the shell; its status is the process id of the job."""
        command = self._new_command(text, transcript)
        channel = command.channel = self._new_channel()
        end_number = command.end_number = self._control.expect(on_end)
        stdin = self._open_input(command) if interactive else NOTHING_TO_READ
        lines = self._lines.for_job(
            text,
            command.number,
            stdin=stdin,
            output=channel.word,
            end_number=end_number,
            job_control="m" in self.flags,
        )
        self._control.send(lines)
        self.current = command
        return command

    def forget_job(self, command: Command) -> None:
        """Nobody waits for the end of a job any more."""
        if command.end_number is not None:
            self._control.forget(command.end_number)

    async def ask_status(self, pid: int) -> int:
        """The exit status of a job as the shell remembers it."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        number = self._control.expect(lambda record: answer.set_result(record.status))
        self._control.send(b"\\builtin wait %d\n" % pid + self._control.ask(number))
        return await answer

    def _open_input(self, command: Command) -> bytes:
        """A pipe that a job reads; it has no end as long as we hold it."""
        name = f"i{command.number}"
        command.input = self._folder.new_pipe(name, os.O_RDWR)
        return quoted(self._folder.place(name))

    # --- signals and the end

    def interrupt(self) -> None:
        """Let the shell give up what it is doing, and come back if it was stopped.

        Both signals must find it at once: one that came alone to a shell that reads its next line would let the trap
        jump out of bash's own reading, which it does not survive.
        """
        self._control.hear()
        if self.process.exit_status is not None or self.current is None:
            return
        pid = self.process.pid
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGSTOP)
            if self._foothold.can_abort:
                self._aborted = self.current
                os.kill(pid, ABORT)
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGCONT)

    def ask_again(self, command: Command) -> None:
        """Repeat the request for a record, which an interrupt may have swept away, and with it what else we asked."""
        self._foothold.is_looking = False
        if self._over:
            self._conclude(command, self._over)
            return
        if self.process.exit_status is None:
            with contextlib.suppress(ShellGone):
                self._control.send(self._control.ask(command.number))

    def state(self) -> bytes | None:
        """What the shell left behind for the next one; one that was killed could leave only what it wrote before."""
        if self.process.exit_status == signal.SIGKILL and not self._has_snapshot:
            return None
        try:
            return takes_over(self._folder.read("state"))
        except OSError:
            return None

    def close(self) -> None:
        """Let go of the channels; what the shell started may go on."""
        self.process.close()
        if self._channel:
            self._channel.close()
        self._opened.close()

    # --- what is said to it

    def _spawn(self, keeper: KeeperLink, state: bytes | None) -> None:
        may_have_functions = any(name.startswith(b"BASH_FUNC_") for name in self._setup.env)
        first = self._foothold.first_lines(state, may_have_functions=may_have_functions)
        self._control.send(first + self._control.ask(GREETING, VERSION))
        commands, records = self._control.hand_over()
        self.process.spawn(
            keeper,
            {0: commands, 1: self._own_output.hand_over(), 2: records},
            terminal=self.terminal.name,
            folder=self._folder.path,
            with_variables=state is None,  # a state has what is left of them
        )

    def _new_command(self, text: str, transcript: Transcript) -> Command:
        number = self._control.next_number()
        mark = 0
        if self.process.first_mark:
            mark = self.process.first_mark + 1 + number % MARKS
            with contextlib.suppress(OSError):
                resource.prlimit(self.process.pid, resource.RLIMIT_RTTIME, (mark, resource.RLIM_INFINITY))
        return Command(number, text, transcript, mark)

    def _new_channel(self) -> OutputChannel:
        try:
            return OutputChannel(self._folder, f"o{self._control.next_number()}")
        except OSError as error:
            raise ShellError(f"a bash session's output cannot be read: {error.strerror}") from error

    # --- what it says

    def _take(self, record: Record) -> None:
        command = self.current
        if command is not None and record.number == command.number:
            if self._foothold.is_looking:
                self._over = record
            else:
                self._conclude(command, record)
        elif record.number == PROBE:
            self._foothold.on_probe()
        elif record.number == GREETING and self.process.is_starting:
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
        self._is_quick = command.ended - command.started < QUICK
        command.tell("done")

    def _on_looked(self, trouble: str | None) -> None:
        """A command that was over waits for this."""
        self.trouble = trouble or self.trouble
        if self._over and self.current:
            self._conclude(self.current, self._over)

    def _greet(self, record: Record) -> None:
        self.cwd, self.flags = record.cwd, record.flags
        version = record.status
        if version < OLDEST:
            self.process.refuse(f"is version {version // 100}.{version % 100}; a session needs bash 4.4 or later")
        else:
            if not self._setup.tty:
                self._swift = SwiftBuiltins(self._control, self._own_output)
            self.process.has_spoken()
        self.terminal.taken()

    def _on_terminal(self, data: bytes) -> None:
        if self._on_screen:
            self._on_screen.add(data)

    def _on_exit(self, exit_code: int) -> None:
        self.status = exit_code
        if self.current:
            self.current.tell("ended")


def new_folder(keeper: KeeperLink) -> PrivateFolder:
    """A folder for a shell's channels, where the keeper's children can reach it."""
    try:
        return PrivateFolder(keeper.exchange)
    except OSError as error:
        raise ShellError(f"there is no room for a bash session's channels: {error}") from error
