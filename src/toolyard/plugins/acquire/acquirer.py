"""Getting plugins from where they are: copied, cloned, installed into the cache, by policy.

Whatever is refused is said in words. Nothing leaves the machine unless policy allows remote repositories.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolyard.core.problems import Problem
from toolyard.files.file_tree import FileTree, copy_tree, digest_tree, inner_folder, look_through
from toolyard.files.removal import remove_tree
from toolyard.kinds.python_function.install import (
    Installation,
    Installer,
    can_build_here,
    find_installer,
    has_packaging,
    install_projects,
)
from toolyard.plugins.acquire.cache import RECORD, PluginCache, fingerprint
from toolyard.plugins.acquire.git_reference import read_git_reference, remote_refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from toolyard.config.settings import PluginPolicy
    from toolyard.plugins.acquire.build import Builders
    from toolyard.plugins.acquire.git import GitTree
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.process.child import Children


Maker: TypeAlias = "Callable[[Path], Awaitable[dict[str, Any] | Problem]]"
LAYOUT = 1
"""Changes when folders of the cache are laid out differently, so that old ones are not taken for new ones."""
MOST_ATTEMPTS = 3


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a repository, in the cache; never to be written to."""

    folder: Path
    commit: str
    notes: Sequence[Problem] = ()
    """What was done otherwise than one might expect."""


