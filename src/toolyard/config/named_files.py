"""Files that a configuration names besides its plugins, and whose text or code the application obeys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import Json

SECTION = "system_message"
CODE = ("runtime_code", "code")
TEXT = ("files",)


def prompt_files(value: Json, folder: str) -> Iterator[str]:
    """The files of all system messages: those that are there, and code also where it is still missing."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from (found_in(part, folder) if key == SECTION else prompt_files(part, folder))


def found_in(section: Json, folder: str) -> Iterator[str]:
    match section:
        case dict():
            for key, part in section.items():
                if key in (*CODE, *TEXT):
                    names = part if isinstance(part, list) else [part]
                    paths = [os.path.abspath(os.path.join(folder, name)) for name in names if is_path(name)]
                    yield from (path for path in paths if key in CODE or os.path.exists(path))
                else:
                    yield from found_in(part, folder)
        case list():
            for part in section:
                yield from found_in(part, folder)


def is_path(name: Json) -> bool:
    return isinstance(name, str) and bool(name) and "\0" not in name
