"""How audit lines hang together: each carries the hash of the one before, and the head says which is the last.

A line ends in `,"prev":"…","hash":"…"}`. Its hash is the SHA-256 of every byte before `,"hash":`, so that it can be
checked without knowing how the rest was written. The head is kept apart from the log: without it, nobody could see that
the last lines were cut off.
"""

from __future__ import annotations

import fcntl
import json
import re
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BEGINNING", "Head", "Link", "day_files", "head_path", "read_link", "seal", "take_lock"]

BEGINNING = "0" * 64
"""What the first line of all has in the place of the one before."""
DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.ndjson")
SEAL = b',"hash":"'
SEALED = re.compile(rb'\{.*,"seq":(\d+),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\n', re.DOTALL)
LOCK_PATIENCE = 5.0
"""A writer holds the lock for microseconds; one that holds it for longer is stopped or means ill."""
LOCK_AGAIN_AFTER = 0.002
ENCODER = msgspec.json.Encoder(enc_hook=str)


class Head(NamedTuple):
    """The last line that was written: where it ends, its number in its day, and its hash."""

    day: str
    size: int
    seq: int
    hash: str

    def as_bytes(self) -> bytes:
        """As the head file holds it, always of the same length."""
        return f"{self.day} {self.size:020} {self.seq:012} {self.hash}\n".encode()

    @classmethod
    def read(cls, data: bytes) -> Head | None:
        """The head of a file's content; None when it is not one."""
        words = data.decode("ascii", "replace").split()
        try:
            day, size, seq, hash = words
            return cls(day, int(size), int(seq), hash)
        except ValueError:
            return None


NO_HEAD = Head("", 0, 0, BEGINNING)
"""Of a log without a line."""


class Link(NamedTuple):
    """What holds a line in the chain."""

    seq: int
    prev: str
    hash: str
    holds: bool
    """Whether the hash is that of the line."""


def seal(time: str, record: dict[str, Any], head: Head, day: str) -> tuple[bytes, int, str]:
    """A record as the line that follows the head, with its number and its hash."""
    seq = head.seq + 1 if day == head.day else 1
    # Put together as bytes: this is done twice for each call, and copies of the record would cost more than the hash.
    inner = encoded(record)[1:-1]
    body = b'{"time":"%b",%b%b"seq":%d,"prev":"%b"' % (
        *(time.encode(), inner, b"," if inner else b""),
        *(seq, head.hash.encode()),
    )
    hash = sha256(body).hexdigest()
    return b'%b%b%b"}\n' % (body, SEAL, hash.encode()), seq, hash


def encoded(record: dict[str, Any]) -> bytes:
    """A record as JSON; half a UTF-16 character, which a model may well write, fits into it only as an escape."""
    try:
        return ENCODER.encode(record)
    except UnicodeEncodeError:
        return json.dumps(record, default=str).encode("ascii")


def read_link(line: bytes) -> Link | None:
    """What holds a line; None when it is no line of ours, or not a whole one."""
    found = SEALED.fullmatch(line)
    if found is None:
        return None
    seq, prev, hash = found.groups()
    body = line[: line.rindex(SEAL)]
    return Link(int(seq), prev.decode(), hash.decode(), sha256(body).hexdigest() == hash.decode())


def day_files(folder: Path) -> list[Path]:
    """The files of a log, oldest first."""
    files = (file for file in folder.glob("*.ndjson") if DAY_FILE.fullmatch(file.name))
    return sorted(file for file in files if file.is_file() and not file.is_symlink())


def head_path(folder: Path) -> Path:
    """Where the head of a log is kept: beside its folder, which holds nothing but days."""
    return folder.with_name(folder.name + ".head")


def take_lock(fd: int, kind: int = fcntl.LOCK_EX) -> None:
    """Be the only writer, or a reader between two lines; whoever never lets go makes this fail, not wait for ever."""
    give_up_at = 0.0
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            give_up_at = give_up_at or time.monotonic() + LOCK_PATIENCE
            if time.monotonic() >= give_up_at:
                raise OSError("another process holds its lock") from None
            time.sleep(LOCK_AGAIN_AFTER)
