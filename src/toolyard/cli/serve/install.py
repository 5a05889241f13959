"""`toolyard serve --print-config` and `--install`: the server in a client's settings."""

from __future__ import annotations

import difflib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import DEFAULT_CONFIG, config_path
from toolyard.cli.render import ask, is_terminal, show_note, show_text
from toolyard.files.door import Door, FileRefused
from toolyard.files.named_files import replace_named
from toolyard.serve.mcp.clients import CLIENTS, NAME, TOKEN, NotMergeable, ServerEntry, block, merge, settings_file

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions

LARGEST_SETTINGS = 16 << 20
"""Clients keep more than settings in such files."""


def entry_for(options: GlobalOptions, client: str, wire: str, agent: str | None, url: str) -> ServerEntry:
    """How a client reaches the server that these options describe."""
    if wire == "http":
        return ServerEntry(url=f"{url}/{agent}" if agent else url)
    if not CLIENTS[client].has_projects:
        options = with_this_folder(options)
    words = [str(program())]
    for name, value in (("config", options.config), ("sessions", options.sessions), ("workspace", options.workspace)):
        words += [f"--{name}", str(Path(value).absolute())] if value is not None else []
    return ServerEntry(command=(*words, "serve", "--mcp", "stdio", *(["--agent", agent] if agent else [])))


def with_this_folder(options: GlobalOptions) -> GlobalOptions:
    """The same options with what the current folder stands for in them."""
    config = config_path(options)
    named = None if config == DEFAULT_CONFIG else str(config)
    return options._replace(config=named, workspace=options.workspace or str(Path.cwd()))


def program() -> Path:
    """The `toolyard` that runs now; clients are started with other paths than a shell."""
    beside = Path(sys.executable).with_name(NAME)
    return beside if beside.exists() else Path(shutil.which(NAME) or beside)


def print_entry(name: str, entry: ServerEntry) -> int:
    client = CLIENTS[name]
    check(name, entry)
    show_text(block(client, entry))
    note_token(entry)
    show_note(f"for {settings_file(client, Path.cwd())}", "faint")
    return 0


def install_entry(name: str, entry: ServerEntry, *, yes: bool) -> int:
    """Write the server into a client's settings after showing what changes."""
    client = CLIENTS[name]
    check(name, entry)
    file = settings_file(client, Path.cwd())
    try:
        before = text_of(file)
        after = merge(client, entry, before)
    except (NotMergeable, FileRefused, UnicodeDecodeError) as error:
        hint = f"paste by hand what `toolyard serve --print-config {name}` prints"
        show_note(f"{file} is left as it is: {error}", "error", hint=hint)
        return 2
    if after == before:
        show_note(f"{file} has it already")
        return 0
    show_text("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file))))
    if not (yes or confirmed(file)):
        return 3
    try:
        replace_named(file, after.encode())
    except OSError as error:
        show_note(f"{file} cannot be written: {error.strerror or error}", "error", hint="is a folder of it a link?")
        return 2
    show_note(f"written: {file}", "good")
    note_token(entry)
    return 0


def check(name: str, entry: ServerEntry) -> None:
    if entry.url and not CLIENTS[name].takes_url:
        raise click.UsageError(f"{name} has no place for an address in its file; leave out --mcp http")


def confirmed(file: Path) -> bool:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        show_note(f"{file} is left as it is: nobody is at a terminal to ask", "error", hint="--yes writes it")
        return False
    return ask(f"write {file}?")


def text_of(file: Path) -> str:
    """What a file says now; FileRefused for a link in the workspace, which tools may have made."""
    try:
        return Door.here().read(file, largest=LARGEST_SETTINGS).data.decode()
    except FileNotFoundError:
        return ""


def note_token(entry: ServerEntry) -> None:
    if entry.url:
        show_note(f"start the client and `toolyard serve --mcp http` with the same {TOKEN} in their environments")
