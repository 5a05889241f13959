"""`toolyard init`: a first configuration for the folder it is in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from toolyard.cli.render import ask, is_terminal, show_note, show_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.authoring.discover import Candidate
    from toolyard.core.tool import Json
    from toolyard.plugins.kind import Found


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--yes", is_flag=True, help="Include everything that is found, without asking.")
def init(folder: Path, yes: bool) -> int:
    """Write a small toolyard.json for FOLDER, with its schema for editors.

    Tools that are there already can be included: bash tools, manifests, packages of Node tools, Python plugins and the
    MCP servers of other clients. A terminal is asked about each. Nothing is run and nothing overwritten.
    """
    from toolyard.authoring.discover import CONFIG, create_config, find_plugins
    from toolyard.core.problems import Problem

    if (folder / CONFIG).exists():
        return refuse(f"{folder / CONFIG} exists already", "toolyard config check")
    created = create_config(folder, chosen(find_plugins(folder), yes=yes))
    if isinstance(created, Problem):
        return refuse(created.message, created.hint)
    for file in created:
        show_text(f"{file}\n")
    show_note("next: toolyard tools" if folder == Path() else f"next: toolyard --config {quote(str(created[0]))} tools")
    return 0


def chosen(candidates: Sequence[Candidate], *, yes: bool) -> list[Found]:
    """What is to be included; without a terminal and without --yes nothing, for loading a tool may run it."""
    for one in (candidate.found for candidate in candidates if not candidate.is_loadable):
        show_note(f"found, but not loadable by this version: {one.what} {spelled(one.entry)}", "warning")
    loadable = [candidate.found for candidate in candidates if candidate.is_loadable]
    if yes:
        return loadable
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        return [one for one in loadable if ask(f"include the {one.what} {spelled(one.entry)}?")]
    for one in loadable:
        show_note(f"found, and not included without --yes: {one.what} {spelled(one.entry)}", "warning")
    return []


def spelled(entry: Json) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)


def refuse(message: str, hint: str) -> int:
    show_note(message, "error", hint=hint)
    return 2
