"""Finding a program on PATH, and telling when another takes its place."""

from __future__ import annotations

import os
import shutil

import msgspec


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    identity: str
    """Changes when another program is at this path."""


def find_interpreter(name: str) -> Interpreter | None:
    path = shutil.which(name)
    if path is None:
        return None
    real = os.path.realpath(path)
    stat = os.stat(real)
    return Interpreter(path=os.path.abspath(path), identity=f"{real}:{stat.st_mtime_ns}:{stat.st_size}")
