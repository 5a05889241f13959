"""What a plugin that is a single file brings along when it is imported: the modules beside it that it names."""

from __future__ import annotations

import ast
import os
import sys
from typing import TYPE_CHECKING

from toolyard.files.door import LARGEST_CODE, Door

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 200
PYCACHE = "__pycache__"


def with_neighbours(file: str) -> list[str]:
    """A file, the compiled code beside it, and what it imports from there, or would if it came to be.

    A folder of the same name would be imported in its place.
    """
    folder = os.path.dirname(file)
    found = dict.fromkeys((file, file.removesuffix(".py"), os.path.join(folder, PYCACHE)))
    waiting = [file]
    while waiting and len(found) < MOST:
        for name in imported_by(waiting.pop()):
            for path in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name)):
                if path not in found and path.endswith(".py") and os.path.isfile(path):
                    waiting.append(path)
                found[path] = None
    return list(found)


def imported_by(file: str) -> Iterator[str]:
    """The first names of the modules that a file imports, but for those of Python itself and of ours."""
    try:
        tree = ast.parse(Door().read(file, largest=LARGEST_CODE).data)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [one.name for one in node.names]
        for top in (name.partition(".")[0] for name in names):
            if top not in sys.stdlib_module_names and top != "toolyard":
                yield top
