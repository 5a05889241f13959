"""Writing files that a person named: in the current folder, where tools can make links, none of them is followed."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.files.steps import open_folder, spare_name, step_into

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_named(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a new file, and the folders that lead to it; FileExistsError when there is something already."""
    with folder_of(path) as folder, open(os.open(path.name, NEW, mode, dir_fd=folder), "wb") as file:
        file.write(data)


def replace_named(path: Path, data: bytes) -> None:
    """Write a file anew with the mode that it has, moved into place; a new one is the owner's alone."""
    path = path if is_here(path) else path.resolve()  # elsewhere a link is the owner's own
    with folder_of(path) as folder:
        try:
            mode = stat.S_IMODE(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            mode = 0o600
        spare = spare_name()
        with open(os.open(spare, NEW, mode, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(spare, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def is_here(path: Path) -> bool:
    """Whether a path leads through the current folder, as far as its words tell."""
    return Path(os.path.abspath(path)).is_relative_to(Path.cwd())


@contextlib.contextmanager
def folder_of(path: Path) -> Iterator[int]:
    """The folder of a file, made if need be; OSError for a link on the way from the current folder."""
    whole = Path(os.path.abspath(path))
    if is_here(path):
        folder = open_folder(os.getcwd(), whole.relative_to(Path.cwd()).parent.parts, step_or_make)
    else:
        whole.parent.mkdir(parents=True, exist_ok=True)
        folder = open_folder(str(whole.parent), ())
    try:
        yield folder
    finally:
        os.close(folder)


def step_or_make(name: str, folder: int) -> int:
    """A folder in an open folder, made if there is none; OSError for a link."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return step_into(name, folder)
