"""Cleaning up after an application that was killed: by the guard of its keeper, or by the next application."""

from __future__ import annotations

import fcntl
import json
import os

from toolyard.process.keeper.groups import kill_groups, remove_groups

TYPE_CHECKING = False  # the guard needs this too, and `typing` takes long to import
if TYPE_CHECKING:
    from typing import Any

CLEANUP_FILE = "cleanup.json"
"""In a claimed folder: names what to remove beside it. The application removes this file when it cleans up itself."""


def clean_up(folder: str) -> None:
    """Remove what a keeper needed and must not leave, unless somebody still claims it.

    The groups first: whatever lives in them could make again what is removed.
    """
    claim = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_left(folder)
    except BlockingIOError:
        return  # the application lives: only its keeper was lost
    finally:
        os.close(claim)


def remove_left(folder: str) -> None:
    from toolyard.files.removal import remove_tree
    from toolyard.process.sandbox.mount_points import move_unwanted, remove_unused

    left = read_left(os.path.join(folder, CLEANUP_FILE))
    kill_groups(left.get("groups", ()))
    remove_groups(left.get("groups", ()))
    move_unwanted(left.get("unwanted", ()))
    remove_unused(
        [(path, None if content is None else content.encode()) for path, content in left.get("mount_points", ())]
    )
    remove_tree(folder)


def read_left(file: str) -> dict[str, Any]:
    """What there is to remove; nothing when the application had not come to write it, or has removed it itself."""
    try:
        with open(file, encoding="utf-8") as text:
            left = json.load(text)
    except (OSError, ValueError):
        return {}
    return left if isinstance(left, dict) else {}
