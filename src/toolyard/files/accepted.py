"""Which contents of which files a person accepted, although tools may have written them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.atomic import replace_file
from toolyard.files.door import Door
from toolyard.files.user_folders import user_folder
from toolyard.files.write_times import can_be_written_now, may_be_from_tools

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


class OfferedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was read, once, by somebody who may accept it."""

    path: str
    data: bytes
    is_exposed: bool
    """Whether something runs that could write it: what was looked at before may have been something else."""

    @property
    def digest(self) -> str:
        return digest_of(self.data)


def objection(path: str, data: bytes, facts: os.stat_result) -> str | None:
    """Why what was read from a file may not be obeyed: tools may have written it, and nobody has accepted it."""
    real = os.path.realpath(path)
    if not may_be_from_tools(real, facts):
        return None
    digest = digest_of(data)
    if any((one.path, one.digest) == (real, digest) for one in accepted()):
        return None
    return f"{path} was changed while tools could write it, so it is not obeyed"


def how_to_accept(path: str) -> str:
    """What a person types who has looked at a file."""
    import shlex

    return f"look at it, and if it is as you want it: toolyard trust accept {shlex.quote(path)}"


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data.removeprefix(MARK)).hexdigest()


def digest_now(path: str) -> str:
    """The digest of what a file says now, wherever links lead; OSError when it is none that could be obeyed."""
    return digest_of(Door().read(path, largest=LARGEST).data)


def accepted() -> list[Accepted]:
    """All that was accepted; nothing where the file cannot be read, or others may write it."""
    try:
        content = Door().read(accepted_file(), largest=LARGEST)
        ours = content.facts.st_uid == os.geteuid() and not content.facts.st_mode & 0o022
        return decode_json(content.data, list[Accepted]) if ours else []
    except (OSError, ValueError):
        return []


def candidate(path: str) -> OfferedFile:
    """What a file says now; OSError when it cannot be read."""
    real = os.path.realpath(path)
    content = Door().read(real, largest=LARGEST)
    return OfferedFile(path=real, data=content.data, is_exposed=can_be_written_now(real, content.facts))


def accept(what: OfferedFile | str) -> Accepted:
    """Keep as accepted what was read, or what a file says now; OSError when that cannot be done."""
    from datetime import UTC, datetime

    what = candidate(what) if isinstance(what, str) else what
    at = datetime.now(UTC).isoformat(timespec="seconds")
    added = Accepted(path=what.path, digest=what.digest, at=at)
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
