"""`toolyard serve --print-config` and `--install`: the server in a client's settings."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard.cli.render import ask, is_terminal, show_note, show_text
from toolyard.files.atomic import replace_file
from toolyard.files.door import Door, FileRefused
from toolyard.files.steps import open_folder, spare_name, step_into
from toolyard.serve.mcp.clients import CLIENTS, NAME, TOKEN, NotMergeable, ServerEntry, block, merge, settings_file

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions

LARGEST_SETTINGS = 16 << 20
"""Clients keep more than settings in such files."""


def entry_for(options: GlobalOptions, wire: str, agent: str | None, url: str) -> ServerEntry:
    """How a client reaches the server that these options describe."""
    if wire == "http":
        return ServerEntry(url=f"{url}/{agent}" if agent else url)
    words = [str(program())]
    for name, value in (("config", options.config), ("sessions", options.sessions), ("workspace", options.workspace)):
        words += [f"--{name}", str(Path(value).absolute())] if value is not None else []
    return ServerEntry(command=(*words, "serve", "--mcp", "stdio", *(["--agent", agent] if agent else [])))


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
        write(file, after)
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


def write(file: Path, text: str) -> None:
    """Replace the file with its mode as it was; outside of the workspace one that is a link stays one."""
    here = Path.cwd()
    if file.is_relative_to(here):
        replace_below(here, file.relative_to(here), text)
        return
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, text.encode())
    target.chmod(mode)


def replace_below(top: Path, file: Path, text: str) -> None:
    """The same in a folder where tools can make links: none of them is followed."""
    folder = open_folder(str(top), file.parent.parts, step_or_make)
    try:
        try:
            mode = os.stat(file.name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777
        except FileNotFoundError:
            mode = 0o600
        spare = spare_name()
        fd = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        with open(fd, "wb") as written:
            os.fchmod(fd, mode)
            written.write(text.encode())
        os.replace(spare, file.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def step_or_make(name: str, folder: int) -> int:
    """A folder in an open folder, made if there is none; OSError for a link."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return step_into(name, folder)


def note_token(entry: ServerEntry) -> None:
    if entry.url:
        show_note(f"start the client and `toolyard serve --mcp http` with the same {TOKEN} in their environments")
