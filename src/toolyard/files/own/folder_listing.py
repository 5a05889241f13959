"""What a folder of ours holds whose files are written once: looked at anew only when one came or went."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from toolyard.files.own.entering import entered, listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECOND = 1_000_000_000
TICK = SECOND // 50
"""Within this a folder may change twice and look as if it had changed once; where only seconds are kept, within two."""


class FolderListing:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = 0
        self._sizes: Mapping[str, int] = {}

    def sizes(self) -> Mapping[str, int]:
        """The size of each file by its name."""
        with entered(self._folder) as folder:
            changed = os.fstat(folder).st_mtime_ns
            if not changed or changed != self._changed:
                self._sizes = look_into(folder)
                tick = TICK if changed % SECOND else 2 * SECOND
                self._changed = changed if time.time_ns() - changed > tick else 0
        return self._sizes


def look_into(folder: int) -> dict[str, int]:
    found = {}
    with listed(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # it went while we looked
                found[entry.name] = entry.stat(follow_symlinks=False).st_size
    return found
