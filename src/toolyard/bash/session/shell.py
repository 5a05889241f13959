"""One bash that waits for commands, and its private channels: commands go in, records and output come out.

It owns its parts, none of which knows of it: the process (`shell_process`), the pipes for commands and records
(`control_channel`), what we install inside (`shell_integration`), the lines for a command (`command_writer`), and where
it prints (`channels`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from typing import TYPE_CHECKING

from toolyard.bash.session.channels import OutputChannel, ShellOutput, Terminal
from toolyard.bash.session.command import NO_MARK, Command
from toolyard.bash.session.command_text import QUIET_BUILTINS, ends_in_what_is_fatal, may_lose_state, plain_word
from toolyard.bash.session.command_writer import CommandWriter
from toolyard.bash.session.control_channel import EVAL_PROBE, GREETING, PROBE, ControlChannel, ShellGone
from toolyard.bash.session.handover import read_state
from toolyard.bash.session.shell_integration import ABORT, ShellIntegration
from toolyard.bash.session.shell_process import ShellProcess, ShellSetup
from toolyard.errors import ShellError
from toolyard.process.private_folders import PrivateFolder
from toolyard.process.process_tree import children_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.bash.session.control_channel import Record
    from toolyard.bash.session.handover import CarriedState
    from toolyard.process.keeper.link import KeeperLink
    from toolyard.process.limits import Limits
    from toolyard.process.output import Transcript
    from toolyard.process.sandbox.sandbox import Sandbox


OLDEST_VERSION = 404
"""Bash 4.4, as a number with two digits for the minor version."""
VERSION = b"$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))"
QUICK = 0.0005
"""After a command that took longer, the event loop does not block for the next."""
MOST_ANSWERS = 3
"""What bash writes for one command: where lines are counted anew, and the record."""
POSIX_VARIABLES = frozenset({b"POSIXLY_CORRECT", b"SHELLOPTS"})
"""Those by which a bash may start in POSIX mode."""
DROPPED = 1
"""The status of a text that an error has dropped."""
SYNTAX_ERROR = 2
FATAL = 127
"""How `bash -c` ends at what stops a script; a bash that reads commands ends with 1."""
NOTHING_TO_READ = b"/dev/null"
TERMINAL = b"/dev/tty"
MARKS = (1 << 20) - 1
OWN_PATIENCE = 10.0
"""How long a free shell may take for lines of ours."""


class Shell:
    """A bash that waits for commands."""

    def __init__(self, setup: ShellSetup, folder: PrivateFolder) -> None:
        self.process = ShellProcess(setup, self._on_exit, lambda: self.current is not None)
        self.cwd = setup.cwd
        self.sandbox: Sandbox | None = None
        """What keeps it in."""
        self.flags = ""
        self.status = 0
        """The exit status of the last command, as `$?` has it."""
        self.current: Command | None = None
        self.waiting: Command | None = None
        """The current command while it waits for input, and no call waits for it."""
        self.trouble: str | None = None
        """Why this shell can run no more commands, though it lives."""
        self.was_told_to_end = False
        self._setup = setup
        self._inherited: dict[bytes, bytes] = {}
        """The variables that it began with, as they are true where it is."""
        self._folder = folder
        with contextlib.ExitStack() as opened:  # all of it or nothing
            opened.callback(folder.close)
            self.terminal = opened.enter_context(contextlib.closing(Terminal(self._on_terminal)))
            self._control = opened.enter_context(contextlib.closing(ControlChannel(folder.path, self._on_record)))
            self._own_output = opened.enter_context(contextlib.closing(ShellOutput()))
            self._integration = ShellIntegration(self._control, folder, self._on_checked)
            writer = CommandWriter(self._control, self._integration, folder, self._open_files)
            self._writer = opened.enter_context(contextlib.closing(writer))
            self._opened = opened.pop_all()
        self._channel: OutputChannel | None = None
        self._is_quick = True
        """Whether the last command took next to nothing."""
        self._aborted: Command | None = None
        self._has_snapshot = False
        self._has_greeted = False
        self._is_end_unclear = False
        """Whether it ended by an `exit`, or by what stops a script, and we do not know by which."""
        self._on_screen: Transcript | None = None
        """What is printed on the terminal goes here: to the last command, also a moment after its end."""
        self._unconfirmed: Record | None = None
        """The record of a command that is over, while we check what it did to our integration."""

    @classmethod
    async def start(
        cls, keeper: KeeperLink, setup: ShellSetup, *, state: bytes | None = None, carried: CarriedState | None = None
    ) -> Shell:
        """A shell that is ready, with the saved state of another, or what is carried over of one elsewhere."""
        with contextlib.ExitStack() as undo:
            folder = new_folder(keeper)
            undo.callback(folder.remove)
            shell = cls(setup, folder)
            undo.callback(shell.close)
            undo.callback(shell.process.kill)
            shell._spawn(keeper, state, carried)
            await shell.process.ready()
            undo.pop_all()
        return shell

    def limit(self, limits: Limits) -> None:
        self.process.limits.change(self.process.pid, limits)

    def submit(self, text: str, transcript: Transcript, *, stdin: bytes, snapshot: bool = False) -> Command:
        """Send a command; the shell must be free."""
        word = plain_word(text) if self._integration.has_standard_words and "x" not in self.flags else None
        if word in QUIET_BUILTINS and not self._setup.tty and "e" not in self.flags:
            command = Command(self._control.next_number(), text, transcript, NO_MARK)
            command.channel = self._own_output
            lines = self._writer.for_builtin(text, word, command.number)
        else:
            command = self._new_command(text, transcript)
            lines = self._lines_with_streams(command, stdin, is_plain=word is not None)
        self._has_snapshot = snapshot or not self._integration.saves_state or (word is None and may_lose_state(text))
        lines = self._writer.after_snapshot(lines) if self._has_snapshot else lines
        self._control.send(lines)
        self.current = command
        command.rest = len(lines) - lines.find(b"\n") - 1
        self._on_screen = transcript
        command.has_terminal = stdin == TERMINAL
        return command

    def _lines_with_streams(self, command: Command, stdin: bytes, *, is_plain: bool) -> bytes:
        """For a command that may start and read anything: its processes may hold its channel after its end."""
        output = TERMINAL
        if not self._setup.tty:
            command.channel = self._channel = self._channel or self._new_channel()
            output = self._channel.word
        if is_plain:
            return self._writer.for_plain_words(command.text, command.number, stdin=stdin, output=output)
        self.terminal.catch_up()
        last = 0 if "e" in self.flags else self.status
        return self._writer.for_text(
            command.text,
            command.number,
            stdin=stdin,
            output=output,
            last_status=last,
            is_traced="x" in self.flags,
        )

    def has_missed(self, command: Command) -> bool:
        """Whether the shell had ended before it read a command: nothing of that has run."""
        has_ended_itself = self.process.exit_status is not None and self._aborted is not command
        return has_ended_itself and self._control.unread() > command.rest

    def wait_briefly(self, command: Command) -> bool:
        """Whether a command is over at once, as most builtins are.

        Going through the event loop would double what such a command costs. So after one that took next to nothing,
        this blocks for the next, for a millisecond at most.
        """
        for _ in range(MOST_ANSWERS if self._is_quick else 0):
            if not self._control.has_answer(within_ms=1):
                break
            self._control.read()
            if command.record is not None:
                return True
        return command.record is not None

    def follow(self, command: Command) -> None:
        if command.channel:
            command.channel.follow(command.transcript)

    def keep_channel(self, command: Command) -> OutputChannel | None:
        """Leave a command's channel to the processes that still hold it; the next command gets another."""
        channel = command.channel
        if channel is self._channel:
            self._channel = None
        return channel if isinstance(channel, OutputChannel) else None

    def start_job(self, text: str, transcript: Transcript, *, on_end: Callable[[Record], None]) -> Command:
        """Send a command that runs beside the shell; the status in its record is the process id of the job."""
        command = self._new_command(text, transcript)
        channel = command.channel = self._new_channel()
        end_number = command.end_number = self._control.expect(on_end)
        lines = self._writer.for_job(
            text,
            command.number,
            stdin=NOTHING_TO_READ,
            output=channel.word,
            end_number=end_number,
            job_control="m" in self.flags,
        )
        self._control.send(lines)
        self.current = command
        return command

    def forget_job(self, command: Command) -> None:
        if command.end_number is not None:
            self._control.forget(command.end_number)

    async def ask_status(self, pid: int) -> int:
        """The exit status of a job as the shell remembers it."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        number = self._control.expect(lambda record: answer.set_result(record.status))
        self._control.send(b"\\builtin wait %d\n" % pid + self._control.ask(number))
        return await answer

    async def snapshot(self) -> bytes | None:
        """Its state in bash's own terms, for another shell beside it; it must be free."""
        await self._do(self._integration.source_own("snapshot"))
        return self._integration.saved_state()

    async def tell_state(self) -> CarriedState:
        """Its state as data, for a shell elsewhere; it must be free."""
        await self._do(self._integration.source_own("dump"))
        env = self._inherited
        return read_state(self._integration.dumped(), self.cwd, env=env, own_folder=self._folder.path)

    async def take_back(self, lines: bytes) -> None:
        """Run lines of ours that change its state; it must be free."""
        name = f"b{self._control.next_number()}"
        self._folder.write(name, lines)
        record = await self._do(self._integration.source_own(name) + b" &>/dev/null")
        self._note_state(record)
        self._folder.remove_file(name)

    def has_only_state(self) -> bool:
        """Whether nothing is lost if another goes on with its state: no process, open file or EXIT trap of its own."""
        open_files = self._open_files()
        if open_files is None:
            return False
        is_alone = not children_of(self.process.pid)
        return is_alone and self._integration.saves_state and max(open_files, default=0) <= 2

    def _open_files(self) -> set[int] | None:
        """Its descriptors; None where they cannot be seen."""
        try:
            return {int(number) for number in os.listdir(f"/proc/{self.process.pid}/fd")}
        except OSError:
            return None

    def finish(self) -> None:
        """Let it end by itself, which saves its state."""
        with contextlib.suppress(ShellGone, ShellError):
            self._control.send(b"\\builtin exit\n")

    def leave(self) -> None:
        """Let it end by itself; what it started goes on."""
        with contextlib.suppress(ShellGone, ShellError):
            self._control.send(b"\\builtin trap - EXIT\n\\builtin exit\n")

    async def _do(self, line: bytes) -> Record:
        """Let it run a line of ours, and wait for that."""
        answer: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        number = self._control.expect(lambda record: None if answer.done() else answer.set_result(record))
        self._control.send(line + b"\n" + self._control.ask(number))
        try:
            async with asyncio.timeout(OWN_PATIENCE):
                return await answer
        except TimeoutError:
            raise ShellError("the shell does not answer") from None

    def interrupt(self, *, firmly: bool = False) -> None:
        """Make the shell give up what it does, and continue if it was stopped.

        A user's own trap on SIGINT may decide otherwise, but not `firmly`.
        """
        self._control.read()
        if self.process.exit_status is not None or self.current is None or self._unconfirmed is not None:
            return  # a signal must not meet the next command
        number = ABORT if firmly and self._integration.can_abort else signal.SIGINT
        self._aborted = self.current
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, number)
            os.kill(self.process.pid, signal.SIGCONT)

    def end(self) -> None:
        """Let it end although it does not react: most often it still saves its state."""
        self.was_told_to_end = True
        if self.process.exit_status is None:
            with contextlib.suppress(OSError):
                os.kill(self.process.pid, signal.SIGTERM)

    def ask_again(self, command: Command) -> None:
        """Repeat the request for a record, which something else may have read."""
        if self.process.exit_status is None and self._unconfirmed is None:
            with contextlib.suppress(ShellGone, ShellError):
                self._control.send(self._control.ask(command.number))

    def has_lost(self, command: Command) -> bool:
        """Whether the shell waits for its next command although it has not told the end of this one."""
        self._control.read()
        return self.current is command and self._unconfirmed is None and self._control.is_awaited(self.process.pid)

    def find_again(self, command: Command) -> None:
        """Ask once more for the end of a command that was lost.

        Most often an error has dropped the text so that bash still prints, and complains, where that did.
        """
        copies = self._control.copies_in(self.process.pid)
        lines = b"".join(b"exec 2>&%d %d>&- >/dev/null\n" % (copy, copy) for copy in copies[:1])
        number = self._control.expect(lambda record: self._on_found(command, record, was_dropped=bool(copies)))
        check = self._integration.check_lines() if self._integration.is_checking else b""
        self._control.send(lines + self._control.ask(number) + check)

    def _on_found(self, command: Command, record: Record, *, was_dropped: bool) -> None:
        if self.current is command:
            command.has_records = was_dropped
            self._unconfirmed = record._replace(status=DROPPED) if was_dropped else record
            self._confirm(command)

    def status_at_end(self, command: Command, output: str) -> int:
        """Its status after it has ended: where only what the command printed tells why, by that."""
        if self._is_end_unclear and ends_in_what_is_fatal(output, command.text):
            self.status = FATAL
        return self.status

    def own_text(self, text: str) -> str:
        """What a command printed, without what was meant for us."""
        return self._control.own_text(text)

    def saved_state(self) -> bytes | None:
        """What the next shell can take over; one that was killed has saved only what it wrote before its command."""
        if self.process.exit_status == signal.SIGKILL and not self._has_snapshot:
            return None
        return self._integration.saved_state()

    def close(self) -> None:
        """Close the channels; what the shell started may go on."""
        self.process.close()
        if self._channel:
            self._channel.close()
        self._opened.close()

    def _spawn(self, keeper: KeeperLink, state: bytes | None, carried: CarriedState | None) -> None:
        self.sandbox = keeper.sandbox
        self._control.can_count = POSIX_VARIABLES.isdisjoint(self._setup.env)
        may_have_functions = state is not None or any(name.startswith(b"BASH_FUNC_") for name in self._setup.env)
        self._inherited = keeper.inside(self._setup.env) | self._setup.extra_env
        before = carried.startup_lines(self._inherited) if carried else state
        first = self._integration.startup_lines(before, may_have_functions=may_have_functions)
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

    def _on_record(self, record: Record) -> None:
        command = self.current
        if command is not None and record.number == command.number:
            if self._unconfirmed is None:
                self._unconfirmed = record
                self._confirm(command)
        elif record.number == PROBE:
            self._integration.word_works = True
        elif record.number == EVAL_PROBE:
            self._integration.eval_works = True
        elif record.number == GREETING and self.process.is_starting:
            self._on_greeting(record)

    def _confirm(self, command: Command) -> None:
        """Conclude a command whose record is here, once the shell is as it was before."""
        record = self._unconfirmed
        if record is None or self._integration.is_checking:
            return
        is_debugging = record.flags is not None and "E" in record.flags and "T" in record.flags
        may_have_given_up = self._aborted is command or is_debugging
        has_given_up = may_have_given_up and self._integration.take_given_up()
        if not has_given_up and self._aborted is not command:
            self._conclude(command, record)
            if record.status == SYNTAX_ERROR and "[[" in command.text:
                with contextlib.suppress(ShellGone, ShellError):
                    self._control.send(self._integration.reset_parser())
            return
        # The trap may also run only now, after the command's own end; so the shell is asked in any case.
        status = 128 + signal.SIGINT if has_given_up else record.status
        number = self._control.expect(lambda after: self._conclude_after_signal(command, after._replace(status=status)))
        with contextlib.suppress(ShellGone, ShellError):
            after = self._integration.source_own("after") + b"\n" + self._control.ask(number)
            self._control.send(self._integration.reset_parser() + after)

    def _conclude_after_signal(self, command: Command, record: Record) -> None:
        self._integration.take_given_up()  # a signal that came too late for this command says nothing of the next
        self._conclude(command, record)

    def _conclude(self, command: Command, record: Record) -> None:
        self._unconfirmed = None
        self.current = None
        self.status = record.status
        self._note_state(record)
        if record.trouble:
            self.trouble = f"bash cannot open its channels any more ({record.trouble})"
        command.record = record
        command.ended = time.monotonic()
        self._is_quick = command.ended - command.started < QUICK
        command.notify("done")

    def _note_state(self, record: Record) -> None:
        if record.flags is not None:
            self.cwd, self.flags = record.cwd, record.flags

    def _on_checked(self, trouble: str | None) -> None:
        """Conclude a command whose record came before the end of the check."""
        self.trouble = trouble or self.trouble
        if self.current:
            self._confirm(self.current)
        elif self.process.is_starting:
            self._become_ready()

    def _on_greeting(self, record: Record) -> None:
        self._note_state(record)
        version = record.status
        if version < OLDEST_VERSION:
            self.process.fail_start(f"is version {version // 100}.{version % 100}; a session needs bash 4.4 or later")
        else:
            self._has_greeted = True
            self._become_ready()

    def _become_ready(self) -> None:
        """Say so once both are over: bash's first answer, and the check of what it took over."""
        if self._has_greeted and not self._integration.is_checking:
            self.process.on_answer()

    def _on_terminal(self, data: bytes) -> None:
        if self._on_screen:
            self._on_screen.add(data)

    def _on_exit(self, exit_code: int) -> None:
        self.status = exit_code
        if self.current and exit_code == 1:
            was_fatal = self._integration.was_fatal(self.current.text)
            self._is_end_unclear = was_fatal is None
            self.status = FATAL if was_fatal else exit_code
        if self.current:
            self.current.notify("ended")


def new_folder(keeper: KeeperLink) -> PrivateFolder:
    """A folder for a shell's channels, where the keeper's children can reach it."""
    try:
        return PrivateFolder(keeper.exchange)
    except OSError as error:
        raise ShellError(f"there is no room for a bash session's channels: {error}") from error
