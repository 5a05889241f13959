"""The commands of a person, or of a script, as calls along the one path."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from toolyard.cli.call import OF_THE_TOOL, StreamedOutput, exit_code_of
from toolyard.cli.render import is_terminal, show_note, show_piece
from toolyard.cli.shell.keyboard import ShellState, echo
from toolyard.core.events import OutputChunk
from toolyard.core.screen_text import as_seen
from toolyard.kinds.shell.session_tools import NO_OUTPUT

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.shell.keyboard import Keyboard
    from toolyard.core.events import Event
    from toolyard.core.tool import JsonObject, ToolResult


NO_LIMIT = 1e9
"""Seconds: a person ends a command that takes too long."""
END_OF_INPUT = "\x04"
INTERRUPTED = 130
AFTER_INTERRUPT = f"[[ $- == *e* ]] || (exit {INTERRUPTED})"
"""Runs once the interrupted command is over, and leaves `$?` as that did; a shell with `set -e` would end by it."""


class SessionCalls:
    """Runs commands one after the other; with a keyboard they can be interrupted, and can ask for input."""

    def __init__(self, app: AgentApplication, agent: str, keyboard: Keyboard | None = None) -> None:
        self.state = ShellState(cwd=os.getcwd())
        self._app = app
        self._agent = agent
        self._keyboard = keyboard
        self._output = SessionOutput()
        self._output.pieces.give_up = self._give_up
        self._running: asyncio.Future[ToolResult] | None = None
        self._interrupted = False

    async def run(self, command: str) -> None:
        """Run a command to its end, show what it prints, and note the new state of the session."""
        self._interrupted = False
        # What is typed ahead may be the answer to a question for a secret that is just being asked.
        with echo(False) if self._keyboard else contextlib.nullcontext():
            result = await self._run(command)
        self._conclude(result)

    def interrupt(self) -> None:
        """End what runs now, and show ^C before whatever it still prints."""
        if self._running and not self._interrupted:
            self._interrupted = True
            self._output.show("^C\n")
        self._give_up()

    def _give_up(self) -> None:
        if self._running:
            self._running.cancel()

    async def _run(self, command: str) -> ToolResult:
        arguments = {"command": command, "timeout": NO_LIMIT, "interactive": self._keyboard is not None}
        result = await self._call("bash", arguments)
        while result and (result.data or {}).get("waitingForInput"):
            result = await self._answer()
        if result is None:
            result = await self._wait_out_the_interrupt()
        return result

    async def _answer(self) -> ToolResult | None:
        """Let the person answer a command that waits for input, or end it."""
        text = END_OF_INPUT
        if self._keyboard:
            question, self._output.open_line = self._output.open_line, ""
            try:
                text = await self._keyboard.answer(question) + "\n"
            except KeyboardInterrupt:
                return await self._call("bash_job", {"action": "stop", "id": "foreground"})
            except EOFError:
                pass
        arguments = {"action": "write", "id": "foreground", "text": text, "timeout": NO_LIMIT}
        return await self._call("bash_job", arguments)

    async def _wait_out_the_interrupt(self) -> ToolResult:
        """Wait until the command is over, since it may still print before the prompt; Ctrl-C may come again."""
        result = None
        while result is None:
            result = await self._call("bash", {"command": AFTER_INTERRUPT})
        return result

    async def _call(self, tool: str, arguments: JsonObject) -> ToolResult | None:
        """The result of a call; None when it was interrupted."""
        output = self._output
        output.begin()
        call = self._app.call_tool(tool, arguments, agent=self._agent, on_event=output.see)
        self._running = running = asyncio.ensure_future(call)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait({running})
            raise
        finally:
            self._running = None
        if output.pieces.broken:
            raise output.pieces.broken
        return None if running.cancelled() else running.result()

    def _conclude(self, result: ToolResult) -> None:
        self._output.end_line()
        if result.failure not in OF_THE_TOOL:
            show_note(result.text, "error")
        elif note := note_of(result, self._output.first_line):
            show_note(note, "faint")
        status = exit_code_of(result) if result.exit_code is None else result.exit_code
        self.state = ShellState(cwd=(result.data or {}).get("cwd", self.state.cwd), status=status)


LONGEST_LINE = 1 << 16


class SessionOutput:
    """Shows output at once, and remembers of it the first line and the one that is still open."""

    def __init__(self) -> None:
        self.first_line = ""
        self.open_line = ""
        self.pieces = StreamedOutput()
        self._first_is_open = True

    def begin(self) -> None:
        """Forget the first line: the output of another call follows."""
        self.first_line = ""
        self._first_is_open = True

    def see(self, event: Event) -> None:
        if isinstance(event, OutputChunk):
            self.show(event.text)

    def show(self, text: str) -> None:
        self._remember(text)
        self.pieces.show(text)

    def end_line(self) -> None:
        """End a line that a command left open, for a person who looks at it."""
        if self.open_line and is_terminal(sys.stdout):
            show_piece("\n")
        self.open_line = ""

    def _remember(self, text: str) -> None:
        _, newline, last = text.rpartition("\n")
        self.open_line = last[-LONGEST_LINE:] if newline else (self.open_line + last)[-LONGEST_LINE:]
        if self._first_is_open:
            line, newline, _ = text.partition("\n")
            self.first_line = (self.first_line + line)[:LONGEST_LINE]
            self._first_is_open = not newline


def note_of(result: ToolResult, first_line: str) -> str | None:
    """The line that a result has before the output, such as the one that says that the shell is new."""
    line = result.text.partition("\n")[0]
    return None if line in (NO_OUTPUT, as_seen(first_line)) else line
