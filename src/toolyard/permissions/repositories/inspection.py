"""Whether git can be let into a folder: which repository it would use there, and what that would have it do."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from toolyard.files.door import LARGEST_TEXT, Door, FileRefused
from toolyard.files.inside import is_inside
from toolyard.files.plain_text import path_of
from toolyard.permissions.paths import entries_of
from toolyard.permissions.repositories.index import IndexUnread, submodule_paths
from toolyard.permissions.repositories.settings import NotUnderstood, read_settings, why_obeyed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.permissions.repositories.settings import Setting


MOST_REPOSITORIES = 64
"""Submodules, and those in them, that are looked at."""
MOST_ALTERNATES = 8
LARGEST_INDEX = 64 << 20
LARGEST_POINTER = 1 << 16
FLAT = ("", "objects", "objects/pack", "objects/info", "info")
DEEP = ("refs", "logs")
"""Folders of a repository none of whose entries may be a link that leads out of the workspace; those in the second list
with all that is below them."""
MOST_FOLDERS = 200
RUN_WHILE_LOOKING = "post-index-change"
"""The one hook that git runs when it only looks: it writes down what it saw of the files."""
OF_THE_TREE = (".mailmap", ".gitattributes", ".gitignore", ".gitmodules")
"""Files of a working tree that git itself reads."""


class Doubtful(Exception):
    """Why git should not be let in."""


class GitFolder(msgspec.Struct, frozen=True):
    """One repository of a disk, as git finds it."""

    folder: str
    """Where its objects and settings are."""
    tree: str
    """The folder that git takes for its working tree."""
    pointer: str = ""
    """The file that names its folder, when it is not simply below the working tree."""


def why_not_obeyed(folder: str, workspace: str) -> str | None:
    """Why git, started in a folder, may run a program or show what is not the workspace's; None when it cannot."""
    known = inspected(folder, workspace)
    if not known.still_holds():
        inspected.cache_clear()
        known = inspected(folder, workspace)
    return known.objection


class Finding(msgspec.Struct, frozen=True):
    """What was found out, and by which files."""

    objection: str | None
    there: tuple[tuple[str, object], ...]
    missing: tuple[str, ...]

    def still_holds(self) -> bool:
        """Whether all files are as they were; asked at every command of git, and most of them are missing."""
        for path in self.missing:
            if os.access(path, os.F_OK, follow_symlinks=False):
                return False
        return all(stamp_at(path) == stamp for path, stamp in self.there)


@lru_cache(maxsize=64)
def inspected(folder: str, workspace: str) -> Finding:
    inspection = Inspection(workspace)
    objection = inspection.objection(folder)
    there = tuple((path, stamp) for path, stamp in inspection.seen.items() if stamp is not None)
    missing = tuple(path for path, stamp in inspection.seen.items() if stamp is None and "\0" not in path)
    return Finding(objection, there, missing)


def stamp_at(path: str) -> object:
    """What changes when a file is written, replaced or removed, or a folder gets another entry."""
    try:
        facts = os.lstat(path)
    except (OSError, ValueError):
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


