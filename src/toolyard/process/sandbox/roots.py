"""The folders that are obeyed before our own code runs: Python's own, and those where programs are looked for."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.draft import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from toolyard.process.sandbox.draft import Access


SYSTEM_PROGRAMS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def interpreter() -> list[str]:
    """Our own Python, which also runs inside, and ourselves."""
    return [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(PACKAGE)]


def program_folders() -> list[str]:
    """Where programs are looked for by their names, also where there is nothing yet."""
    return [os.path.normpath(path) for path in os.environ.get("PATH", "").split(":") if os.path.isabs(path)]


def linked_programs() -> Iterator[str]:
    """Links among programs, in folders that are not the system's own: one may lead to where tools can write."""
    for folder in dict.fromkeys(program_folders()):
        if os.path.realpath(folder).startswith(SYSTEM_PROGRAMS):
            continue
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            yield from (entry.path for entry in entries if entry.is_symlink())


def code_folders(workspace: Collection[str]) -> list[str]:
    """Where Python finds itself and the modules that we import; not a folder that is the workspace, or holds it."""
    environment = [sys.prefix] if sys.prefix != sys.base_prefix else []
    programs = [os.path.dirname(sys.executable), os.path.dirname(os.path.realpath(sys.executable))]
    settings = [os.path.join(place, "pyvenv.cfg") for place in (sys.prefix, programs[0])]
    modules = [path for path in sys.path if os.path.isabs(path) and os.path.isdir(path)]
    folders = [os.path.realpath(path) for path in workspace]
    around = [path for path in (*environment, *modules) if not holds_any(os.path.realpath(path), folders)]
    return [*around, PACKAGE, *programs, *(path for path in settings if os.path.isfile(path))]


def holds_any(folder: str, paths: Collection[str]) -> bool:
    return any(is_inside(path, folder) for path in paths)


def open_roots(rules: dict[str, Access], roots: Mapping[str, str], code: Collection[str]) -> list[str]:
    """Those that can be written by these rules: of code anything below, of folders with programs only the folder.

    `roots` says where each leads to.
    """
    writable = [path for path, access in rules.items() if access == "write"]
    return [
        path
        for path, real in roots.items()
        if can_replace(path, real, rules, writable) or (path in code and holds_any(real, writable))
    ]


def can_replace(path: str, real: str, rules: dict[str, Access], writable: Collection[str]) -> bool:
    """Whether somebody can write a path where it leads, or put something else in the place of a link on the way."""
    if nearest(rules, real)[1] == "write":
        return True
    while path != real and any(is_inside(path, one) for one in writable):
        if nearest(rules, path)[1] == "write" and os.path.islink(path):
            return True
        path = os.path.dirname(path)
    return False
