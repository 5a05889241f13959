"""The whole exception tree.

Exceptions are for promises broken between our modules and for callers who misuse the Python API. A user's mistake in a
configuration is a `ConfigProblem`, a model's mistake or a tool's failure is a `ToolResult`; neither is raised.

    ToolyardError
    ├── ApplicationClosed       a call on an application that is not open
    ├── ShellError              a bash session was asked for what it cannot do
    └── ProcessError            a child process could not be run at all
        ├── CannotStart         the program is missing, not a program, or the argument list is too long
        │   └── NoSandbox       a sandbox is required and cannot be had
        └── KeeperLost          the helper that owns all children died; its children were killed
"""

from __future__ import annotations

import errno

__all__ = ["ApplicationClosed", "CannotStart", "KeeperLost", "NoSandbox", "ProcessError", "ShellError", "ToolyardError"]


class ToolyardError(Exception):
    """Anything Toolyard raises on purpose."""


class ApplicationClosed(ToolyardError):
    """A call on an application that is not open."""


class ShellError(ToolyardError):
    """A bash session was asked for what it cannot do, or cannot be had at all."""


class ProcessError(ToolyardError):
    """A child process could not be run."""


class CannotStart(ProcessError):
    """The program could not be started; `errno` tells why."""

    def __init__(self, message: str, *, errno: int) -> None:
        super().__init__(message)
        self.errno = errno


class NoSandbox(CannotStart):
    """A sandbox is required and cannot be had, so nothing was started."""

    def __init__(self, message: str) -> None:
        super().__init__(message, errno=errno.EPERM)


class KeeperLost(ProcessError):
    """The helper process that owns all children is gone."""
