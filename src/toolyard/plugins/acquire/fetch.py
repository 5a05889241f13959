"""Gets the files of git repositories into the plugin cache, by policy.

Whatever is refused is said in words. Nothing leaves the machine unless policy allows remote repositories.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.problems import Problem
from toolyard.files.walk import inner_folder, scan, tree_problem
from toolyard.plugins.acquire.cache import LAYOUT, fingerprint, read_record
from toolyard.plugins.acquire.git_reference import remote_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.config.settings import PluginPolicy
    from toolyard.files.door import Door
    from toolyard.plugins.acquire.cache import PluginCache
    from toolyard.plugins.acquire.git import GitTree
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.process.child import Children


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


class Fetcher:
    """Fetches repositories on behalf of one application; git runs outside of the sandbox, with the owner's keys."""

    def __init__(self, cache: PluginCache, policy: PluginPolicy, children: Children, door: Door) -> None:
        self._cache = cache
        self._policy = policy
        self._children = children
        self._door = door

    async def fetch(self, reference: GitReference) -> Fetched | Problem:
        """The files of a repository's commit.

        A local repository is looked at each time. A remote one is fetched once for each reference, and again only when
        somebody asks for that.
        """
        policy = self._policy
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
        policy = self._policy
        key = fingerprint(LAYOUT, "git", reference.url, reference.ref, now, policy.install_max_bytes)
        name = os.path.basename(reference.shown.rstrip("/").removesuffix(".git"))

        async def make(folder: Path) -> dict[str, Any] | Problem:
            return await self._clone(reference, folder)

        folder = await self._cache.provide(name, key, make, patience=policy.install_timeout_seconds)
        if isinstance(folder, Problem):
            return folder
        record = read_record(folder)
        if isinstance(record, Problem):
            return record
        return Fetched(
            folder=folder / "tree", commit=record["commit"], notes=[Problem(**note) for note in record["notes"]]
        )

    async def fetch_folder(self, reference: GitReference, subdirectory: str | None) -> Fetched | Problem:
        """The same for one folder of a repository."""
        fetched = await self.fetch(reference)
        if isinstance(fetched, Problem):
            return fetched
        folder = inner_folder(fetched.folder, subdirectory)
        return (
            folder
            if isinstance(folder, Problem)
            else msgspec.structs.replace(fetched, folder=type(fetched.folder)(folder))
        )

    async def _resolve(self, reference: GitReference) -> str | None:
        from toolyard.plugins.acquire.git import resolve

        async with self._cache.scratch() as work:
            return await resolve(
                reference, work, self._children, self._door, timeout=self._policy.install_timeout_seconds
            )

    async def _clone(self, reference: GitReference, folder: Path) -> dict[str, Any] | Problem:
        import logging

        from toolyard.plugins.acquire.git import fetch_tree

        policy = self._policy
        logging.getLogger("toolyard.builds").info("fetching %s", reference.shown)
        found = await fetch_tree(
            reference,
            folder,
            self._children,
            self._door,
            timeout=policy.install_timeout_seconds,
            most_bytes=policy.install_max_bytes,
        )
        if isinstance(found, Problem):
            return found
        tree = await asyncio.to_thread(scan, str(found.folder))
        if wrong := tree_problem(str(found.folder), tree, most_bytes=policy.install_max_bytes):
            return wrong
        return {"source": reference.shown, "ref": reference.ref, "commit": found.commit, "notes": clone_notes(found)}


def moving_key(reference: GitReference) -> str:
    """What a reference that may move is known by in the cache."""
    return fingerprint("reference", reference.url, reference.ref)[:24]


def clone_notes(tree: GitTree) -> list[dict[str, str]]:
    if not tree.has_submodules:
        return []
    message = "the repository has submodules, which are not fetched"
    hint = "put what the plugin needs into the repository itself"
    return [{"code": "plugin_submodules", "message": message, "hint": hint, "severity": "warning"}]
