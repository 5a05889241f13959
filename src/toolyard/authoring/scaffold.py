"""`tool new`: a folder with a tool that already works."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import msgspec

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
KINDS = {
    "bash": "toolyard.kinds.bash_script.scaffold",
    "manifest": "toolyard.kinds.manifest.scaffold",
    "node": "toolyard.kinds.node_module.scaffold",
    "python": "toolyard.kinds.python_function.scaffold",
}
"""The kinds of tools that can be started, each with the module that knows its files."""


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a new tool, with its path from the tool's folder."""

    path: str
    text: str
    executable: bool = False


class CannotCreate(msgspec.Struct, frozen=True, kw_only=True):
    """Why no tool was written."""

    message: str
    hint: str


class Template(Protocol):
    """What a module of `KINDS` has."""

    def new_files(self, name: str, mode: str | None) -> list[NewFile]:
        """The files of a tool of that name; a kind that has modes takes one."""


def create_tool(path: Path, kind: str = "bash", mode: str | None = None) -> list[Path] | CannotCreate:
    """Write a new tool named after its folder; the files written, or why none was."""
    name = Path(os.path.abspath(path)).name
    if not NAME.fullmatch(name):
        return unfit_name(name, path)
    template = cast("Template", import_module(KINDS[kind]))
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            return CannotCreate(message=f"{path} exists and is not empty", hint="choose another name")
        return [write(path, file) for file in template.new_files(name, mode)]
    except OSError as error:
        reason = f"{error.filename or path}: {error.strerror}"
        return CannotCreate(message=f"{path} cannot be written: {reason}", hint="choose a folder that you may write to")


def unfit_name(name: str, path: Path) -> CannotCreate:
    fitting = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64]
    example = f", for example {path.parent / fitting}" if NAME.fullmatch(fitting) else ""
    hint = f"use up to 64 letters, digits, - and _, beginning with a letter{example}"
    return CannotCreate(message=f"'{name}' cannot name a tool", hint=hint)


def write(folder: Path, file: NewFile) -> Path:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file.text, encoding="utf-8")
    if file.executable:
        path.chmod(0o755)
    return path
