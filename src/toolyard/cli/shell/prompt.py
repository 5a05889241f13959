"""Typing with editing, history and completion, by prompt_toolkit, which this module alone imports."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.completion import Completion as Offer
from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.history import FileHistory
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from toolyard.cli.render import show_note
from toolyard.cli.shell.completion import complete
from toolyard.cli.shell.keyboard import GOES_ON, asks_for_secret, prompt_of
from toolyard.files.own.entering import enter, open_own
from toolyard.process.environment import looks_like_credential, process_secrets
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from toolyard.cli.shell.completion import Vocabulary
    from toolyard.cli.shell.keyboard import ShellState


class EditingKeyboard:
    """A keyboard for a terminal that can move its cursor."""

    def __init__(self, vocabulary: Vocabulary, history: Path) -> None:
        self._history = CommandHistory(history)
        self._completer = SessionCompleter(vocabulary)
        self._output = plain_output()
        self._commands: PromptSession[str] = PromptSession(
            history=self._history,
            completer=self._completer,
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            output=self._output,
        )
        self._typing: PromptSession[str] | None = None

    async def line(self, state: ShellState, *, goes_on: bool = False) -> str:
        self._completer.cwd = state.cwd
        return await self._type(self._commands, GOES_ON if goes_on else prompt_of(state))

    async def answer(self, question: str) -> str:
        """A line in place of the question's, which is taken away and drawn anew because a prompt begins its line."""
        session: PromptSession[str] = PromptSession(output=self._output, is_password=asks_for_secret(question))
        shown = to_formatted_text(ANSI(question.rpartition("\r")[2]))
        rows = max(0, fragment_list_width(shown) - 1) // self._output.get_size().columns
        self._output.write_raw("\r")
        self._output.cursor_up(rows)
        self._output.erase_down()
        return await self._type(session, shown)

    def keep(self, command: str) -> None:
        self._history.keep(command)

    def interrupt(self) -> None:
        """Give up the line as Ctrl-C does, which is a key here and no signal."""
        if self._typing and self._typing.app.is_running:
            self._typing.app.exit(exception=KeyboardInterrupt())

    async def _type(self, session: PromptSession[str], message: Any) -> str:
        self._typing = session
        try:
            return await session.prompt_async(message, handle_sigint=False, set_exception_handler=False)
        finally:
            self._typing = None


def plain_output() -> Vt100_Output:
    """A terminal that is never asked where its cursor is: its answer would mix with what a person types ahead."""
    output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


class CommandHistory(FileHistory):
    """Whole commands, in a file that is the person's alone."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        self._redactor = Redactor(process_secrets())
        self._last = ""
        try:
            os.close(enter(path.parent, make=True))
            self._fd = open_own(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            os.fchmod(self._fd, 0o600)
        except OSError as error:
            show_note(f"the history cannot be kept: {path}: {error.strerror}", "warning")
        super().__init__(f"/dev/fd/{self._fd}")  # the file that was opened, whatever is in its place later

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def append_string(self, string: str) -> None:
        """A line is no command yet, and an answer never is one."""

    def keep(self, command: str) -> None:
        """Remember a command, unless it begins with a space or holds a secret."""
        if not command.strip() or command[0].isspace() or looks_like_credential("", command) or command == self._last:
            return
        self._last = command
        super().append_string(self._redactor.redact(command))

    def load_history_strings(self) -> list[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # said at the start
            super().store_string(string)


class SessionCompleter(Completer):
    """Completes as the shell would, from where the session is."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.cwd = ""
        self._vocabulary = vocabulary

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Offer]:  # noqa: ARG002
        """Offer one text to insert, or several names only to look at."""
        found = complete(document.text_before_cursor, self._vocabulary, self.cwd)
        if found.insert:
            yield Offer(found.insert)
        for choice in found.choices:
            yield Offer("", display=choice)
