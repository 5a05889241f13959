"""Small records that the application keeps in the user's own folder, and that only we may write."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

from toolyard.core.lossless_json import decode_json
from toolyard.files.atomic import replace_file
from toolyard.files.door import Door

if TYPE_CHECKING:
    from pathlib import Path

Kept = TypeVar("Kept")
LARGEST = 4 << 20


def read_record(file: Path, kind: type[Kept]) -> Kept | None:
    """What a file holds; None where there is none, others may write it, or it says something else."""
    try:
        read = Door().read(file, largest=LARGEST)
        ours = read.facts.st_uid == os.geteuid() and not read.facts.st_mode & 0o022
        return decode_json(read.data, kind) if ours else None
    except (OSError, ValueError):
        return None


def write_record(file: Path, value: Any) -> None:
    """Keep it in the place of what was there; OSError where the folder cannot be written."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(file, json.dumps(value, indent=1).encode())
