"""`agent_plugin.json`: the bash tool files that a folder lists."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.config.document import Document, read_document
from toolyard.core.problems import Position, Problem
from toolyard.files.inside import leads_inside
from toolyard.plugins.kind import DESCRIPTOR

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.core.tool import Json


def bash_files(folder: Path) -> tuple[list[Path], list[Problem]]:
    """The tool files that a folder lists, each inside the folder."""
    if not folder.is_dir():
        missing = Problem(
            code="plugin_missing", message="no such folder", hint="check the path", where=Position(file=folder)
        )
        return [], [missing]
    descriptor = read_document(folder / DESCRIPTOR)
    if isinstance(descriptor, Problem):
        return [], [explain_missing(descriptor, folder)]
    listed = descriptor.value.get("bash_tools") if isinstance(descriptor.value, dict) else None
    if not isinstance(listed, list) or not listed:
        empty = Problem(
            code="plugin_descriptor",
            message="'bash_tools' must be a list with at least one entry",
            hint='for example {"bash_tools": [{"file": "my_tool.bash"}]}',
            where=descriptor.position(("bash_tools",)),
        )
        return [], [empty]
    return listed_files(folder, listed, descriptor)


def listed_files(folder: Path, listed: list[Json], descriptor: Document) -> tuple[list[Path], list[Problem]]:
    files: list[Path] = []
    problems: list[Problem] = []
    for index, entry in enumerate(listed):
        match entry:
            case {"file": str(name)} if leads_inside(os.path.join(folder, name), str(folder)):
                files.append(folder / name)
            case {"file": str(name)}:
                problems.append(
                    Problem(
                        code="plugin_outside",
                        message=f"'{name}' is outside the repository",
                        hint="a repository lists only files of its own",
                        where=descriptor.position(("bash_tools", index, "file")),
                    )
                )
            case _:
                problems.append(
                    Problem(
                        code="plugin_descriptor",
                        message="an entry of 'bash_tools' needs 'file', a string",
                        hint='for example {"file": "my_tool.bash"}',
                        where=descriptor.position(("bash_tools", index)),
                    )
                )
    return files, problems


def explain_missing(problem: Problem, folder: Path) -> Problem:
    """A folder without a descriptor is the commonest mistake; say which line would have loaded it."""
    if problem.code != "config_unreadable":
        return problem
    scripts = sorted(path.name for path in folder.glob("*.bash"))
    hint = f'create it: {{"bash_tools": [{{"file": "{scripts[0] if scripts else "my_tool.bash"}"}}]}}'
    return Problem(
        code="plugin_descriptor", message=f"no {DESCRIPTOR} in this folder", hint=hint, where=Position(file=folder)
    )
