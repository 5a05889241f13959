"""Bash itself: a session that keeps its state from command to command."""

from toolyard.errors import ShellError
from toolyard.shell.jobs import Job
from toolyard.shell.session import BashSession, Reply

__all__ = ["BashSession", "Job", "Reply", "ShellError"]
