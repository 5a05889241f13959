"""Who a person types for, as the screens know it."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Takes what is typed, and says what there is to see meanwhile."""

    @property
    def is_working(self) -> bool:
        """Whether a turn or a command is under way."""

    def submit(self, text: str) -> None:
        """A whole text was typed."""

    def interrupt(self) -> None:
        """Ctrl-C: end what is under way; where nothing is, say how to leave."""

    def hurry(self) -> None:
        """Esc: what was said while the agent works is to be read now."""

    def live(self, width: int, rows: int) -> str:
        """What is under way, as it looks now, with colours."""

    def status(self) -> str:
        """One line about the session."""
