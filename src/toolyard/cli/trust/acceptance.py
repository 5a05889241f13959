"""Whether a file is accepted as it was read: by its digest, or by a person who sees it here."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from toolyard.cli.render import ask, is_terminal, show_note
from toolyard.core.visible_text import marked_lines

if TYPE_CHECKING:
    from toolyard.files.accepted import OfferedFile

MOST_LINES, MOST_CHARACTERS = 500, 100_000


def refusal(file: OfferedFile, *, digest: str | None, asks: bool) -> tuple[str, str] | None:
    """Why a file is not accepted, and what to do about it; a person who is there is asked."""
    if digest is not None:
        is_same = file.digest == digest.strip().lower()
        return (
            None if is_same else (f"{file.path} says something else: its digest is {file.digest}", "look at it again")
        )
    has_seen = asks and is_terminal(sys.stdin)
    is_whole = show(file) if has_seen else False
    if file.is_exposed and not is_whole:
        command = f"toolyard trust accept {shlex.quote(file.path)} --digest {file.digest}"
        message = f"something runs that could write {file.path}, so that it may not be what you looked at"
        return message, f"end what runs, or look at its digest, too (sha256sum), and if it is this one: {command}"
    if has_seen and not ask(f"Accept {file.path}?"):
        return f"{file.path} is not accepted", ""
    return None


def show(file: OfferedFile) -> bool:
    """Show what would be accepted; tells whether that is all of it."""
    show_note(f"{file.path}: {len(file.data)} bytes, SHA-256 {file.digest}")
    text = file.data[:MOST_CHARACTERS].decode("utf-8", "backslashreplace")
    lines = list(marked_lines(text))
    for line in lines[:MOST_LINES]:
        show_note(line)
    is_whole = len(file.data) <= MOST_CHARACTERS and len(lines) <= MOST_LINES
    if not is_whole:
        show_note("(the rest is not shown)", "warning")
    return is_whole
