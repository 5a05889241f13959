"""Where output goes that is too long for a result: a folder for each workspace, since tools read on there."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def output_folder(sessions: Path, workspace: str) -> Path:
    """The folder of one workspace; tools of another see neither it nor what is in it."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    return sessions / "outputs" / name
