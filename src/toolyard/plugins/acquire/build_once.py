"""Folders of the plugin cache: each there whole or not at all, made by one process at a time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.files.removal import remove_tree
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from toolyard.core.problems import Problem


LOOK_AGAIN = 0.05
"""How often to ask for a lock that another process holds: the system knows no waiting for it that can be cancelled."""


async def build_once(target: Path, make: Callable[[Path], Awaitable[Sequence[Problem]]]) -> Sequence[Problem]:
    """Let `make` write a new folder and move it to `target`, unless somebody has; raises OSError where none can be.

    Whoever is killed on the way leaves only what nobody takes for a plugin, and what the next one removes.
    """
    if is_there(target):
        return ()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with held_lock(target.with_name(f"{target.name}.lock")):
        if is_there(target):
            return ()
        for left in target.parent.glob(f".{target.name}.*"):
            remove_tree(str(left))
        scaffold = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            problems = await make(scaffold / "whole")
            if not problems:
                os.rename(scaffold / "whole", target)
        finally:
            await run_shielded(asyncio.to_thread(remove_tree, str(scaffold)))
    return problems


@asynccontextmanager
async def held_lock(path: Path) -> AsyncIterator[None]:
    """Hold a lock that ends with its process, however that ends."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not try_lock(fd):  # noqa: ASYNC110 - what we wait for is in another process
            await asyncio.sleep(LOOK_AGAIN)
        yield
    finally:
        os.close(fd)


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_there(folder: Path) -> bool:
    return folder.is_dir()
