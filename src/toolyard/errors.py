"""The whole exception tree.

Exceptions are for promises broken between our modules and for callers who misuse the Python API. A user's mistake in a
configuration is a `Problem`, a model's mistake or a tool's failure is a `ToolResult`; neither is raised.

    ToolyardError
    ├── ApplicationClosed       a call on an application that is not open
    ├── UnknownAgent            an agent that the configuration does not have
    ├── UnknownPlugin           a plugin or repository that the configuration does not have
    ├── ControlError            a control that an agent does not have, or a value that it does not take
    ├── ShellError              a bash session was asked for what it cannot do
    ├── ProviderError           a model cannot be asked, or did not answer; says who is at fault
    ├── ToolError               raised by a Python tool: it could not do what it was asked
    └── ProcessError            a child process could not be run at all
        ├── CannotStart         the program is missing, not a program, or the argument list is too long
        │   └── NoSandbox       a sandbox is required and cannot be had
        └── KeeperLost          the helper that owns all children died; its children were killed

    ToolStopped                 raised inside a Python tool whose call is over; no `except Exception` holds it up
"""

from __future__ import annotations

import errno

__all__ = [
    "ApplicationClosed",
    "CannotStart",
    "ControlError",
    "KeeperLost",
    "NoSandbox",
    "ProcessError",
    "ProviderError",
    "ShellError",
    "ToolError",
    "ToolStopped",
    "ToolyardError",
    "UnknownAgent",
    "UnknownPlugin",
]


class ToolyardError(Exception):
    """Anything Toolyard raises on purpose."""


class ApplicationClosed(ToolyardError):
    """A call on an application that is not open."""


class UnknownAgent(ToolyardError):
    """An agent was named that the configuration does not have; the message names those it has."""


class UnknownPlugin(ToolyardError):
    """A plugin or repository was named that the configuration does not have; the message names those it has."""


class ControlError(ToolyardError):
    """A control was set that the agent does not have, or to a value that it does not take; the message says which."""


class ShellError(ToolyardError):
    """A bash session was asked for what it cannot do, or cannot be had at all."""


class ToolError(ToolyardError):
    """A Python tool could not do what it was asked; the model reads the message."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ToolStopped(BaseException):
    """The call of a Python tool was cancelled or is out of time, and its thread goes on."""


class ProviderError(ToolyardError):
    """A model could not be asked, or did not answer, after all retries."""

    def __init__(self, message: str, *, fault: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        """Who is at fault; one of `toolyard.core.model.ProviderFault`."""
        self.hint = hint
        self.status = status


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
