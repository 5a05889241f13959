"""Finding a program on PATH where no tool can have put it, and telling when another takes its place."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from toolyard.files.door import Door

if TYPE_CHECKING:
    from collections.abc import Iterator


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    identity: str
    """Changes when another program is at this path."""


def find_interpreter(name: str, door: Door | None = None) -> Interpreter | None:
    path = find_program(name, door, or_ours=True)
    if path is None:
        return None
    real = os.path.realpath(path)
    stat = os.stat(real)
    return Interpreter(path=path, identity=f"{real}:{stat.st_mtime_ns}:{stat.st_size}")


def find_program(name: str, door: Door | None = None, *, or_ours: bool = False) -> str | None:
    """The absolute path of a program on PATH; one that a tool could have put there is passed over.

    With `or_ours` also one of the environment that we ourselves run in, which is guarded as a whole.
    """
    door = door or Door.here()
    return next((path for path in programs(name) if not is_doubtful(path, door, or_ours=or_ours)), None)


def why_missing(name: str, called: str = "") -> str:
    """Why a program was not found, for whoever has one."""
    called = called or name
    left_out = next(programs(name), None)
    if left_out is None:
        return f"there is no {called} on PATH"
    if not os.path.isabs(left_out):
        return f"the only {called} on PATH is in '{os.path.dirname(left_out) or os.curdir}', which is no absolute path"
    return f"the only {called} on PATH is {left_out}, which tools can write"


def safe_path(door: Door | None = None) -> str:
    """PATH for what runs outside of the sandbox, or makes what does: only folders that no tool can fill."""
    door = door or Door.here()
    kept = (folder for folder in path_folders() if folder and not is_doubtful(folder, door, or_ours=True))
    return os.pathsep.join(kept) or os.defpath


def programs(name: str) -> Iterator[str]:
    for folder in path_folders():
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            yield path


def path_folders() -> list[str]:
    return os.environ.get("PATH", os.defpath).split(os.pathsep)


def is_doubtful(path: str, door: Door, *, or_ours: bool) -> bool:
    """Whether a tool may have written what is at a path, or what leads there."""
    if or_ours and os.path.dirname(sys.executable) in (path, os.path.dirname(path)):
        return False
    return not os.path.isabs(path) or door.is_writable(path)
