"""Where a problem is shown: what a user did not write, he is told of where he named it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.plugins.acquire.refetch import reference_of

if TYPE_CHECKING:
    from toolyard.config.document import Document, Pointer
    from toolyard.core.problems import Position, Problem
    from toolyard.plugins.source import Source


def placed(problem: Problem, source: Source, pointer: Pointer, document: Document) -> Problem:
    """A problem of a file that is not there, or lies in our cache, at the entry of the configuration that names it."""
    where = problem.where
    if where is None or where.file == document.path:
        return problem
    if reference := reference_of(getattr(source, "key", None), document):
        message = f"{inside(where)} of {reference.shown}: {problem.message}"
    elif where.line is None and not os.path.lexists(where.file):
        message = f"{where.file}: {problem.message}"
    else:
        return problem
    return replace(problem, message=message, where=document.position(pointer))


def inside(where: Position) -> str:
    """A place in a copy of a repository, as the repository has it."""
    path = os.fspath(where.file).rpartition(f"{os.sep}tree{os.sep}")[2]
    name = path if path != os.fspath(where.file) else where.file.name
    if name == "tree":
        return "the top folder"
    return str(replace(where, file=type(where.file)(name)))
