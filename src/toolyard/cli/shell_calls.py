"""The commands of a person, or of a script, as calls along the one path."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.cli.call import OF_THE_TOOL, exit_code_of
from toolyard.cli.render import show_note
from toolyard.cli.shell_keyboard import echo
from toolyard.cli.shell_output import ShownOutput, note_of

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.shell_keyboard import Keyboard
    from toolyard.core.tool import JsonObject, ToolResult


NO_LIMIT = 1e9
"""Seconds: a person ends a command that takes too long."""
END_OF_INPUT = "\x04"
INTERRUPTED = 130
AFTER_INTERRUPT = f"[[ $- == *e* ]] || (exit {INTERRUPTED})"
"""Runs once the interrupted command is over, and leaves `$?` as that did; a shell with `set -e` would end by it."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the session stands after its last command."""

    cwd: str
    status: int = 0


class SessionCalls:
    """Runs commands one after the other; with a keyboard they can be interrupted, and can ask for input."""

    def __init__(self, app: AgentApplication, agent: str, keyboard: Keyboard | None = None) -> None:
        self.place = Place(cwd=os.getcwd())
        self._app = app
        self._agent = agent
        self._keyboard = keyboard
        self._output = ShownOutput()
        self._running: asyncio.Future[ToolResult] | None = None
        self._interrupted = False

    async def run(self, command: str) -> None:
        """Run a command to its end, showing what it prints, and note where the session stands then."""
        self._interrupted = False
        # What is typed ahead may be the answer to a question for a secret that is just being asked.
        with echo(False) if self._keyboard else contextlib.nullcontext():
            result = await self._run(command)
        self._conclude(result)

    def interrupt(self) -> None:
        """Somebody ends what runs now, if anything does, and sees so before whatever it still prints."""
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
        """The command may print until it is over, and the prompt comes after that, however often Ctrl-C does."""
        result = None
        while result is None:
            result = await self._call("bash", {"command": AFTER_INTERRUPT})
        return result

    async def _call(self, tool: str, arguments: JsonObject) -> ToolResult | None:
        """The result of a call; None when it was interrupted."""
        output = self._output
        output.begin(self._give_up)
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
        if output.broken:
            raise output.broken
        return None if running.cancelled() else running.result()

    def _conclude(self, result: ToolResult) -> None:
        self._output.end_line()
        if result.failure not in OF_THE_TOOL:
            show_note(result.text, "error")
        elif note := note_of(result, self._output.first_line):
            show_note(note, "faint")
        status = exit_code_of(result) if result.exit_code is None else result.exit_code
        self.place = Place(cwd=(result.data or {}).get("cwd", self.place.cwd), status=status)