class Inspection:
    """Looks at the repository of a folder and at its submodules, and remembers at which files."""

    def __init__(self, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self.seen: dict[str, object] = {}
        self._looked_at: set[str] = set()

    def objection(self, folder: str) -> str | None:
        try:
            if not os.path.isdir(folder):
                raise Doubtful(f"'{os.path.basename(folder)}' is not there yet, nor what git would find in it")
            self._all_of(self._find(os.path.realpath(folder)))
        except (Doubtful, NotUnderstood, FileRefused) as error:
            return str(error) if not isinstance(error, FileRefused) else f"a file of the repository: {error.strerror}"
        except (IndexUnread, OSError, ValueError, RecursionError):  # whatever its files say, it is a question
            return "the repository that git would use cannot be looked over"
        return None

    def entered_from(self, folder: str) -> list[GitFolder]:
        """The repository that git finds in a folder, and those of its submodules that are of the workspace."""
        first = self._find(os.path.realpath(folder))
        found: dict[str, GitFolder] = {}
        waiting = [first] if first else []
        while waiting:
            repository = waiting.pop()
            if repository.folder not in found:
                found[repository.folder] = repository
                if len(found) > MOST_REPOSITORIES:
                    raise Doubtful("the repository has more submodules than can be looked over")
                waiting += self._submodules(repository)
        return list(found.values())

    def _all_of(self, first: GitFolder | None) -> None:
        waiting = [first] if first else []
        while waiting:
            repository = waiting.pop()
            if repository.folder in self._looked_at:
                continue
            self._looked_at.add(repository.folder)
            if len(self._looked_at) > MOST_REPOSITORIES:
                raise Doubtful("the repository has more submodules than can be looked over")
            self._look_at(repository)
            waiting += self._submodules(repository)

    def _find(self, folder: str) -> GitFolder | None:
        """The repository that git finds from a folder upwards, as it looks for one."""
        while True:
            if (found := self._at(folder)) is not None:
                return found
            above = os.path.dirname(folder)
            if above == folder:
                return None
            folder = above

    def _at(self, folder: str) -> GitFolder | None:
        below = os.path.join(folder, ".git")
        self._see(below)
        if os.path.isfile(below):
            return GitFolder(self._pointed_to(below), folder, below)
        if os.path.isdir(below) and self._is_repository(below):
            return GitFolder(os.path.realpath(below), folder, below if os.path.islink(below) else "")
        return GitFolder(folder, folder) if self._is_repository(folder) else None

    def _is_repository(self, folder: str) -> bool:
        """Whether it looks like one to git; what it is made of may also be named by `commondir`."""
        head = os.path.join(folder, "HEAD")
        self._see(head)
        has_objects = os.path.isdir(os.path.join(folder, "objects")) and os.path.isdir(os.path.join(folder, "refs"))
        return os.path.lexists(head) and (has_objects or os.path.lexists(os.path.join(folder, "commondir")))

    def _pointed_to(self, pointer: str) -> str:
        text = self._read(pointer, LARGEST_POINTER).removeprefix(b"gitdir: ").rstrip(b"\r\n")
        return os.path.realpath(os.path.join(os.path.dirname(pointer), path_of(text)))

    def _look_at(self, repository: GitFolder) -> None:
        if not self._is_own(repository.folder):
            self._check_owner(repository)
            return
        self._check_links(repository)
        common = self._common(repository)
        settings = [
            *self._settings(os.path.join(common, "config")),
            *self._settings(os.path.join(repository.folder, "config.worktree")),
        ]
        for tree in values_of(settings, "core", "worktree"):
            repository = GitFolder(repository.folder, self._named_tree(tree, repository))
        if why := why_obeyed(settings, lambda path: self._is_named_file_own(path, repository)):
            raise Doubtful(why)
        self._check_hooks(repository, common, settings)
        self._check_alternates(os.path.join(common, "objects"))

    def _check_owner(self, repository: GitFolder) -> None:
        """A repository outside is its owner's, whose settings nobody can write from inside.

        It was found above the workspace, or a pointer inside names it: then it has to name that place in return, as it
        does for working trees and submodules of its own.
        """
        if not repository.pointer or not self._is_own(repository.pointer):
            return
        for name in ("gitdir", "config"):
            self._see(os.path.join(repository.folder, name))
        back = self._read_if_there(os.path.join(repository.folder, "gitdir")).rstrip(b"\r\n")
        if back and os.path.realpath(os.path.join(repository.folder, path_of(back))) == repository.pointer:
            return
        for tree in values_of(self._settings(os.path.join(repository.folder, "config")), "core", "worktree"):
            if os.path.realpath(os.path.join(repository.folder, tree)) == repository.tree:
                return
        raise Doubtful("'.git' leads to a repository outside of the workspace, which does not know this folder")

    def _common(self, repository: GitFolder) -> str:
        """The folder that several working trees share; one outside has to be that of the repository around."""
        given = self._read_if_there(os.path.join(repository.folder, "commondir")).rstrip(b"\r\n")
        if not given:
            return repository.folder
        common = os.path.realpath(os.path.join(repository.folder, path_of(given)))
        if not self._is_own(common):
            raise Doubtful("'commondir' of the repository leads out of the workspace")
        self._check_links(GitFolder(common, repository.tree))
        return common

    def _named_tree(self, path: str, repository: GitFolder) -> str:
        tree = os.path.realpath(os.path.join(repository.folder, path))
        if path.startswith("~") or not self._is_own(tree):
            raise Doubtful("'core.worktree' in the repository's configuration leads out of the workspace")
        return tree

    def _settings(self, path: str) -> list[Setting]:
        return list(read_settings(self._read_if_there(path)))

    def _check_links(self, repository: GitFolder) -> None:
        waiting = [os.path.join(repository.folder, name) for name in (*DEEP, *FLAT)]
        deep = set(waiting[: len(DEEP)])
        for at, folder in enumerate(waiting):
            self._see(folder)
            for entry in entries_of(folder):
                if entry.is_symlink() and not self._is_own(os.path.realpath(entry.path)):
                    raise Doubtful(f"'{entry.name}' in the repository is a link out of the workspace")
                if folder in deep and at < MOST_FOLDERS and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    deep.add(entry.path)
        for name in OF_THE_TREE:
            path = os.path.join(repository.tree, name)
            self._see(path)
            if os.path.islink(path) and not self._is_own(os.path.realpath(path)):
                raise Doubtful(f"'{name}' is a link out of the workspace")

    def _check_hooks(self, repository: GitFolder, common: str, settings: list[Setting]) -> None:
        paths = [os.path.join(common, "hooks")]
        paths += [os.path.join(repository.tree, path) for path in values_of(settings, "core", "hookspath")]
        for path in paths:
            hook = os.path.join(path, RUN_WHILE_LOOKING)
            self._see(hook)
            if os.path.lexists(hook):
                raise Doubtful(f"the repository has a hook '{RUN_WHILE_LOOKING}', which git runs even when it looks")

    def _check_alternates(self, objects: str, depth: int = 0) -> None:
        """Other folders that objects are taken from, and those that they name in turn."""
        text = self._read_if_there(os.path.join(objects, "info", "alternates"))
        for line in text.split(b"\n"):
            if not line or line.startswith(b"#"):
                continue
            path = os.path.realpath(os.path.join(objects, path_of(line)))
            if line.startswith(b'"') or not self._is_own(path) or depth >= MOST_ALTERNATES:
                raise Doubtful("'objects/info/alternates' of the repository leads out of the workspace")
            self._check_alternates(path, depth + 1)

    def _submodules(self, repository: GitFolder) -> Iterator[GitFolder]:
        """The repositories that git enters from this one."""
        if self._is_own(repository.folder) and self._has_shared_index(repository.folder):
            raise Doubtful("the repository's index is in several files, which are not looked over")
        for path in submodule_paths(self._read_if_there(os.path.join(repository.folder, "index"), LARGEST_INDEX)):
            folder = os.path.join(repository.tree, path)
            if self._is_own(os.path.realpath(folder)) and (found := self._at(os.path.realpath(folder))) is not None:
                yield found

    def _has_shared_index(self, folder: str) -> bool:
        return any(entry.name.startswith("sharedindex.") for entry in entries_of(folder))

    def _is_own(self, path: str) -> bool:
        """Whether a path, with all links followed, is inside the workspace."""
        return is_inside(path, self._workspace)

    def _is_named_file_own(self, path: str, repository: GitFolder) -> bool:
        """The same for a path in the configuration, wherever git may take it to begin."""
        leads_up = os.path.normpath(path).startswith("..")
        return not (path.startswith("~") or leads_up) and self._is_own(
            os.path.realpath(os.path.join(repository.tree, path))
        )

    def _see(self, path: str) -> None:
        self.seen[path] = stamp_at(path)

    def _read(self, path: str, largest: int = LARGEST_TEXT) -> bytes:
        self._see(path)
        return Door().read(path, largest=largest).data

    def _read_if_there(self, path: str, largest: int = LARGEST_TEXT) -> bytes:
        try:
            return self._read(path, largest)
        except (FileNotFoundError, NotADirectoryError):
            return b""


def values_of(settings: list[Setting], section: str, key: str) -> list[str]:
    return [each.value for each in settings if (each.section, each.part, each.key) == (section, "", key)]
