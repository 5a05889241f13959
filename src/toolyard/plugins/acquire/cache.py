"""Folders that are made once and then only read: whole or not there at all, whoever is killed while making them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from toolyard.core.problems import Problem
from toolyard.files.atomic import replace_file
from toolyard.files.door import LARGEST_TEXT, Door, FileRefused
from toolyard.files.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path


RECORD = "toolyard.json"
"""What a folder of the cache says of itself; it comes with the folder, so that one without it is none of ours."""
NOTES = ".references"
"""The folder of what is noted."""
LAYOUT = 2
"""Changes when folders of the cache are laid out differently, so that old ones are not taken for new ones."""
UNUSED_SECONDS = 30 * 24 * 3600
"""After how long a version that nobody used since gives way to another of the same plugin."""
FIRST_WAIT, LONGEST_WAIT = 0.01, 0.25


class PluginCache:
    """A folder of folders, each under the fingerprint of what it was made from."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def provide(
        self, name: str, key: str, make: Callable[[Path], Awaitable[dict[str, Any] | Problem]], *, patience: float
    ) -> Path | Problem:
        """The folder for a key, made if it is not there: `make` fills an empty one and returns what is recorded of it.

        Whoever comes second waits for the first, and takes over if that one dies.
        """
        final = self._folder(name, key)
        if is_whole(final):  # without the lock, since a folder that has its final name never changes again
            return final
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            async with self._locked(final.name, patience) as got_it:
                if not got_it:
                    return still_busy(final, patience)
                if is_whole(final):  # somebody else made it while we waited
                    return final
                return await self._make(final, make)
        except OSError as error:
            return unwritable(error, self.root)

    def find(self, name: str, key: str) -> Path | None:
        folder = self._folder(name, key)
        return folder if is_whole(folder) else None

    def noted(self, key: str) -> str | None:
        """What was noted under a key, if anything was."""
        try:
            return Door.here().read(self.root / NOTES / key, largest=LARGEST_TEXT).text() or None
        except OSError:
            return None

    def note(self, key: str, text: str) -> Problem | None:
        """Note something in the place of what was noted; whoever reads meanwhile gets the one or the other."""
        final = self.root / NOTES / key
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            replace_file(final, text.encode(), durable=True)
        except OSError as error:
            return unwritable(error, self.root)
        return None

    @contextlib.asynccontextmanager
    async def scratch(self) -> AsyncIterator[Path]:
        self.root.mkdir(parents=True, exist_ok=True)
        folder = self.root / f".{uuid.uuid4().hex}.tmp"
        folder.mkdir()
        try:
            yield folder
        finally:
            remove_tree(str(folder))

    def _folder(self, name: str, key: str) -> Path:
        return self.root / f"{plain(name)}-{key[:24]}"

    async def _make(self, final: Path, make: Callable[[Path], Awaitable[dict[str, Any] | Problem]]) -> Path | Problem:
        """Fill a folder beside the final one and rename it, which happens whole or not at all."""
        for leftover in (final, *self.root.glob(f".{final.name}.*.tmp")):  # of one who was killed
            remove_tree(str(leftover))
        folder = self.root / f".{final.name}.{uuid.uuid4().hex[:8]}.tmp"
        folder.mkdir()
        try:
            record = await make(folder)
            if isinstance(record, Problem):
                return record
            # The record is the last file and comes with the folder: a folder that has one is whole, even after a crash.
            replace_file(folder / RECORD, json.dumps(record, indent=2).encode(), durable=True)
            os.rename(folder, final)
        finally:
            if folder.exists():
                remove_tree(str(folder))
        self._drop_unused(final)
        return final

    def _drop_unused(self, final: Path) -> None:
        """Forget other versions of the same plugin that nobody has used for long."""
        family = final.name.rpartition("-")[0]
        for other in self.root.glob(f"{family}-*"):
            with contextlib.suppress(OSError):
                age = time.time() - (other / RECORD).stat().st_mtime
                if other != final and other.name.rpartition("-")[0] == family and age > UNUSED_SECONDS:
                    remove_tree(str(other))

    @contextlib.asynccontextmanager
    async def _locked(self, name: str, patience: float) -> AsyncIterator[bool]:
        """Hold the lock of a name, which the system takes from whoever dies; False when it could not be had in time."""
        locks = self.root / ".locks"
        locks.mkdir(exist_ok=True)
        with (locks / name).open("ab") as file:
            waits = waiting_times(patience)
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    wait = next(waits, None)
                    if wait is None:
                        yield False
                        return
                    await asyncio.sleep(wait)
            yield True


def unwritable(error: OSError, root: Path) -> Problem:
    message = f"{error.filename or root} cannot be written: {error.strerror}"
    return Problem(code="plugin_cache", message=message, hint="set plugin_cache_dir to a folder that you may write to")


def is_whole(folder: Path) -> bool:
    """Whether a folder of the cache is there; to be asked is to be used."""
    try:
        os.utime(folder / RECORD)
    except PermissionError:
        return True  # somebody else's cache, which we may only read
    except OSError:
        return False
    return True


def waiting_times(patience: float) -> Iterator[float]:
    end, wait = time.monotonic() + patience, FIRST_WAIT
    while time.monotonic() < end:
        yield wait
        wait = min(2 * wait, LONGEST_WAIT)


def still_busy(folder: Path, patience: float) -> Problem:
    message = f"another process has been installing this plugin for {patience:g} seconds"
    return Problem(code="plugin_cache", message=message, hint=f"end it, or look into {folder.parent / '.locks'}")


def fingerprint(*parts: Any) -> str:
    """One word for everything that decides whether a folder can be used again."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(name: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "plugin"


def read_record(folder: Path) -> dict[str, Any] | Problem:
    """What a folder of the cache says of itself; a problem for a cache that a link of a tool's may lead to."""
    try:
        record: dict[str, Any] = json.loads(Door.here().read(folder / RECORD, largest=LARGEST_TEXT).data)
    except FileRefused as refused:
        return refused.problem()
    return record
