"""The layout of a sandbox: which paths can be read, which written, which are hidden, which private.

A rule is about a path and all below it; the most specific one decides. So a workspace can be written though the home
around it can only be read, and a folder of hooks below that workspace can only be read again.
"""

from __future__ import annotations

import os
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.files.user_folders import SYSTEM_FOLDERS
from toolyard.process.sandbox.draft import Access, LayoutDraft, nearest
from toolyard.process.sandbox.git import guard_repository
from toolyard.process.sandbox.secrets import HOME_SECRETS, is_watched, startup_files, system_secrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from toolyard.process.sandbox.mount_points import MountPoint


PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - the very point
HOMES = ("/home", "/root")
RULE_FILES = ("toolyard.json",)
"""Configuration files that a later start would obey, beside the one that is in use."""


class SandboxPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that a layout is made for, as the application knows them; all absolute."""

    home: str
    workspace: Sequence[str]
    protected: Sequence[str] = ()
    """Never written, wherever they are: the store, the audit log, grants, the configuration."""
    readable: Sequence[str] = ()
    """Needed inside, wherever they are: tools, the interpreter, programs."""
    also_readable: Sequence[str] = ()
    also_writable: Sequence[str] = ()
    also_hidden: Sequence[str] = ()
    """As the configuration says; that wins over all else about the same path."""
    made: Sequence[str] = ()
    """Folders to write, which are made when they are missing."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by path, parents first, and what they need."""

    rules: dict[str, Access]
    mount_points: Sequence[MountPoint] = ()
    """What must not be created, and so has to be there to be mounted over."""
    unwanted: Sequence[str] = ()
    """What must not be created either, but would be in everybody's way: it is moved away if it is."""
    unguarded: Sequence[str] = ()
    """Paths that should be protected and cannot be: the workspace itself, and links, which anybody who may write beside
    them can replace."""
    plain: Sequence[str] = ()
    """What its owner may read inside as outside, though it stands in a folder of the system."""
    secrets: Sequence[str] = ()
    """What is hidden now, or would be if it were created; a sandbox is stale when one of them is replaced."""

    def access(self, path: str) -> Access:
        return nearest(self.rules, path)[1]

    def writable(self) -> list[str]:
        """The topmost paths that can be written."""
        return [path for path, access in self.rules.items() if access == "write" and self._above(path) != "write"]

    def guards(self) -> list[str]:
        """What can be read only, though what is around it can be written."""
        return [path for path, access in self.rules.items() if access == "read" and self._above(path) == "write"]

    def looking(self) -> Layout:
        """The same with nothing to write, and so nothing to guard."""
        rules: dict[str, Access] = dict(self.rules)
        rules.update(dict.fromkeys((path for path, access in rules.items() if access == "write"), "read"))
        return replace(self, rules=tidy(rules), mount_points=(), unwanted=(), unguarded=())

    def without(self, paths: Collection[str]) -> Layout:
        rules = {path: access for path, access in self.rules.items() if path not in paths}
        return replace(self, rules=rules) if paths else self

    def _above(self, path: str) -> Access:
        return nearest(self.rules, os.path.dirname(path))[1] if path != "/" else "read"


def lay_out(paths: SandboxPaths) -> Layout:
    """The layout for these paths. Later steps win over earlier ones about the same path, guards over all."""
    home = os.path.realpath(paths.home)
    draft = LayoutDraft()
    draft.add("private", PRIVATE)
    draft.add("hidden", HOMES)
    draft.add("read", [home] if home != "/" else [])
    secrets = [os.path.join(home, name) for name in HOME_SECRETS]
    systems = system_secrets() if os.geteuid() == 0 else []
    draft.add("hidden", [*secrets, *systems])
    for path in (*paths.readable, *interpreter(), *program_folders()):
        reveal(draft, path)
    add_workspace(draft, paths.workspace)
    draft.add("hidden", paths.also_hidden)
    draft.add("read", paths.also_readable)
    draft.add("write", paths.also_writable)
    for path in paths.made:
        os.makedirs(path, exist_ok=True)
    draft.add("write", paths.made)
    guard_home(draft, home)
    for path in paths.protected:
        draft.guard(os.path.realpath(path))
    return Layout(
        rules=tidy(draft.rules),
        mount_points=draft.mount_points,
        unwanted=draft.unwanted,
        unguarded=draft.unguarded,
        plain=[home, *needed_as_they_are(paths)],
        secrets=[path for path in (*secrets, *systems, *paths.also_hidden) if is_watched(path, home)],
    )


def add_workspace(draft: LayoutDraft, folders: Iterable[str]) -> None:
    """Folders to work in, but no folder of the system, even if we were started there."""
    roots = {real for path in folders if os.path.isdir(real := os.path.realpath(path)) and real not in SYSTEM_FOLDERS}
    draft.add("write", roots)
    for root in sorted(roots):
        guard_repository(draft, root)
        for rules in (os.path.join(root, name) for name in RULE_FILES):
            if os.path.lexists(rules):
                draft.guard(rules)
            else:
                draft.unwanted.append(rules)


def reveal(draft: LayoutDraft, path: str) -> None:
    """Let a path below a hidden or private folder be read, but never that folder itself."""
    real = os.path.realpath(path)
    root, access = nearest(draft.rules, real)
    if access in ("hidden", "private") and real != root:
        draft.add("read", [real])


def guard_home(draft: LayoutDraft, home: str) -> None:
    """In a home that is also a workspace: start-up files can neither be changed nor created."""
    if nearest(draft.rules, home)[1] != "write":
        return
    for name, content in startup_files(home).items():
        path = os.path.join(home, name)
        if os.path.lexists(path) or (content is not None and os.path.isdir(os.path.dirname(path))):
            draft.guard(path, content)
    draft.guard(os.path.join(home, ".ssh"))


def needed_as_they_are(paths: SandboxPaths) -> list[str]:
    """What the application names itself, and programs that only their owner may run."""
    named = [*paths.workspace, *paths.readable, *paths.also_readable]
    ours = [path for path in (*interpreter(), *program_folders()) if not is_public(path)]
    real = [os.path.realpath(path) for path in (*named, *ours)]
    return [path for path in dict.fromkeys(real) if path not in SYSTEM_FOLDERS and os.path.lexists(path)]


def is_public(path: str) -> bool:
    """Whether everybody may enter a folder, with all that is above it."""
    real = os.path.realpath(path)
    return all(os.stat(each).st_mode & 0o005 == 0o005 for each in (real, *map(str, PurePosixPath(real).parents)))


def interpreter() -> list[str]:
    """Our own Python, which also runs inside, and ourselves."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return [sys.prefix, sys.base_prefix, sys.exec_prefix, package]


def program_folders() -> list[str]:
    return [path for path in os.environ.get("PATH", "").split(":") if os.path.isabs(path) and os.path.isdir(path)]


def tidy(rules: dict[str, Access]) -> dict[str, Access]:
    """Parents first, without rules that change nothing. A `write` below a `write` stays: it prevents a move."""
    kept: dict[str, Access] = {}
    for path in sorted(rules, key=lambda path: path.split("/")):
        access = rules[path]
        above = nearest(kept, path)[1] if kept else None
        hides_nothing = access == "hidden" and above == "private"
        if access == "write" or (access != above and not hides_nothing) or not kept:
            kept[path] = access
    return kept
