"""How an exception of an author's code is told: in a line, and where in the author's own files it came from."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
BUILTIN = os.path.join(OURS, "builtin_plugins") + os.sep
LONGEST_MESSAGE = 2000
MOST_FRAMES = 4


def crash_text(error: BaseException, roots: Sequence[str] = ()) -> str:
    """An exception in a line, and below it where it came from in the author's own code."""
    message = " ".join(str(error).split("\n")).strip() if isinstance(error, SyntaxError) else str(error)
    first = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if len(first) > LONGEST_MESSAGE:
        first = first[:LONGEST_MESSAGE] + "…"
    lines = [
        f"  {os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames_of(error, roots)
    ]
    return "\n".join((first, *lines[-MOST_FRAMES:]))


def frames_of(error: BaseException, roots: Sequence[str] = ()) -> list[traceback.FrameSummary]:
    """The frames of an exception in the author's files; all but ours when none of them is."""
    # Without the lines themselves: nobody shows them, and the file may be another by now.
    extracted = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    frames = [frame for frame in extracted if is_foreign(frame.filename)]
    own = [frame for frame in frames if any(frame.filename.startswith(root + os.sep) for root in roots)]
    return own or frames


def is_foreign(file: str) -> bool:
    """Whether a file is none of the runtime's; bundled plugins are nobody's in particular."""
    return not file.startswith("<frozen") and (not file.startswith(OURS) or file.startswith(BUILTIN))
