"""How a person types commands and answers; the plain way needs nothing but a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import termios
from typing import TYPE_CHECKING, Protocol

import msgspec

from toolyard.cli.render import one_line, show_piece
from toolyard.cli.shell.lines import STDIN, Lines
from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator


GOES_ON = "> "
SECRET = re.compile(r"password|passphrase|passcode", re.IGNORECASE)


class Keyboard(Protocol):
    """Where commands and answers come from. A person gives up with KeyboardInterrupt and leaves with EOFError."""

    async def line(self, state: ShellState, *, goes_on: bool = False) -> str:
        """A line of a command, the first or one more."""

    async def answer(self, question: str) -> str:
        """An answer to a question that is on the screen already; not to be seen if it is a secret."""

    def keep(self, command: str) -> None:
        """Remember a whole command."""

    def interrupt(self) -> None:
        """Give up what is being typed, if anything is."""


class PlainKeyboard:
    """What a terminal can do by itself."""

    def __init__(self) -> None:
        self._lines = Lines()

    async def line(self, state: ShellState, *, goes_on: bool = False) -> str:
        show_piece(GOES_ON if goes_on else prompt_of(state))
        return await self._next()

    async def answer(self, question: str) -> str:
        if not asks_for_secret(question):
            with echo(True):
                return await self._next()
        answer = await self._next()
        show_piece("\n")
        return answer

    def keep(self, command: str) -> None:
        """Nothing is remembered."""

    def interrupt(self) -> None:
        self._lines.interrupt()

    async def _next(self) -> str:
        try:
            line = await self._lines.next()
        except KeyboardInterrupt:
            show_piece("\n")
            raise
        if line is None:
            show_piece("\n")
            raise EOFError
        return line


def prompt_of(state: ShellState) -> str:
    """The session's directory, and the last status unless all is well."""
    return f"{one_line(shortened(state.cwd))}{f' [{state.status}]' if state.status else ''} $ "


def shortened(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if is_inside(path, home) and home != "/" else path


def asks_for_secret(question: str) -> bool:
    return SECRET.search(question) is not None


@contextlib.contextmanager
def echo(shown: bool) -> Iterator[None]:
    """Turn the echo of the terminal on or off for a while."""
    before = termios.tcgetattr(STDIN)
    flags = before[3] | termios.ECHO if shown else before[3] & ~termios.ECHO
    termios.tcsetattr(STDIN, termios.TCSADRAIN, [*before[:3], flags, *before[4:]])
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


class ShellState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the session stands after its last command."""

    cwd: str
    status: int = 0
