"""The peers, each as its own documentation uses it, and once more with every pause and limit taken away that can be."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import time
from pathlib import Path
from typing import Any

from benchmarks.shell_answers import PATIENCE, READ_SIZE, Answer


class Replwrap:
    """`pexpect.replwrap.bash()`, which tells no exit status."""

    mark = "[PEXPECT_PROMPT>"

    def __init__(self) -> None:
        self.pexpect: Any = importlib.import_module("pexpect")
        self.replwrap: Any = importlib.import_module("pexpect.replwrap")

    async def open(self) -> None:
        self.repl: Any = self.start()

    def start(self) -> object:
        return self.replwrap.bash()

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:
        try:
            return Answer(output=self.repl.run_command(command, timeout=timeout))
        except self.pexpect.TIMEOUT:
            return self.interrupt()
        except self.pexpect.EOF:
            output = self.repl.child.before
            self.repl.child.close(force=True)
            self.repl = self.start()
            return Answer(output=output)
        except ValueError as error:
            return Answer(error=str(error))

    def interrupt(self) -> Answer:
        """What its users do after a time-out: Ctrl-C, and wait for the prompt."""
        output = self.repl.child.before
        self.repl.child.sendintr()
        self.repl.child.expect_exact(self.replwrap.PEXPECT_PROMPT, timeout=5)
        return Answer(output=output, timed_out=True)

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        self.repl.child.sendline(command)
        self.repl.child.expect_exact(prompt, timeout=5)
        return await self.run(reply, timeout=5)

    async def close(self) -> None:
        self.repl.child.close(force=True)


class ReplwrapTuned(Replwrap):
    """The same without pexpect's pauses, reading more at once."""

    def start(self) -> object:
        rc = Path(self.replwrap.__file__).with_name("bashrc.sh")
        child = self.pexpect.spawn("bash", ["--rcfile", str(rc)], echo=False, encoding="utf-8", maxread=READ_SIZE)
        child.delaybeforesend = child.delayafterread = None
        change = "PS1='[PEXP\\[\\]ECT_PROMPT>' PS2='[PEXP\\[\\]ECT_PROMPT+' PROMPT_COMMAND=''"
        return self.replwrap.REPLWrapper(child, "\\$", change, extra_init_cmd="export PAGER=cat")


class SweRex:
    """SWE-ReX's `LocalRuntime`, in the same process."""

    mark = "SHELLPS1PREFIX"

    def __init__(self) -> None:
        self.abstract: Any = importlib.import_module("swerex.runtime.abstract")
        self.exceptions: Any = importlib.import_module("swerex.exceptions")
        self.runtime: Any = importlib.import_module("swerex.runtime.local").LocalRuntime()

    async def open(self) -> None:
        await self.start()

    async def start(self) -> None:
        await self.runtime.create_session(self.abstract.CreateBashSessionRequest())

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:
        try:
            return await self.act(command=command, timeout=timeout, check="silent")
        except self.exceptions.CommandTimeoutError:
            stopped = await self.runtime.run_in_session(self.abstract.BashInterruptAction())
            return Answer(output=stopped.output, timed_out=True)
        except self.exceptions.BashIncorrectSyntaxError as error:
            return Answer(error=str(error))
        except importlib.import_module("pexpect").EOF as error:
            await self.runtime.close_session(self.abstract.CloseBashSessionRequest())
            await self.start()
            return Answer(output=str(error), error=str(error))

    async def act(self, **action: object) -> Answer:
        seen = await self.runtime.run_in_session(self.abstract.BashAction(**action))
        return Answer(output=seen.output, exit_code=seen.exit_code)

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        await self.act(command=command, timeout=5, is_interactive_command=True, expect=[prompt])
        return await self.act(command=reply, timeout=5, is_interactive_command=True)

    async def close(self) -> None:
        await self.runtime.close()


class SweRexTuned(SweRex):
    """The same without pexpect's pauses, reading more at once; it has no settings of its own for this."""

    async def start(self) -> None:
        await super().start()
        child = self.runtime.sessions["default"].shell
        child.delaybeforesend = child.delayafterread = None
        child.maxread = READ_SIZE


class Libtmux:
    """libtmux as its guide shows it: keys sent, the screen looked at ten times a second until the mark is there."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        libtmux: Any = importlib.import_module("libtmux")
        self.server = libtmux.Server(socket_name=f"toolyard-bench-{os.getpid()}")
        self.number = 0

    @property
    def mark(self) -> str:
        return f"END0-{self.number + 1}."

    async def open(self) -> None:
        self.start()

    def start(self) -> None:
        self.session = self.server.new_session(f"s{next(self.numbers)}")
        self.pane = self.session.active_window.active_pane
        self.number = 0

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:
        self.number += 1
        joint = "\n" if "\n" in command or command.endswith("&") else "; "
        try:
            self.pane.send_keys(f'{command}{joint}echo END"$?"-{self.number}.')
            return self.wait_for(rf"END(\d+)-{self.number}\.", timeout)
        except Exception as error:  # the library has no one root of its errors
            self.restart_if_gone()
            return Answer(error=str(error))

    def restart_if_gone(self) -> bool:
        gone = all(pane.pane_id != self.pane.pane_id for pane in self.server.panes)
        if gone:
            self.start()
        return gone

    def wait_for(self, pattern: str, timeout: float) -> Answer:
        deadline = time.monotonic() + timeout
        while True:
            lines = self.pane.capture_pane(join_wrapped=True)
            if found := re.search(pattern, "\n".join(lines)):
                return Answer(output=self.own_part(lines), exit_code=int(found[1]) if found.groups() else None)
            if not lines and self.restart_if_gone():
                return Answer(error="the pane is gone")
            if time.monotonic() >= deadline:
                self.pane.send_keys("C-c", enter=False)
                time.sleep(0.5)
                return Answer(output=self.own_part(lines), timed_out=True)
            time.sleep(0.1)

    def own_part(self, lines: list[str]) -> str:
        """All since the line that was typed, from the history when it is not on the screen any more."""
        typed = f'END"$?"-{self.number}.'
        if not any(typed in line for line in lines):
            lines = self.pane.capture_pane(start="-", join_wrapped=True)
        text = "\n".join(lines)
        before, _, after = text.partition(typed)
        return after if "\n" not in before.strip() else text

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        self.pane.send_keys(command)
        self.wait_for(rf"(?m)^{prompt}", 5)
        self.pane.send_keys(reply)
        return self.wait_for(r"(?m)^got:", 5)

    async def close(self) -> None:
        self.session.kill()


class LibtmuxTuned(Libtmux):
    """One tmux command for everything: send the keys, wait for the shell's signal, read the screen."""

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:  # noqa: ARG002 (tmux waits by itself)
        self.number += 1
        channel = f"{self.session.session_name}-{self.number}"
        line = f'{command}; echo END"$?"-{self.number}.; tmux wait-for -S {channel}'
        pane = self.pane.pane_id
        lines = self.server.cmd(
            *("send-keys", "-t", pane, line, "Enter", ";", "wait-for", channel, ";", "capture-pane", "-p", "-t", pane)
        ).stdout
        found = re.search(rf"END(\d+)-{self.number}\.", "\n".join(lines))
        return Answer(output="\n".join(lines), exit_code=int(found[1]) if found else None)
