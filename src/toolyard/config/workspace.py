"""Which folders tools work in, by what a configuration says and where it lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.files.inside import is_inside
from toolyard.files.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import Json

PACKAGE = Path(__file__).parent.parent


def workspace_of(value: Json, folder: str, cwd: str) -> list[str]:
    """The current folder, those that agents start in, and the project of the configuration."""
    return [cwd, *working_directories(value, cwd), *project_of(folder)]


def writable_of(value: Json, folder: str, cwd: str) -> list[str]:
    """All folders that tools can write, with those that the configuration opens by name."""
    section = value.get("sandbox") if isinstance(value, dict) else None
    opened = section.get("writable") if isinstance(section, dict) else None
    named = [path for path in opened if isinstance(path, str)] if isinstance(opened, list) else []
    return [*workspace_of(value, folder, cwd), *absolute(named, folder)]


def working_directories(value: Json, cwd: str) -> Iterator[str]:
    """The directories that tools start in, of every agent."""
    match value:
        case dict():
            for key, item in value.items():
                if key == "working_directory" and isinstance(item, str) and item:
                    yield os.path.join(cwd, item)
                elif key in ("agents", "providers") or isinstance(item, dict):
                    yield from working_directories(item, cwd)


def project_of(folder: str) -> list[str]:
    """The folder of a project's configuration is part of the workspace; that of the user's own is not."""
    return [] if any(is_inside(folder, one) for one in (*user_folders(), str(PACKAGE))) else [folder]


def user_folders() -> list[str]:
    """Where the user's own configuration, grants, state and data are."""
    return [str(user_folder(which)) for which in ("config", "state", "data")]


def absolute(paths: Sequence[str], folder: str | Path) -> list[str]:
    """Paths as a configuration writes them, from its folder."""
    return [os.path.abspath(os.path.join(folder, os.path.expanduser(path))) for path in paths]
