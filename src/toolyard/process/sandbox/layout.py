"""The layout of a sandbox: which paths can be read, which written, which are hidden, which private.

A rule is about a path and all below it; the most specific one decides. So a workspace can be written though the home
around it can only be read, and a folder of hooks below that workspace can only be read again.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.files.inside import is_inside
from toolyard.files.user_folders import SYSTEM_FOLDERS
from toolyard.process.sandbox.cleanup import mount_points_of_others
from toolyard.process.sandbox.draft import Access, LayoutDraft, between, nearest, parts_of
from toolyard.process.sandbox.git.guards import guard_nested, guard_repository
from toolyard.process.sandbox.git.inside_repository import is_like_git
from toolyard.process.sandbox.git.submodules import entries_of
from toolyard.process.sandbox.mount_points import SOCKET
from toolyard.process.sandbox.named_secrets import named_secrets
from toolyard.process.sandbox.project_files import guard_or_move, guard_project
from toolyard.process.sandbox.roots import code_folders, interpreter, linked_programs, open_roots, program_folders
from toolyard.process.sandbox.secrets import (
    HOME_SECRETS,
    STARTUP_FOLDERS,
    STARTUP_IF_THERE,
    STOPPED_AT,
    is_watched,
    startup_files,
    system_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from toolyard.process.sandbox.git.inside_repository import InsideRepository
    from toolyard.process.sandbox.git.obeyed_files import ObeyedFiles
    from toolyard.process.sandbox.git.repository_walk import RepositoryWalk
    from toolyard.process.sandbox.mount_points import MountPoint


PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - the very point
HOMES = ("/home", "/root")
LINKED = (
    ".npmrc",
    ".yarnrc.yml",
    ".cargo/config.toml",
    ".ssh/config",
    ".config/fish/config.fish",
    ".config/nvim/init.lua",
)
"""Further files that programs of the user obey, as links into a folder of dotfiles."""


class SandboxPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that a layout is made for, as the application knows them; all absolute."""

    home: str
    workspace: Sequence[str]
    protected: Sequence[str] = ()
    """Never written, wherever they are: grants, the configuration, plugins that the application runs."""
    edited: Sequence[str] = ()
    """Of these, scripts that their owner edits while an application runs: one that is replaced takes effect at the next
    call, in a sandbox that is built anew."""
    unseen: Sequence[str] = ()
    """Folders and files of our own that nobody inside may even open, since we lock some of them."""
    shown: Sequence[str] = ()
    """Below those, what can be read all the same."""
    unwanted: Sequence[str] = ()
    """What would be obeyed if it came to be: it is moved away."""
    readable: Sequence[str] = ()
    """Needed inside, wherever they are: tools, the interpreter, programs."""
    also_readable: Sequence[str] = ()
    also_writable: Sequence[str] = ()
    also_hidden: Sequence[str] = ()
    """As the configuration says; that wins over all else about the same path."""
    made: Sequence[str] = ()
    """Folders to write, which are made when they are missing."""
    caches: str = ""
    """The folder for caches of package managers; none where nothing shall be kept."""


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
    needed: Sequence[str] = ()
    """What programs inside need, wherever it is: tools, the interpreter, folders of programs."""
    secrets: Sequence[str] = ()
    """What is hidden now, or would be if it were created; a sandbox is stale when one of them is replaced."""
    open_roots: Sequence[str] = ()
    """Folders of the interpreter or of programs that can be written all the same: nothing may run."""
    repositories: Sequence[InsideRepository] = ()
    """Repositories that git inside can set up."""
    nested: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Repositories in folders below a workspace, and pointers to some; of those that can only be read, why."""
    obeyed: Mapping[str, ObeyedFiles] = msgspec.field(default_factory=dict)
    """For each repository what git outside obeys because settings name it."""
    programs: Sequence[str] = ()
    """What alone can be run as a program, with all below; everything where none is named."""
    empty: Sequence[str] = ()
    """Files that are empty inside: what is not there, or is hidden from who would stop at it."""
    unseen: Sequence[str] = ()
    """What is hidden only so that nobody locks it: in a workspace, Landlock cannot hide and does not try."""

    def access(self, path: str) -> Access:
        return nearest(self.rules, path)[1]

    def writable(self) -> list[str]:
        """The topmost paths that can be written."""
        return [path for path, access in self.rules.items() if access == "write" and self._above(path) != "write"]

    def guards(self) -> list[str]:
        """What cannot be written, though what is around it can."""
        return [
            path
            for path, access in self.rules.items()
            if access == "repository" or (access != "write" and self._above(path) == "write")
        ]

    def ways_to(self, paths: Iterable[str]) -> list[str]:
        """The folders on the way to some paths, below what can be written: with another one they are unguarded."""
        roots = self.writable()
        ways = {way for path in paths for root in roots if is_inside(path, root) for way in between(root, path)}
        return sorted(ways.difference(paths))

    def sealed(self) -> set[str]:
        """Of what is guarded that which nothing can be written below."""
        above_writable: set[str] = set()
        for path in [path for path, access in self.rules.items() if access == "write"]:
            while path not in above_writable:
                above_writable.add(path)
                path = os.path.dirname(path)
        return {path for path in self.guards() if path not in above_writable}

    def looking(self) -> Layout:
        """The same with nothing to write, and so nothing to guard."""
        rules: dict[str, Access] = dict(self.rules)
        rules.update({path: "read" for path, access in rules.items() if access in ("write", "repository")})
        return replace(self, rules=tidy(rules), mount_points=(), unwanted=(), unguarded=(), repositories=())

    def without(self, paths: Collection[str]) -> Layout:
        rules = {path: access for path, access in self.rules.items() if path not in paths}
        return replace(self, rules=rules) if paths else self

    def for_landlock(self) -> dict[str, Access]:
        """The rules without what is hidden in a folder that can be written: Landlock would close that folder to it."""
        return {path: access for path, access in self.rules.items() if not self._is_unseen_work(path)}

    def _is_unseen_work(self, path: str) -> bool:
        return path in self.unseen and self._above(path) == "write"

    def _above(self, path: str) -> Access:
        return nearest(self.rules, os.path.dirname(path))[1] if path != "/" else "read"


def lay_out(paths: SandboxPaths, walk: RepositoryWalk | None = None) -> Layout:
    """The layout for these paths. Later steps win over earlier ones about the same path, guards over all.

    `walk` finds repositories in folders below the workspace; without it they are not looked for.
    """
    home = os.path.realpath(paths.home)
    draft = LayoutDraft(of_others=mount_points_of_others())
    draft.add("private", PRIVATE)
    draft.add("hidden", HOMES)
    draft.add("read", [home] if home != "/" else [])
    secrets = [os.path.join(home, name) for name in HOME_SECRETS]
    named = named_secrets(home) if home != "/" else []
    secrets += [path for path in named if not any(is_inside(path, root) for root in paths.workspace)]
    systems = system_secrets() if os.geteuid() == 0 else []
    draft.add("hidden", [path for path in (*secrets, *systems) if path not in draft.of_others])
    needed = (*paths.readable, *interpreter(), *program_folders())
    for path in needed:
        reveal(draft, path)
    add_workspace(draft, paths.workspace)
    draft.add("hidden", paths.also_hidden)
    draft.add("read", paths.also_readable)
    draft.add("write", paths.also_writable)
    for folder in named_folders(paths):
        guard_project(draft, folder)
    for path in paths.made:
        os.makedirs(path, exist_ok=True)
    draft.add("write", paths.made)
    if os.path.isdir(paths.caches):
        draft.add("hidden", [os.path.dirname(paths.caches)])  # those of other workspaces
        draft.add("write", [paths.caches])
    guard_home(draft, home)
    code = code_folders(paths.workspace)
    roots = {path: os.path.realpath(path) for path in (*code, *program_folders())}
    gone = {path for path in paths.edited if not os.path.lexists(path)}
    for path in (*map(os.path.realpath, paths.protected), *roots.values()):
        if path not in gone:  # nothing is to stand in the place of a script that its owner removed
            draft.guard(path)
    unseen = {os.path.realpath(path) for path in paths.unseen if os.path.lexists(path)}
    # What is guarded because it may come to be, and would be a secret then, is hidden beforehand.
    for path in (*unseen, *filter(draft.can_write, draft.guards.keys() & set(secrets))):
        draft.hide(path)
    if walk:
        guard_nested(draft, workspace_roots(paths.workspace), walk, named_folders(paths))
    draft.settle()
    # A link there leads to what is not meant to be seen.
    draft.rules |= {path: "read" for path in paths.shown if os.path.realpath(path) == path}
    rules = tidy(draft.rules)
    made_empty = [path for path, content in draft.mount_points if content == SOCKET]
    empty = [path for name in STOPPED_AT if rules.get(path := os.path.join(home, name)) == "hidden"]
    return Layout(
        rules=rules,
        mount_points=draft.mount_points,
        unwanted=[*draft.unwanted, *(path for path in paths.unwanted if draft.can_write(path))],
        unguarded=draft.unguarded,
        needed=sorted(set(map(os.path.realpath, needed)) - set(SYSTEM_FOLDERS)),
        plain=[home, *needed_as_they_are(paths)],
        secrets=[path for path in (*secrets, *systems, *paths.also_hidden) if is_watched(path, home)],
        open_roots=open_roots(rules, roots, code),
        empty=[path for path in (*made_empty, *empty) if not os.path.isdir(path)],
        unseen=sorted(unseen),
        repositories=draft.repositories,
        nested=draft.nested,
        obeyed=draft.obeyed,
    )


def add_workspace(draft: LayoutDraft, folders: Iterable[str]) -> None:
    """Folders to work in, with what is guarded in each."""
    roots = workspace_roots(folders)
    draft.add("write", roots)
    for root in roots:
        guard_repository(draft, root)
        guard_project(draft, root)


def named_folders(paths: SandboxPaths) -> list[str]:
    """Folders beside the workspace that the configuration lets tools write: what is obeyed there is guarded as well.

    But not if it is a git folder, or a part of one, that is named itself.
    """
    if not paths.also_writable:
        return []
    workspace = workspace_roots(paths.workspace)
    return [
        folder
        for folder in workspace_roots(paths.also_writable)
        if not any(is_inside(folder, root) for root in workspace)
        and ".git" not in parts_of(folder)
        and not is_like_git(entries_of(folder))
    ]


def workspace_roots(folders: Iterable[str]) -> list[str]:
    """Folders to work in, but no folder of the system, even if we were started there."""
    real = {os.path.realpath(path) for path in folders}
    return sorted(path for path in real if os.path.isdir(path) and path not in SYSTEM_FOLDERS)


def reveal(draft: LayoutDraft, path: str) -> None:
    """Let a path below a hidden or private folder be read, but never that folder itself."""
    real = os.path.realpath(path)
    root, access = nearest(draft.rules, real)
    if access in ("hidden", "private") and real != root:
        draft.add("read", [real])


def guard_home(draft: LayoutDraft, home: str) -> None:
    """In a home that is also a workspace: start-up files can neither be changed nor created."""
    if nearest(draft.rules, home)[1] != "write":
        guard_linked(draft, home)
        return
    for name, content in startup_files(home).items():
        draft.guard(os.path.join(home, name), content)
    for name in STARTUP_FOLDERS:
        draft.guard(os.path.join(home, name))
    for name in STARTUP_IF_THERE:
        guard_or_move(draft, os.path.join(home, name))


def guard_linked(draft: LayoutDraft, home: str) -> None:
    """In any other home: start-up files, and programs on PATH, that are links to where tools can write."""
    names = (*startup_files(home), *STARTUP_FOLDERS, *STARTUP_IF_THERE, *LINKED)
    for path in (*(os.path.join(home, name) for name in names), *linked_programs()):
        if not os.path.lexists(path):  # nor is there anything where it leads to, and most are not there
            continue
        real = os.path.realpath(path)
        if real != path and draft.can_write(real) and os.path.lexists(real):
            draft.guard(real)


def needed_as_they_are(paths: SandboxPaths) -> list[str]:
    """What the application names itself, and programs that only their owner may run."""
    named = [*paths.workspace, *paths.readable, *paths.also_readable]
    ours = [path for path in (*interpreter(), *program_folders()) if os.path.lexists(path) and not is_public(path)]
    real = [os.path.realpath(path) for path in (*named, *ours)]
    return [path for path in dict.fromkeys(real) if path not in SYSTEM_FOLDERS and os.path.lexists(path)]


def is_public(path: str) -> bool:
    """Whether everybody may enter a folder, with all that is above it."""
    real = os.path.realpath(path)
    return all(os.stat(each).st_mode & 0o005 == 0o005 for each in (real, *map(str, PurePosixPath(real).parents)))


def tidy(rules: dict[str, Access]) -> dict[str, Access]:
    """Parents first, without rules that change nothing. A `write` below a `write` stays: it prevents a move.

    So does a `repository` below another, of which git inside has one as well.
    """
    kept: dict[str, Access] = {}
    for path in sorted(rules, key=parts_of):
        access = rules[path]
        above = nearest(kept, path)[1] if kept else None
        hides_nothing = access == "hidden" and above == "private"
        if access in ("write", "repository") or (access != above and not hides_nothing) or not kept:
            kept[path] = access
    return kept
