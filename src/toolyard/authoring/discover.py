"""`init`: what a folder already has that a configuration could load, and a first configuration. Nothing is run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Document, Place
from toolyard.config.schema import config_schema
from toolyard.core.problems import Problem
from toolyard.kinds import FIRST_ENTRIES, KINDS
from toolyard.plugins.entries import read_entry, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import Json
    from toolyard.plugins.kind import Found, Kind

CONFIG = "toolyard.json"
SCHEMA = "toolyard.schema.json"
DEEPEST = 3
MOST_FOLDERS = 2000
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "env", "target", "dist", "build", "tests", "test"})


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was found."""

    found: Found
    is_loadable: bool
    """Whether this version knows that spelling."""


def find_plugins(folder: Path, kinds: Sequence[Kind] = KINDS) -> list[Candidate]:
    """Everything below a folder that looks like tools, in a steady order."""
    at = Place(Document(folder / CONFIG, "{}", {}), ("plugins",))
    found = in_folders(folder, kinds)
    return [Candidate(found=one, is_loadable=read_entry(one.entry, at, kinds)[0] is not None) for one in found]


def in_folders(top: Path, kinds: Sequence[Kind]) -> Iterator[Found]:
    """The tools of each folder, as each kind sees it."""
    authors = [author for kind in kinds if (author := kind.author)]
    for folder, files in walk(top):
        below = folder.relative_to(top)
        place = "." if below == Path() else f"./{below.as_posix()}"
        for author in authors:
            yield from author.discover(folder, files, place)


def walk(top: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with their files, from the top down, less those that hold what others made."""
    for number, (path, folders, files) in enumerate(os.walk(top)):
        folder = Path(path)
        depth = len(folder.relative_to(top).parts)
        folders[:] = sorted(
            name for name in folders if depth < DEEPEST and name not in SKIPPED and not name.startswith(".")
        )
        if number >= MOST_FOLDERS:
            return
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        yield folder, sorted(files)


def create_config(folder: Path, found: Sequence[Found], kinds: Sequence[Kind] = KINDS) -> list[Path] | Problem:
    """Write the configuration and its schema; the files written, or why none was. Nothing is ever overwritten."""
    config, schema = folder / CONFIG, folder / SCHEMA
    try:
        write_new(config, first_config(found))
    except FileExistsError:
        return Problem(code="config_exists", message=f"{config} exists already", hint="toolyard config check")
    except OSError as error:
        reason = f"{config} cannot be written: {error.strerror}"
        return Problem(code="config_unwritable", message=reason, hint="choose a folder that you may write to")
    try:
        write_new(schema, config_schema(settings_of(kinds)))
    except OSError:  # one from before serves an editor as well, and without one all the rest works
        return [config]
    return [config, schema]


def first_config(found: Sequence[Found]) -> dict[str, Json]:
    """What every one begins with, and what was found and is wanted."""
    config: dict[str, Json] = {"$schema": f"./{SCHEMA}", "plugins": [*FIRST_ENTRIES, *(one.entry for one in found)]}
    policy = {key: value for one in found for key, value in one.policy.items()}
    return config | ({"plugin_policy": policy} if policy else {})


def write_new(file: Path, value: Json) -> None:
    with file.open("x", encoding="utf-8") as output:
        output.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
