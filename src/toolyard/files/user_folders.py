"""Where the user's own configuration, state, data and caches of Toolyard are (XDG)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

Folder: TypeAlias = Literal["config", "state", "data", "cache"]
USUAL = {"config": ".config", "state": ".local/state", "data": ".local/share", "cache": ".cache"}


def user_folder(which: Folder) -> Path:
    """One of them; it may not exist yet."""
    named = os.environ.get(f"XDG_{which.upper()}_HOME")
    return Path(named or os.path.join(os.path.expanduser("~"), USUAL[which]), "toolyard")
