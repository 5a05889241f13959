"""The process that does the work of file tools: a request a line comes in, an answer a line goes out.

It is started inside the sandbox of a call's reach, so that it can change nothing that a command there could not.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from toolyard.files.workspace import changing, listing, reading
from toolyard.files.workspace.contents import AS_IT_IS, NO_FILE
from toolyard.files.workspace.ignores import is_same_below
from toolyard.files.workspace.places import FileFault, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolyard.files.workspace.contents import Version
    from toolyard.files.workspace.places import Spot

PIPEFUL = 1 << 16
"""What a pipe holds: a long request is read in as few steps as there can be."""


def read(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    with workspace.at(given["file_path"]) as spot:
        if listing.is_folder(spot):
            return listing.contents(workspace, spot, {"depth": 2, "limit": given["limit"]})
        answer = reading.read(spot, given["offset"], given["limit"], given["room"])
        return {**answer, "path": spot.path}


def seen(given: dict[str, Any]) -> Version | None:
    """What the file was when it was read; a person need not have read it here."""
    return AS_IT_IS if given["by_person"] else given["seen"]


def write(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    return changing.write(workspace, given["file_path"], given["content"], seen(given), dry=given["dry"])


def edit(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    return changing.edit(workspace, given["file_path"], given["edits"], seen(given), dry=given["dry"])


def insert(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    line, text = given["insert_line"], given["insert_text"]
    return changing.insert(workspace, given["file_path"], line, text, seen(given), dry=given["dry"])


def remove(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    return changing.remove(workspace, given["path"], dry=given["dry"])


def move(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    return changing.move(workspace, given["old_path"], given["new_path"], dry=given["dry"])


def apply_patch(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    return changing.patch(workspace, given["input"], dry=given["dry"])


def glob(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    with workspace.at(given["path"]) as start:
        return listing.glob(workspace, start, given["pattern"], given)


def list_folder(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    with workspace.at(given["path"]) as start:
        return listing.contents(workspace, start, given)


def grep(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    from toolyard.files.workspace import searching

    query = searching.Query(
        given["pattern"],
        ignore_case=given["ignore_case"],
        literal=given["fixed_strings"],
        multiline=given["multiline"],
    )
    with workspace.at(given["path"]) as start:
        require_content(start)
        return searching.grep(workspace, start, query, given)


def require_content(spot: Spot) -> None:
    """Only a file or a folder has anything to be found in it; opening others may take for ever."""
    facts = spot.facts()
    if facts is None:
        raise FileFault(f"there is no {spot.shown}")
    if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
        raise FileFault(f"{spot.shown} {NO_FILE}")


def where(workspace: Workspace, given: dict[str, Any]) -> dict[str, Any]:
    """What somebody else is to look at: only so much that it is inside."""
    with workspace.at(given["path"]) as start:
        require_content(start)
        fit = is_same_below(workspace.excludes, workspace.top)
        return {"path": start.path, "top": workspace.top, "excludes_fit": fit}


OPERATIONS: dict[str, Callable[[Workspace, dict[str, Any]], dict[str, Any]]] = {
    "read": read,
    "write": write,
    "edit": edit,
    "insert": insert,
    "remove": remove,
    "move": move,
    "apply_patch": apply_patch,
    "glob": glob,
    "list": list_folder,
    "grep": grep,
    "where": where,
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What came of a request; a fault is an error with words, whatever broke."""
    given = request["params"]
    try:
        workspace = Workspace(given["workspace"], given.get("excludes", ""))
        return {"result": OPERATIONS[request["method"]](workspace, given)}
    except FileFault as fault:
        return {"error": {"message": str(fault)}}
    except OSError as error:
        about = next((str(given[key]) for key in ("file_path", "path", "old_path") if given.get(key)), "")
        return {"error": {"message": f"{about}: {error.strerror or error}".removeprefix(": ")}}
    except (MemoryError, RecursionError, ValueError) as error:
        return {"error": {"message": f"{type(error).__name__}: {error}"}}


def main() -> None:
    """Answer until there is nobody who asks."""
    with (
        open(int(sys.argv[2]), "rb", buffering=PIPEFUL) as requests,
        open(int(sys.argv[3]), "wb", buffering=0) as answers,
    ):
        for line in requests:
            request = json.loads(line)
            reply = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)})
            rest = memoryview(reply.encode() + b"\n")
            while rest:
                rest = rest[os.write(answers.fileno(), rest) :]
