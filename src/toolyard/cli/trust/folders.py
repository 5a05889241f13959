"""Whether a sessions folder that tools may have made is accepted: by a person who has looked at it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard.cli.render import ask, is_terminal, show_note
from toolyard.files.door import FileRefused
from toolyard.files.own.entering import entered
from toolyard.files.own.ownership import parts_in, real_place, remember
from toolyard.files.own.sessions_folder import PARTS
from toolyard.files.plain_text import printable
from toolyard.files.write_times import can_be_written_now

if TYPE_CHECKING:
    from toolyard.files.own.ownership import OwnFolder


class OfferedFolder:
    """A sessions folder as it was entered, once, by somebody who may accept it."""

    def __init__(self, named: str) -> None:
        """UsageError for anything else, or where a link leads to it or from it."""
        try:
            self.path = real_place(named)
            with entered(self.path) as folder:
                self.parts = parts_in(folder, PARTS, self.path)
                self._facts = os.fstat(folder)
        except FileRefused as refused:
            raise click.UsageError(f"{named}: {refused.strerror}; {refused.hint}") from None
        except OSError as error:
            raise click.UsageError(f"{named}: {error.strerror or error}") from None
        if not self.parts:
            raise click.UsageError(f"{named}: it is a folder, and no sessions folder")

    def refusal(self, *, asks: bool) -> tuple[str, str] | None:
        """Why it is not accepted, and what to do about it; a person who is there is asked."""
        if can_be_written_now(self.path, self._facts):
            return f"something runs that could write {self.path}, so that it may not be what you looked at", "end it"
        if asks and is_terminal(sys.stdin):
            show_note(f"{self.path}: {', '.join(map(printable, sorted(self.parts)))}")
            if not ask(f"Accept {self.path}, with the conversations, states and log in it?"):
                return f"{self.path} is not accepted", ""
        return None

    def accept(self) -> OwnFolder:
        return remember(str(Path(self.path)), accepted=True)
