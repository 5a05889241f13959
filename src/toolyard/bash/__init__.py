"""Bash itself: a session that keeps its state from command to command."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolyard.bash.session.jobs import Job
    from toolyard.bash.session.reply import Reply
    from toolyard.bash.session.session import BashSession
    from toolyard.errors import ShellError


__all__ = ["BashSession", "Job", "Reply", "ShellError"]

PLACES = {
    "BashSession": "toolyard.bash.session.session",
    "Job": "toolyard.bash.session.jobs",
    "Reply": "toolyard.bash.session.reply",
    "ShellError": "toolyard.errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what reads a command line needs no session."""
    if name not in PLACES:
        raise AttributeError(f"module 'toolyard.bash' has no attribute '{name}'")
    return getattr(importlib.import_module(PLACES[name]), name)
