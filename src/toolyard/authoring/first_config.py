"""`init`: a first configuration for a folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolyard.authoring.scaffold import CannotCreate
from toolyard.config.schema import config_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.authoring.discovery import Found
    from toolyard.core.tool import Json


CONFIG = "toolyard.json"
SCHEMA = "toolyard.schema.json"


def create_config(folder: Path, found: Sequence[Found]) -> list[Path] | CannotCreate:
    """Write the configuration and its schema; the files written, or why none was. Nothing is ever overwritten."""
    config, schema = folder / CONFIG, folder / SCHEMA
    try:
        write_new(config, first_config(found))
    except FileExistsError:
        return CannotCreate(message=f"{config} exists already", hint="toolyard config check")
    except OSError as error:
        reason = f"{config} cannot be written: {error.strerror}"
        return CannotCreate(message=reason, hint="choose a folder that you may write to")
    try:
        write_new(schema, config_schema())
    except OSError:  # one from before serves an editor as well, and without one all the rest works
        return [config]
    return [config, schema]


def first_config(found: Sequence[Found]) -> dict[str, Json]:
    """The live session, and what was found and is wanted."""
    config: dict[str, Json] = {"$schema": f"./{SCHEMA}", "plugins": ["shell:session", *(one.entry for one in found)]}
    if any(one.needs_bash for one in found):
        config["plugin_policy"] = {"allow_bash_tools": True}
    return config


def write_new(file: Path, value: Json) -> None:
    with file.open("x", encoding="utf-8") as output:
        output.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
