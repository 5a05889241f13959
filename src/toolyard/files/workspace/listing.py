"""Names of files: those that fit a pattern, and what is in a folder."""

from __future__ import annotations

import os
import stat

from toolyard.files.inside import is_inside
from toolyard.files.workspace.globs import path_pattern
from toolyard.files.workspace.places import FileFault, quoted
from toolyard.files.workspace.walking import walked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolyard.files.workspace.places import Spot, Workspace

MOST_STATED = 20_000


def glob(workspace: Workspace, start: Spot, pattern: str, options: dict[str, Any]) -> dict[str, Any]:
    """The files whose path fits, from a folder on; those that were changed last come first."""
    require_folder(start)
    wanted = path_pattern(workspace.pattern_below(start, pattern), ignore_case=bool(options.get("ignore_case")))
    begin = f"{start.path}/" if start.path else ""
    found: list[tuple[float, str]] = []
    for listed in walked(workspace, start, ignoring=not options.get("no_ignore")):
        for name in (*listed.files, *listed.others):
            if wanted.fullmatch(listed.path + name):
                found.append((-changed_at(name, listed.fd, len(found)), begin + listed.path + name))
    if not found and os.path.isabs(pattern) and not any(is_inside(pattern, top) for top in workspace.spellings):
        raise workspace.outside(pattern)
    found.sort()
    limit = options["limit"]
    return {"lines": [quoted(path) for _, path in found[:limit]], "more": len(found) > limit, "total": len(found)}


def changed_at(name: str, folder: int, known: int) -> float:
    """When a file was changed; of very many it does not matter."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime if known < MOST_STATED else 0.0
    except OSError:
        return 0.0


def contents(workspace: Workspace, start: Spot, options: dict[str, Any]) -> dict[str, Any]:
    """What is in a folder, folders first and with a slash; deeper ones indented below theirs."""
    require_folder(start)
    hidden = [path_pattern(pattern, anywhere=True) for pattern in options.get("ignore") or ()]
    lines: list[str] = []
    limit = options["limit"]
    skipped: list[str] = []
    for listed in walked(workspace, start, ignoring=not options.get("no_ignore"), depth=options["depth"]):
        if listed.path.startswith(tuple(skipped)):
            continue
        skipped += [f"{listed.path}{name}/" for name in listed.folders if is_hidden(hidden, listed.path + name)]
        rows = [f"{listed.path}{name}/" for name in listed.folders]
        rows += [f"{listed.path}{name}" for name in sorted((*listed.files, *listed.others))]
        lines += [quoted(row) for row in rows if not is_hidden(hidden, row.rstrip("/"))]
        if len(lines) > limit:
            break
    if options["depth"] > 1:
        lines.sort()
    return {"lines": lines[:limit], "more": len(lines) > limit}


def is_hidden(patterns: list[Any], path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in patterns)


def is_folder(start: Spot) -> bool:
    facts = start.facts()
    return facts is not None and stat.S_ISDIR(facts.st_mode)


def require_folder(start: Spot) -> None:
    facts = start.facts()
    if facts is None:
        raise FileFault(f"there is no folder {start.shown}")
    if not stat.S_ISDIR(facts.st_mode):
        raise FileFault(f"{start.shown} is no folder")
