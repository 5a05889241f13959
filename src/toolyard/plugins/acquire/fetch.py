"""Gets the files of git repositories into the plugin cache, by policy.

Whatever is refused is said in words. Nothing leaves the machine unless policy allows remote repositories.
"""

from __future__ import annotations

import asyncio
import shlex
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.problems import Problem
from toolyard.files.walk import inner_folder, scan, tree_problem
from toolyard.plugins.acquire.cache import LAYOUT, fingerprint, read_record
from toolyard.plugins.acquire.git_reference import WHOLE_COMMIT, remote_refusal
from toolyard.plugins.acquire.written_repositories import LocalRepository

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.config.settings import PluginPolicy
    from toolyard.files.door import Door
    from toolyard.plugins.acquire.cache import PluginCache
    from toolyard.plugins.acquire.git import GitTree
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.process.child import Children


IN_REACH = "plugin_ref_in_reach"
SHORT = 10


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
        somebody asks for that; and so is a local one that tools could commit to.
        """
        policy = self._policy
        refusal = remote_refusal(reference, allow_remote=policy.allow_remote, hosts=policy.allowed_git_hosts)
        if refusal:
            return refusal
        noted = self._cache.noted(moving_key(reference))
        if reference.is_remote:
            return await self._fetch_at(reference, noted)
        now = await self._resolve(reference)
        if is_followed(reference, now, noted):
            return await self._fetch_noting(reference, now, noted)
        return await self._fetch_noted(reference, now, noted)

    async def _fetch_noting(self, reference: GitReference, now: str | None, noted: str | None) -> Fetched | Problem:
        """What a local reference means now, and goes on to mean if tools change it."""
        fetched = await self._fetch_at(reference, now)
        if isinstance(fetched, Fetched) and not reference.is_whole_commit:
            meant = now if now and WHOLE_COMMIT.fullmatch(now) else fetched.commit
            if meant != noted:
                self._cache.note(moving_key(reference), meant)  # if it cannot be, it will be asked about
        return fetched

    async def _fetch_noted(self, reference: GitReference, now: str | None, noted: str | None) -> Fetched | Problem:
        """What a local reference meant before tools may have changed it; with a word on that if it means more now."""
        fetched = await self._fetch_at(reference, noted) if noted or not now else None
        if isinstance(fetched, Problem):
            return fetched
        if noted is None or fetched is None:
            return in_reach(reference, now)
        if now is None or now in (noted, fetched.commit):
            return fetched
        return msgspec.structs.replace(fetched, notes=[*fetched.notes, moved(reference, noted, now)])

    async def fetch_again(self, reference: GitReference) -> Refetched | Problem:
        """Look what a reference means by now, and use that from now on.

        What was fetched before stays in the cache, for whoever still uses it.
        """
        before = await self.fetch(reference)
        if isinstance(before, Problem) and before.code != IN_REACH:
            return before
        known = before.commit if isinstance(before, Fetched) else ""
        if reference.is_commit and (reference.is_remote or reference.is_whole_commit):
            return Refetched(before=known, now=known)
        meant = await self._resolve(reference) or uuid.uuid4().hex  # without an answer, fetching says what is wrong
        after = before if meant == known else await self._fetch_at(reference, meant)
        if isinstance(after, Problem):
            return after
        noted = meant if reference.is_remote or WHOLE_COMMIT.fullmatch(meant) else after.commit
        if after is not before and (refusal := self._cache.note(moving_key(reference), noted)):
            return refusal
        return Refetched(before=known, now=after.commit)

    async def _fetch_at(self, reference: GitReference, now: str | None) -> Fetched | Problem:
        policy = self._policy
        key = fingerprint(LAYOUT, "git", reference.url, reference.ref, now, policy.install_max_bytes)

        async def make(folder: Path) -> dict[str, Any] | Problem:
            return await self._clone(reference.at_commit(now), folder)

        folder = await self._cache.provide(reference.name, key, make, patience=policy.install_timeout_seconds)
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


def is_followed(reference: GitReference, now: str | None, noted: str | None) -> bool:
    """Whether a repository on this machine is taken as it is now: only its owner can have let the name mean that.

    This is asked after it was looked up: what nobody could change until now, nobody can have changed before that.
    """
    if reference.is_whole_commit:
        return True
    repository = LocalRepository(reference.url)
    return not repository.spans or (now is not None and repository.is_owners(reference.ref, now, noted))


def in_reach(reference: GitReference, now: str | None) -> Problem:
    example = f', which is "{now}" now' if now and WHOLE_COMMIT.fullmatch(now) else ""
    return Problem(
        code=IN_REACH,
        message=f"tools could commit to {reference.shown}, so that {named(reference)} is whatever they say",
        hint=f"look at it, and name a commit by its whole number{example}; or take it as it is, by "
        f"`toolyard plugins refresh {shlex.quote(reference.name)}`",
    )


def moved(reference: GitReference, noted: str, now: str) -> Problem:
    message = (
        f"tools could commit to {reference.shown}, so {named(reference)} stays {noted[:SHORT]}; it is {now[:SHORT]} now"
    )
    look = f"git -C {shlex.quote(reference.url)} log -p {noted[:SHORT]}..{now[:SHORT]}"
    hint = f"look at it (`{look}`), then: toolyard plugins refresh {shlex.quote(reference.name)}"
    return Problem(code="plugin_ref_moved", message=message, hint=hint, severity="warning")


def named(reference: GitReference) -> str:
    return f"'{reference.ref}' there" if reference.ref else "its HEAD"


def moving_key(reference: GitReference) -> str:
    """What a reference that may move is known by in the cache."""
    return fingerprint("reference", reference.url, reference.ref)[:24]


def clone_notes(tree: GitTree) -> list[dict[str, str]]:
    if not tree.has_submodules:
        return []
    message = "the repository has submodules, which are not fetched"
    hint = "put what the plugin needs into the repository itself"
    return [{"code": "plugin_submodules", "message": message, "hint": hint, "severity": "warning"}]
