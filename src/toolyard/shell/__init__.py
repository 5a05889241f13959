"""Bash itself: a session that keeps its state from command to command."""

from toolyard.errors import ShellError
from toolyard.shell.jobs import Job
from toolyard.shell.reply import Reply
from toolyard.shell.session import BashSession

__all__ = ["BashSession", "Job", "Reply", "ShellError"]
