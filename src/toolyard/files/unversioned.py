"""Folders of ours in somebody's repository, of which git takes no notice."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_unversioned(folder: Path) -> None:
    """Make a folder that ignores itself in git; one that is there already stays as it is."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    with contextlib.suppress(FileExistsError):
        fd = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with open(fd, "wb") as file:
            file.write(b"*\n")
