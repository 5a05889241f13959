"""A tree of files that somebody else wrote: seen, compared, checked before it is trusted, digested and copied."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from io import FileIO
from typing import TYPE_CHECKING, TypeAlias

from toolyard.core.problems import Problem
from toolyard.files.door import Door, FileRefused, Stamp, no_regular_file, open_below, stamp, way_in
from toolyard.files.inside import is_inside, leads_inside

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Tree: TypeAlias = "Mapping[str, Stamp | str | None]"
"""Every file by its name below the top: its stamp; of a link where it points; None for a device or the like.

Equal trees have not changed. The tree of a single file has one entry, with an empty name."""

LEFT_OUT = frozenset({
    *(".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".nox", ".DS_Store"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".plugin_cache"),
})  # fmt: skip
"""What is no part of a plugin though it lies beside it."""
DEEPEST = 100
MOST_FILES = 20_000
PIECE = 1 << 20


def scan(path: str, *, most: int = MOST_FILES) -> Tree:
    """What is there now, nothing where there is nothing; stops where there is more than any plugin has."""
    if lone := lone_file(
        path
    ):  # looked at in each call of a tool from it, and to find that it is no folder takes longer
        return lone
    found: dict[str, Stamp | str | None] = {}
    waiting, folders = [""], 0
    while waiting and len(found) <= most and folders <= most:
        folders += 1
        below = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(path, below) if below else path))
        except (OSError, ValueError):  # a path with a NUL is no path
            if not below:
                return {}
            found[below] = None
            continue
        if below and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                continue
            name = os.path.join(below, entry.name) if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            else:
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile, so that it is not there
                    found[name] = seen(entry)
    return found


def seen(entry: os.DirEntry[str]) -> Stamp | str | None:
    if entry.is_symlink():
        return os.readlink(entry.path)
    return stamp(entry.stat()) if entry.is_file() else None


def lone_file(path: str) -> Tree:
    """The tree of a single file; nothing for what is none."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return {}
    return {"": stamp(facts)} if stat.S_ISREG(facts.st_mode) else {}


def tree_problem(root: str, tree: Tree, *, most_bytes: int) -> Problem | None:
    """Why a tree cannot be taken over: links that lead out of it, devices, or more than is allowed."""
    if reason := too_large(root, tree, most_bytes):
        hint = "keep data elsewhere, or raise plugin_policy.install_max_bytes"
        return Problem(code="plugin_too_large", message=reason, hint=hint)
    for name, found in tree.items():
        if found is None and os.path.isdir(os.path.join(root, name)):
            message = f"{os.path.join(root, name)} cannot be read"
            return Problem(code="plugin_unreadable", message=message, hint="check its permissions")
        if found is None:
            message = f"'{name}' is neither a file, a folder nor a link"
            return Problem(code="plugin_odd_file", message=message, hint="remove it from the repository")
    if outside := links_outside(root, tree):
        return Problem(
            code="plugin_outside",
            message=f"the link '{outside[0]}' leads out of the repository, to '{tree[outside[0]]}'",
            hint="a repository holds all that it needs; remove the link",
        )
    return None


def too_large(root: str, tree: Tree, most_bytes: int) -> str | None:
    if len(tree) > MOST_FILES:
        return f"{root} has more than {MOST_FILES} files"
    if any(name.count(os.sep) >= DEEPEST for name in tree):
        return f"{root} has folders in folders more than {DEEPEST} deep"
    sizes = {name: found[1] for name, found in tree.items() if isinstance(found, tuple)}
    if sum(sizes.values()) <= most_bytes:
        return None
    size = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes} bytes"
    return f"{root} is larger than {size}; its largest file is '{max(sizes, key=sizes.__getitem__)}'"


def links_outside(root: str, tree: Tree) -> list[str]:
    """Links that are not relative or do not stay inside, and so would mean something else in a copy."""
    links = {name: target for name, target in tree.items() if isinstance(target, str)}
    return sorted(
        name
        for name, target in links.items()
        if os.path.isabs(target) or not leads_inside(os.path.join(root, name), root)
    )


def digest(root: str, tree: Tree, *, only_accepted: bool = False) -> str:
    """A fingerprint of all names, contents, links and of what can be executed.

    With `only_accepted` FileRefused for a file that tools may have written, unless a person accepted just these bytes.
    """
    whole = hashlib.sha256()
    for name in sorted(tree):
        target = tree[name]
        if target is None:  # opening a pipe or a device could wait for ever
            continue
        whole.update(b"%b\0" % os.fsencode(name))
        if isinstance(target, str):
            whole.update(b"link %b" % os.fsencode(target))
        else:
            with opened(root, name) as file:
                content = hashlib.sha256(b"x" if is_executable(file) else b"-")
                if only_accepted:
                    content.update(accepted_content(os.path.join(root, name) if name else root, file))
                while piece := file.read(PIECE):
                    content.update(piece)
            whole.update(content.digest())
    return whole.hexdigest()


def accepted_content(path: str, file: FileIO) -> bytes:
    """All that a file says, if tools may have written it and a person accepted that; else nothing was read yet."""
    from toolyard.files.accepted import objection
    from toolyard.files.write_times import may_be_from_tools

    facts = os.fstat(file.fileno())
    if not may_be_from_tools(os.path.realpath(path), facts):
        return b""
    data = file.readall() or b""
    if reason := objection(os.path.abspath(path), data, facts):
        raise FileRefused(errno.EACCES, reason, path)
    return data


def copy(root: str, tree: Tree, to: str | Path) -> None:
    """Write the files and links that were seen, and nothing else, to a folder that does not exist yet."""
    os.makedirs(to)
    for name, target in tree.items():
        if target is None:
            continue
        place = os.path.join(to, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if isinstance(target, str):
            os.symlink(target, place)
        else:
            with opened(root, name) as file, open(place, "xb") as copied:
                while piece := file.read(PIECE):
                    copied.write(piece)
                executable = is_executable(file)
            os.chmod(place, 0o755 if executable else 0o644)


def is_executable(file: FileIO) -> bool:
    return bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)


def opened(root: str, name: str) -> FileIO:
    """A file of a tree, or the one that is the tree; never what a link leads to that was put on the way meanwhile."""
    top, name = (root, name) if name else os.path.split(os.path.realpath(root))
    path = os.path.join(top, name)
    found = way_in(os.path.abspath(path), Door.here().writable)
    fd = open_below(*(found or (top, name.split(os.sep))), path)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # nor was it a pipe when it was seen
        os.close(fd)
        raise no_regular_file(path)
    return FileIO(fd)


def inner_folder(root: str | Path, subdirectory: str | None) -> str | Problem:
    """A folder inside another, links followed; as a descriptor or a configuration names it."""
    top = os.path.realpath(root)
    if not subdirectory:
        return top
    path = os.path.realpath(os.path.join(top, subdirectory)) if "\0" not in subdirectory else ""
    if os.path.isabs(subdirectory) or not is_inside(path, top):
        message = f"the subdirectory '{subdirectory}' is outside the repository"
        return Problem(code="plugin_outside", message=message, hint="name a folder of the repository itself")
    if not os.path.isdir(path):
        message = f"there is no folder '{subdirectory}' in the repository"
        return Problem(code="plugin_missing", message=message, hint="check 'subdirectory'")
    return path
