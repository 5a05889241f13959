"""A tree of files that somebody else wrote: looked through before it is trusted, then digested or copied."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


LEFT_OUT = frozenset({
    *(".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".nox", ".DS_Store"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".plugin_cache"),
})  # fmt: skip
"""What is no part of a plugin though it lies beside it."""
DEEPEST = 100
"""Folders in folders, far more than people make, and far fewer than we have room to call ourselves for."""
MOST_FILES = 50_000
PIECE = 1 << 20


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A file or a link, by its path inside the tree."""

    name: str
    size: int
    executable: bool = False
    link: str | None = None


class FileTree(msgspec.Struct, frozen=True, kw_only=True):
    """All items of a folder, in the order of their names."""

    root: str
    items: Sequence[Item]


def look_through(root: str | Path, *, most_bytes: int) -> FileTree | Problem:
    """List a tree; one with links that lead out of it, with devices, or larger than the limit is refused."""
    top = os.path.realpath(root)
    items: list[Item] = []
    total = 0
    try:
        for item in walk(top, ""):
            if isinstance(item, Problem):
                return item
            items.append(item)
            total += item.size
            if total > most_bytes or len(items) > MOST_FILES:
                return too_large(root, items, most_bytes)
    except OSError as error:
        message = f"{error.filename or root} cannot be read: {error.strerror}"
        return Problem(code="plugin_unreadable", message=message, hint="check its permissions")
    return FileTree(root=top, items=sorted(items, key=lambda item: item.name))


def walk(top: str, inside: str) -> Iterator[Item | Problem]:
    if inside.count(os.sep) >= DEEPEST:
        message = f"{top} has folders in folders more than {DEEPEST} deep"
        yield Problem(code="plugin_too_large", message=message, hint="no plugin needs that: look at what is in there")
        return
    with os.scandir(os.path.join(top, inside)) as entries:
        for entry in entries:
            name = os.path.join(inside, entry.name)
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                continue
            if entry.is_symlink():
                yield read_link(top, name)
            elif entry.is_dir(follow_symlinks=False):
                if not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    yield from walk(top, name)
            else:
                yield read_item(entry, name)


def read_item(entry: os.DirEntry[str], name: str) -> Item | Problem:
    info = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(info.st_mode):
        message = f"'{name}' is neither a file, a folder nor a link"
        return Problem(code="plugin_odd_file", message=message, hint="remove it from the repository")
    return Item(name=name, size=info.st_size, executable=bool(info.st_mode & stat.S_IXUSR))


def read_link(top: str, name: str) -> Item | Problem:
    """A link must be relative and stay inside, so that it means the same in a copy."""
    path = os.path.join(top, name)
    target = os.readlink(path)
    if os.path.isabs(target) or not is_within(top, os.path.realpath(path)):
        return Problem(
            code="plugin_outside",
            message=f"the link '{name}' leads out of the repository, to '{target}'",
            hint="a repository holds all that it needs; remove the link",
        )
    return Item(name=name, size=0, link=target)


def is_within(top: str, path: str) -> bool:
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def too_large(root: str | Path, items: Sequence[Item], most_bytes: int) -> Problem:
    if len(items) > MOST_FILES:
        message = f"{root} has more than {MOST_FILES} files"
    else:
        largest = max(items, key=lambda item: item.size)
        size = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes} bytes"
        message = f"{root} is larger than {size}; its largest file is '{largest.name}'"
    hint = "keep data elsewhere, or raise plugin_policy.install_max_bytes"
    return Problem(code="plugin_too_large", message=message, hint=hint)


def digest_tree(tree: FileTree) -> str:
    """A fingerprint of all names and contents."""
    whole = hashlib.sha256()
    for item in tree.items:
        whole.update(f"{item.name}\0{int(item.executable)}\0{item.link or ''}\0".encode("utf-8", "surrogateescape"))
        if item.link is None:
            content = hashlib.sha256()
            for piece in read_pieces(os.path.join(tree.root, item.name)):
                content.update(piece)
            whole.update(content.digest())
    return whole.hexdigest()


def copy_tree(tree: FileTree, to: Path) -> None:
    """Copy the items into a folder that does not exist yet."""
    to.mkdir(parents=True)
    for item in tree.items:
        target = to / item.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if item.link is not None:
            os.symlink(item.link, target)
            continue
        with target.open("xb") as file:
            for piece in read_pieces(os.path.join(tree.root, item.name)):
                file.write(piece)
        target.chmod(0o755 if item.executable else 0o644)


def read_pieces(path: str) -> Iterator[bytes]:
    """A file's content; never that of what a link, put in its place meanwhile, leads to."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            yield piece


def inner_folder(root: str | Path, subdirectory: str | None) -> str | Problem:
    """A folder inside another, links followed; as a descriptor or a configuration names it."""
    top = os.path.realpath(root)
    if not subdirectory:
        return top
    path = os.path.realpath(os.path.join(top, subdirectory)) if "\0" not in subdirectory else ""
    if os.path.isabs(subdirectory) or not is_within(top, path):
        message = f"the subdirectory '{subdirectory}' is outside the repository"
        return Problem(code="plugin_outside", message=message, hint="name a folder of the repository itself")
    if not os.path.isdir(path):
        message = f"there is no folder '{subdirectory}' in the repository"
        return Problem(code="plugin_missing", message=message, hint="check 'subdirectory'")
    return path
