"""What is piped into `toolyard chat`: said with the prompt, or said itself where there is none."""

from __future__ import annotations

import os
import select
import stat
import sys

from toolyard.cli.render import show_note

LARGEST = 1 << 20
"""How many bytes of it are said; a model reads no more than some hundred thousand words anyway."""
FIRST_BYTE = 5.0
"""How long a pipe may be silent, in seconds: some programs start others with one that they never write to nor close."""


def with_piped(prompt: str) -> str:
    """A prompt, and below it what was piped in."""
    piped = read_piped(patient=False)
    return f"{prompt}\n\nWhat was piped in:\n{piped}" if piped.strip() else prompt


def read_piped(*, patient: bool) -> str:
    """The text on standard input, up to a size; nothing where nobody pipes anything.

    Who is patient waits as long as it takes, since nothing else is to be said.
    """
    if not sys.stdin or not (patient or has_begun(sys.stdin.fileno())):
        return ""
    data = sys.stdin.buffer.read(LARGEST + 1)
    # What is no UTF-8 is no reason to say nothing of the rest, whatever the locale has Python do with it.
    text = data[:LARGEST].decode("utf-8", "replace")
    if len(data) <= LARGEST:
        return text
    show_note(f"of what was piped in, only the first {LARGEST >> 20} MiB are said")
    return f"{text}\n[cut here: only the first {LARGEST >> 20} MiB of it are said]"


def has_begun(stdin: int) -> bool:
    """Whether standard input is a file, or a pipe into which somebody writes, or wrote, something."""
    mode = os.fstat(stdin).st_mode
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    if select.select([stdin], [], [], FIRST_BYTE)[0]:
        return True
    show_note(f"nothing was piped in within {FIRST_BYTE:g} seconds; </dev/null says at once that nothing will be")
    return False
