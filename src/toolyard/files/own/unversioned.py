"""Folders of ours in somebody's repository, of which git takes no notice."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from toolyard.files.own.entering import entered, open_within
from toolyard.files.steps import step_into

if TYPE_CHECKING:
    from pathlib import Path


def make_unversioned(folder: Path) -> bool:
    """Make a folder that ignores itself in git; False for one that is there already, which stays as it is."""
    with entered(folder.parent, make=True, mode=0o777) as above:
        try:
            os.mkdir(folder.name, dir_fd=above)
        except FileExistsError:
            return False
        ours = step_into(folder.name, above)
    try:
        with contextlib.suppress(FileExistsError):
            fd = open_within(ours, ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            with open(fd, "wb") as file:
                file.write(b"*\n")
    finally:
        os.close(ours)
    return True
