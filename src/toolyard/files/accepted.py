"""Which contents of which files a person accepted, although tools may have written them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import stat
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.atomic import replace_file
from toolyard.files.user_folders import user_folder
from toolyard.files.write_times import may_be_from_tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST = 16 << 20
MARK = b"\xef\xbb\xbf"
"""With which some editors begin a file; it is no part of what the file says."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """One content of one file."""

    path: str
    digest: str
    at: str
    """When it was accepted."""


def objection(path: str, data: bytes, facts: os.stat_result) -> str | None:
    """Why what was read from a file may not be obeyed: tools may have written it, and nobody has accepted it."""
    real = os.path.realpath(path)
    if not may_be_from_tools(real, facts):
        return None
    digest = digest_of(data)
    if any((one.path, one.digest) == (real, digest) for one in accepted()):
        return None
    return f"{path} was changed while tools could write it, so it is not obeyed"


def why_not_obeyed(path: str, digest: str) -> str | None:
    """The same for what was read before, by its digest."""
    try:
        data, facts = read_with_facts(path)
    except OSError:
        return None  # whoever read it says what is wrong
    return objection(path, data, facts) if digest_of(data) == digest else f"{path} changes while it is read"


def unaccepted(path: str) -> str | None:
    """The same for what a file says now; None for what is no file."""
    try:
        return objection(path, *read_with_facts(path))
    except OSError:
        return None


def how_to_accept(path: str) -> str:
    """What a person types who has looked at a file."""
    return f"look at it, and if it is as you want it: toolyard trust accept {shlex.quote(path)}"


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data.removeprefix(MARK)).hexdigest()


def read_with_facts(path: str) -> tuple[bytes, os.stat_result]:
    """The content of a regular file and what the system says of that very file."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
            raise OSError(f"{path} is not a file that could be obeyed")
        return file.read(LARGEST + 1), facts


def accepted() -> list[Accepted]:
    """All that was accepted; nothing where the file cannot be read, or others may write it."""
    try:
        data, facts = read_with_facts(str(accepted_file()))
        ours = facts.st_uid == os.geteuid() and not facts.st_mode & 0o022
        return decode_json(data, list[Accepted]) if ours else []
    except (OSError, ValueError):
        return []


def accept(path: str) -> Accepted:
    """Keep what a file says now as accepted; OSError when it cannot be read."""
    from datetime import UTC, datetime

    data, _ = read_with_facts(path)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    added = Accepted(path=os.path.realpath(path), digest=digest_of(data), at=at)
    with changing() as kept:
        kept[:] = [one for one in kept if (one.path, one.digest) != (added.path, added.digest)] + [added]
    return added


def revoke(what: str) -> list[Accepted]:
    """Take back every content of a file, or one by the beginning of its digest; tells which."""
    real = os.path.realpath(what)
    with changing() as kept:
        gone = [one for one in kept if one.path == real or (len(what) >= 8 and one.digest.startswith(what))]
        kept[:] = [one for one in kept if one not in gone]
    return gone


@contextlib.contextmanager
def changing() -> Iterator[list[Accepted]]:
    """Read, change and write the file as one step, whoever else does so."""
    file = accepted_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = accepted()
        yield kept
        text = json.dumps(msgspec.to_builtins(kept), indent=2)  # in ASCII, whatever names of files hold
        replace_file(file, f"{text}\n".encode(), durable=True)
    finally:
        os.close(lock)


def accepted_file() -> Path:
    return user_folder("state") / "accepted.json"
