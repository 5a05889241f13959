"""The program of a manifest's entry: whether it can be run, and if not, why, in words that name it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.problems import Problem
from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from toolyard.errors import CannotStart


ProgramFaultCode = Literal["manifest_program_outside", "manifest_program_missing", "manifest_program_not_executable"]


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program is, and where it has to be."""

    path: str
    """Absolute."""
    within: str | None = None
    """The folder beside the manifest that it must be in, all links followed; None for one that was named absolutely."""


def program_problem(program: Program) -> Problem | None:
    """What stands against running it; it is looked at when it is called, since it may come, go and change."""
    path = program.path
    if program.within is not None and not is_inside(os.path.realpath(path), program.within):
        message = f"the program {path} is a link that leads out of {program.within}: {os.path.realpath(path)}"
        hint = "put the program itself there, or name it by its absolute path"
        return Problem(code="manifest_program_outside", message=message, hint=hint)
    if not os.path.lexists(path):
        message = f"there is no program {path}"
        return Problem(code="manifest_program_missing", message=message, hint="build or install it")
    if not os.path.isfile(path):
        message = f"{path} is not a program" if os.path.exists(path) else f"the link {path} leads to nothing"
        return Problem(code="manifest_program_missing", message=message, hint="name a file that can be run")
    if not os.access(path, os.X_OK):
        message = f"the program {path} may not be executed"
        return Problem(code="manifest_program_not_executable", message=message, hint=f"chmod +x {path}")
    return None


def explain_start(error: CannotStart, path: str, cwd: object) -> str:
    """Why the system did not start a program that was there."""
    if "directory:" in str(error):
        return f"the tool could not be started: {error} ({cwd})"
    reason = {
        errno.ENOENT: "its interpreter, named in its first line, does not exist",
        errno.ENOEXEC: "it is neither a binary of this machine nor a script that begins with #!",
    }.get(error.errno, str(error))
    return f"the program {path} could not be started: {reason}"
