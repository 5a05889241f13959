"""`tool new`: a folder with a tool that already works."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.problems import Problem
from toolyard.files.named_files import make_named
from toolyard.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.plugins.kind import Authoring, Kind, NewFile

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def create_tool(
    path: Path, kind: str | None = None, mode: str | None = None, kinds: Sequence[Kind] = KINDS
) -> list[Path] | Problem:
    """Write a new tool named after its folder; the files written, or why none was."""
    author = author_of(kind, mode, kinds)
    if isinstance(author, Problem):
        return author
    name = Path(os.path.abspath(path)).name
    if not NAME.fullmatch(name):
        return unfit_name(name, path)
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            return cannot_create(f"{path} exists and is not empty", "choose another name")
        return write_all(path, author.new_files(name, mode))
    except OSError as error:
        reason = f"{error.filename or path}: {error.strerror}"
        return cannot_create(f"{path} cannot be written: {reason}", "choose a folder that you may write to")


def author_of(kind: str | None, mode: str | None, kinds: Sequence[Kind]) -> Authoring | Problem:
    """Who writes tools of a kind; without a name, the first kind that has several ways to write one."""
    written = {one.name: one for one in kinds if one.modes is not None}
    with_modes = {name: one.modes for name, one in written.items() if one.modes}
    name = kind or next(iter(with_modes), next(iter(written)))
    author = written[name].author if name in written else None
    if author is None:
        return cannot_create(f"there is no kind '{name}'", f"there are {', '.join(written)}")
    if mode and mode not in (with_modes.get(name) or ()):
        ways = "; ".join(f"{other}: {', '.join(modes)}" for other, modes in with_modes.items())
        return cannot_create(f"a tool of kind {name} has no mode '{mode}'", f"modes are of {ways}")
    return author


def cannot_create(message: str, hint: str) -> Problem:
    return Problem(code="tool_not_created", message=message, hint=hint)


def unfit_name(name: str, path: Path) -> Problem:
    fitting = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64]
    example = f", for example {path.parent / fitting}" if NAME.fullmatch(fitting) else ""
    hint = f"use up to 64 letters, digits, - and _, beginning with a letter{example}"
    return cannot_create(f"'{name}' cannot name a tool", hint)


def write_all(folder: Path, files: Sequence[NewFile]) -> list[Path]:
    """Write all of them, or none: half a tool would be in the way of the next try."""
    made: list[Path] = []
    try:
        for file in files:
            made.append(folder / file.path)
            make_named(made[-1], file.text.encode(), mode=0o755 if file.executable else 0o644)
    except FileExistsError:
        take_back(folder, made[:-1])
        raise
    except OSError:
        take_back(folder, made)
        raise
    return made


def take_back(folder: Path, made: Sequence[Path]) -> None:
    """Remove files that were just written, and the folders around them that are empty then."""
    around = {above for path in made for above in path.parents if above.is_relative_to(folder)}
    with suppress(OSError):
        for path in made:
            path.unlink(missing_ok=True)
        for above in sorted(around, reverse=True):
            above.rmdir()
