"""Guards what programs of the owner obey in a project's own folder: our rules, and package managers' settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.files.plain_text import text_itself
from toolyard.files.write_times import may_be_from_tools
from toolyard.process.sandbox.mount_points import SOCKET

if TYPE_CHECKING:
    from toolyard.process.sandbox.draft import LayoutDraft


MOVED_AWAY = ("toolyard.json", ".yarnrc")
"""A configuration that a later start would obey, beside the one that is in use; and one of the first yarn."""
PACKAGE_SETTINGS = (".npmrc", ".yarnrc.yml")
"""They name programs that are run, and where packages come from."""
CARGO = ".cargo"
"""Cargo obeys a file in it, and takes no offence at an empty folder."""


def guard_project(draft: LayoutDraft, root: str) -> None:
    """What is there cannot be changed; what is not there cannot be made, or is moved away once it is.

    A socket can stand where npm looks for a file: git does not see it, npm outside goes on without, and inside there is
    an empty file.
    """
    draft.guard(os.path.join(root, CARGO))
    for name in MOVED_AWAY:
        guard_or_move(draft, os.path.join(root, name))
    for name in PACKAGE_SETTINGS:
        path = os.path.join(root, name)
        if uses_yarn(root):
            guard_or_move(draft, path)
        else:
            draft.guard(path, SOCKET)


def guard_or_move(draft: LayoutDraft, path: str) -> None:
    """Where even an empty folder would be in the way, what comes to be is moved away."""
    if os.path.lexists(path):
        draft.guard(path)
    else:
        draft.unwanted.append(path)


def uses_yarn(root: str) -> bool:
    """Whether a project is one of yarn's, which outside would stop at what is no file in the place of its settings."""
    lock, package = os.path.join(root, "yarn.lock"), os.path.join(root, "package.json")
    return is_owners(lock) or (is_owners(package) and '"yarn@' in text_itself(package))


def is_owners(path: str) -> bool:
    """Whether a file is there that no tool can have made, which would thereby open what is guarded here."""
    try:
        return not may_be_from_tools(path, os.lstat(path))
    except OSError:
        return False