class Refetched(msgspec.Struct, frozen=True, kw_only=True):
    """What a reference meant, and what it means."""

    before: str
    now: str


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A Python project as it can be imported."""

    roots: Sequence[Path]
    """The folders to import from."""
    notes: Sequence[Problem] = ()


class Acquirer:
    """Gets plugins on behalf of one application."""

    def __init__(self, cache_dir: Path, policy: PluginPolicy, children: Children, builders: Builders) -> None:
        self.policy = policy
        self._children = children
        self._builders = builders
        self._cache = PluginCache(cache_dir)
        self._pip_cache = policy.pip_cache(cache_dir)

    async def fetch(self, reference: GitReference) -> Fetched | Problem:
        """The files of a repository's commit.

        A local repository is looked at each time. A remote one is fetched once for each reference, and again only when
        somebody asks for that.
        """
        policy = self.policy
        refusal = remote_refusal(reference, allow_remote=policy.allow_remote, hosts=policy.allowed_git_hosts)
        if refusal:
            return refusal
        noted = self._cache.noted(moving_key(reference)) if reference.is_remote else None
        return await self._fetch_at(reference, noted if reference.is_remote else await self._resolve(reference))

    async def fetch_again(self, reference: GitReference) -> Refetched | Problem:
        """Look what a reference means by now, and use that from now on.

        What was fetched before stays in the cache, for whoever still uses it.
        """
        before = await self.fetch(reference)
        if isinstance(before, Problem):
            return before
        if not reference.is_remote or reference.is_commit:
            return Refetched(before=before.commit, now=before.commit)
        meant = await self._resolve(reference) or uuid.uuid4().hex  # without an answer, fetching says what is wrong
        after = before if meant == before.commit else await self._fetch_at(reference, meant)
        if isinstance(after, Problem):
            return after
        if after is not before and (refusal := self._cache.note(moving_key(reference), meant)):
            return refusal
        return Refetched(before=before.commit, now=after.commit)

    async def _fetch_at(self, reference: GitReference, now: str | None) -> Fetched | Problem:
        policy = self.policy
        key = fingerprint(LAYOUT, "git", reference.url, reference.ref, now, policy.install_max_bytes)
        name = os.path.basename(reference.shown.rstrip("/").removesuffix(".git"))

        async def make(folder: Path) -> dict[str, Any] | Problem:
            return await self._clone(reference, folder)

        folder = await self._cache.provide(name, key, make, patience=policy.install_timeout_seconds)
        if isinstance(folder, Problem):
            return folder
        record = read_record(folder)
        return Fetched(folder=folder / "tree", commit=record["commit"], notes=notes_of(record))

    async def install(self, project: Path, *, name: str, beside: Sequence[Path] = ()) -> Installed | Problem:
        """A Python project, with the projects beside it that it needs, as importable folders.

        One without packaging is copied as it is.
        """
        refused = Problem(code="plugin_changing", message=f"{project} is being written to")
        for _ in range(MOST_ATTEMPTS):
            trees = await asyncio.to_thread(self._look_at, [project, *beside])
            if isinstance(trees, Problem):
                return trees
            digests = await asyncio.to_thread(lambda found: [digest_tree(tree) for tree in found], trees)
            key = fingerprint(LAYOUT, "python", str(project), digests, self._conditions(project))
            make = self._maker(trees, digests)
            made = await self._cache.provide(name, key, make, patience=self.policy.install_timeout_seconds)
            if isinstance(made, Path):
                return installed_at(made)
            refused = made
            if refused.code != "plugin_changing":
                break
        return refused

    def _conditions(self, project: Path) -> list[Any]:
        """What decides, beside the files themselves, what comes of an installation."""
        policy = self.policy
        if not has_packaging(project):
            return []
        chosen = [policy.install_deps, policy.pip_args, policy.allow_remote]
        return [sys.implementation.cache_tag, sys.platform, *chosen, can_build_here(project)]

    async def _resolve(self, reference: GitReference) -> str | None:
        from toolyard.plugins.acquire.git import resolve

        async with self._cache.scratch() as work:
            return await resolve(reference, work, self._children, timeout=self.policy.install_timeout_seconds)

    async def _clone(self, reference: GitReference, folder: Path) -> dict[str, Any] | Problem:
        from toolyard.plugins.acquire.git import fetch_tree

        policy = self.policy
        found = await fetch_tree(
            reference,
            folder,
            self._children,
            timeout=policy.install_timeout_seconds,
            most_bytes=policy.install_max_bytes,
        )
        if isinstance(found, Problem):
            return found
        looked = await asyncio.to_thread(look_through, found.folder, most_bytes=policy.install_max_bytes)
        if isinstance(looked, Problem):
            return looked
        return {"source": reference.shown, "ref": reference.ref, "commit": found.commit, "notes": clone_notes(found)}

    def _look_at(self, folders: Sequence[Path]) -> list[FileTree] | Problem:
        trees: list[FileTree] = []
        for folder in folders:
            tree = look_through(folder, most_bytes=self.policy.install_max_bytes)
            if isinstance(tree, Problem):
                return tree
            trees.append(tree)
        return trees

    def _maker(self, trees: Sequence[FileTree], digests: Sequence[str]) -> Maker:
        async def make(folder: Path) -> dict[str, Any] | Problem:
            copies = [folder / "source" / str(index) for index in range(len(trees))]
            for tree, copy, digest in zip(trees, copies, digests, strict=True):
                if not await asyncio.to_thread(copy_exactly, tree, copy, digest, self.policy.install_max_bytes):
                    return Problem(code="plugin_changing", message=f"{tree.root} is being written to")
            record: dict[str, Any] = {"source": trees[0].root, "python": sys.version.split()[0]}
            if not has_packaging(copies[0]):
                return record | {"with": "copy", "roots": [f"source/{copy.name}" for copy in copies]}
            return await self._install(folder, copies, record)

        return make

    async def _installer(self) -> Installer | Problem:
        """What installs; the pip that comes with Python is unpacked once, since from its archive it is slow."""
        installer = find_installer(for_pip_args=bool(self.policy.pip_args))
        if isinstance(installer, Problem) or installer.wheel is None:
            return installer
        wheel = installer.wheel

        async def make(folder: Path) -> dict[str, Any] | Problem:
            await asyncio.to_thread(shutil.unpack_archive, wheel, folder / "pip", "zip")
            return {"source": str(wheel)}

        key = fingerprint(LAYOUT, "pip", str(wheel))
        folder = await self._cache.provide("pip", key, make, patience=self.policy.install_timeout_seconds)
        return folder if isinstance(folder, Problem) else installer.unpacked(folder / "pip")

    async def _install(self, folder: Path, copies: Sequence[Path], record: dict[str, Any]) -> dict[str, Any] | Problem:
        """Install the copies; what cannot be built here, and needs nothing else, is used as it is."""
        installer = await self._installer()
        if isinstance(installer, Problem):
            return installer
        packaged = [copy for copy in copies if has_packaging(copy)]
        wanted = Installation(
            projects=[folder / "work" / copy.name for copy in packaged],
            target=folder / "site",
            work=folder / "work",
            pip_cache=self._pip_cache,
            policy=self.policy,
        )
        for copy, project in zip(packaged, wanted.projects, strict=True):
            await asyncio.to_thread(shutil.copytree, copy, project, symlinks=True)  # building may write to it
        failed = await install_projects(wanted, installer, self._builders)
        await asyncio.to_thread(remove_tree, str(folder / "work"))
        if failed is None:
            for copy in packaged:
                await asyncio.to_thread(remove_tree, str(copy))
            bare = [f"source/{copy.name}" for copy in copies if copy not in packaged]
            return record | {"with": installer.name, "roots": ["site", *bare]}
        if self.policy.install_deps or self.policy.allow_remote:
            return failed
        note = {
            "code": "plugin_used_as_it_is",
            "message": f"it could not be built and is used as its source tree is: {failed.message}",
            "hint": failed.hint,
            "severity": "warning",
        }
        return record | {"with": "copy", "roots": [f"source/{copy.name}" for copy in copies], "notes": [note]}


def moving_key(reference: GitReference) -> str:
    """What a reference that may move is known by in the cache."""
    return fingerprint("reference", reference.url, reference.ref)[:24]


def copy_exactly(tree: FileTree, to: Path, digest: str, most_bytes: int) -> bool:
    """Copy a tree that somebody may be writing to; False when the copy is not what was looked at."""
    try:
        copy_tree(tree, to)
    except FileNotFoundError:
        return False
    copied = look_through(to, most_bytes=most_bytes)
    return isinstance(copied, FileTree) and digest_tree(copied) == digest


def installed_at(folder: Path) -> Installed:
    record = read_record(folder)
    return Installed(roots=list(import_roots(folder, record["roots"])), notes=notes_of(record))


def import_roots(folder: Path, names: Sequence[str]) -> Sequence[Path]:
    """The folders to import from; a source tree may keep its packages in `src`."""
    roots: list[Path] = []
    for name in names:
        root = folder / name
        source = root / "src"
        roots += [source, root] if name != "site" and source.is_dir() else [root]
    return roots


def clone_notes(tree: GitTree) -> list[dict[str, str]]:
    if not tree.has_submodules:
        return []
    message = "the repository has submodules, which are not fetched"
    hint = "put what the plugin needs into the repository itself"
    return [{"code": "plugin_submodules", "message": message, "hint": hint, "severity": "warning"}]


async def fetch_folder(
    acquirer: Acquirer, git: str, ref: str | None, subdirectory: str | None, *, base: str
) -> Path | Problem:
    """A folder of a repository, in the cache; a local address that is relative starts at the base."""
    reference = read_git_reference(git, ref, base)
    if isinstance(reference, Problem):
        return reference
    fetched = await acquirer.fetch(reference)
    if isinstance(fetched, Problem):
        return fetched
    folder = inner_folder(fetched.folder, subdirectory)
    return folder if isinstance(folder, Problem) else Path(folder)


def read_record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return record


def notes_of(record: dict[str, Any]) -> list[Problem]:
    return [Problem(**note) for note in record.get("notes", ())]
