"""Bash itself: a session that keeps its state from command to command."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolyard.errors import ShellError
    from toolyard.shell.jobs import Job
    from toolyard.shell.reply import Reply
    from toolyard.shell.session import BashSession

__all__ = ["BashSession", "Job", "Reply", "ShellError"]

PLACES = {
    "BashSession": "toolyard.shell.session",
    "Job": "toolyard.shell.jobs",
    "Reply": "toolyard.shell.reply",
    "ShellError": "toolyard.errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what reads a command line needs no session."""
    if name not in PLACES:
        raise AttributeError(f"module 'toolyard.shell' has no attribute '{name}'")
    return getattr(importlib.import_module(PLACES[name]), name)
