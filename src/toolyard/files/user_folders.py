"""Where the user's own configuration, state, data and caches of Toolyard are (XDG), and what is the system's."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal, TypeAlias

Folder: TypeAlias = Literal["config", "state", "data", "cache"]
USUAL = {"config": ".config", "state": ".local/state", "data": ".local/share", "cache": ".cache"}
SYSTEM_FOLDERS = frozenset({
    *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt"),
    *("/proc", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/tmp", "/usr/local", "/usr/bin"),  # noqa: S108
})  # fmt: skip
"""Never a workspace, even if we are started there."""


def user_folder(which: Folder) -> Path:
    """One of them; it may not exist yet."""
    named = os.environ.get(f"XDG_{which.upper()}_HOME")
    return Path(named or os.path.join(os.path.expanduser("~"), USUAL[which]), "toolyard")


def records_folder() -> str:
    """Where it is written down what has to be done after an application that is killed."""
    return str(user_folder("state") / "running")


def records() -> list[str]:
    """Those of all applications that run, or were killed."""
    try:
        return [os.path.join(records_folder(), name) for name in os.listdir(records_folder()) if name.endswith(".json")]
    except OSError:
        return []


def is_named_in_record(name: str) -> bool:
    """Whether somebody has yet to clean up after an application that had this."""
    for record in records():
        with contextlib.suppress(OSError), open(record, encoding="utf-8") as text:
            if name in text.read():
                return True
    return False


def temporary_folder() -> str:
    """Where temporary files go: as the environment says, else the usual place."""
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    found = (path for path in (*named, "/tmp", "/var/tmp") if path and os.access(path, os.W_OK | os.X_OK))  # noqa: S108
    return os.path.abspath(next(found, os.curdir))
