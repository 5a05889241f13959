"""The guard of a terminal: gives it its modes back when the program that had changed them was killed.

A program that ends by itself does that itself, and dismisses its guard by a byte. The guard is in a session of its own,
so that no key and no hang-up of the terminal ends it; it holds the terminal, and hears the end of the program by the
end of a pipe.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from typing import Any

LOCAL, CHARACTERS = 3, 6
"""Where the modes of a terminal have what is about its keyboard, and its special characters."""
START = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.keeper.terminal_guard import main; main()"
PACKAGE_FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
SEEN_AGAIN = b"\x1b[0m\x1b[?25h\x1b[?2004l\r\n"
"""Plain letters, the cursor, no marks around what is pasted, and a line of its own for whoever comes next."""
PATIENCE = 5.0


class TerminalGuard:
    """Holds the modes that a terminal has now; whoever is killed once it was started leaves them behind."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._modes = encoded(termios.tcgetattr(terminal))
        except (OSError, termios.error):  # it is none
            self._modes = ""

    def start(self) -> None:
        """Start the process; without room for one there is no guard."""
        import subprocess

        if self._process or not self._modes:
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START, PACKAGE_FOLDER, self._modes],
                stdin=subprocess.PIPE,
                stdout=self._terminal,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )

    def dismiss(self) -> None:
        """The terminal is as it was, and needs no guard any more."""
        import subprocess

        if self._process:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._process.communicate(b"!", timeout=PATIENCE)


@contextlib.contextmanager
def guarded_terminal(terminal: int) -> Iterator[None]:
    """Whatever happens meanwhile, the terminal has the modes again that it has now."""
    guard = TerminalGuard(terminal)
    guard.start()
    try:
        yield
    finally:
        guard.dismiss()


def main() -> None:
    """Wait for the end of the program that started us, or for its word that all is well."""
    modes = decoded(sys.argv[-1])
    if os.read(0, 1):
        return
    with contextlib.suppress(OSError, termios.error):
        if was_left(termios.tcgetattr(1)):
            termios.tcsetattr(1, termios.TCSADRAIN, modes)
            os.write(1, SEEN_AGAIN)


def was_left(modes: list[Any]) -> bool:
    """Whether keys are neither shown nor obeyed, or are not shown though lines are read.

    A shell that has noticed the end first has the terminal as it needs it: lines of its own, and keys that are obeyed.
    """
    flags = modes[LOCAL]
    return not flags & termios.ECHO and bool(flags & termios.ICANON or not flags & termios.ISIG)


def encoded(modes: list[Any]) -> str:
    """Modes as numbers in a row."""
    characters = [one if isinstance(one, int) else one[0] for one in modes[CHARACTERS]]
    return ",".join(map(str, [*modes[:CHARACTERS], *characters]))


def decoded(text: str) -> list[Any]:
    """Modes again."""
    numbers = [int(number) for number in text.split(",")]
    return [*numbers[:CHARACTERS], [bytes((one,)) for one in numbers[CHARACTERS:]]]
