"""How audit lines hang together: each carries the hash of the one before, and the head says which is the last.

A line ends in `,"prev":"…","hash":"…"}`. Its hash is the SHA-256 of every byte before `,"hash":`, so that it can be
checked without knowing how the rest was written. The head is kept apart from the log: without it, nobody could see that
the last lines were cut off.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from toolyard.core.regexes import late_pattern
from toolyard.files.own.entering import entered, listed, reading_own

if TYPE_CHECKING:
    from pathlib import Path


BEGINNING = "0" * 64
"""What the first line of all has in the place of the one before."""
DAY_FILE = late_pattern(r"\d{4}-\d\d-\d\d\.ndjson")
SEAL = b',"hash":"'
SEALED = late_pattern(rb'\{.*,"seq":(\d+),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\n', re.DOTALL)
USUAL_TAIL = 1 << 16
"""What is read first to find the last line of a file; few lines are longer."""
ENCODER = msgspec.json.Encoder(enc_hook=str)


class Head(msgspec.Struct, frozen=True):
    """The last line that was written: its hash, and where the next one goes: the file, after which bytes and number.

    Mostly both are about the same file. When another day comes, the head says where the next line will be before it is
    written, so that whoever finds the log after a crash knows where to look.
    """

    day: str
    size: int
    seq: int
    hash: str

    def as_bytes(self) -> bytes:
        """The content of the head file, always of the same length."""
        return b"%b %020d %012d %b\n" % (self.day.encode(), self.size, self.seq, self.hash.encode())

    @classmethod
    def read(cls, data: bytes) -> Head | None:
        """Parse the content of a head file; None when it is not one."""
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


def seal(time: str, record: dict[str, Any], head: Head) -> tuple[bytes, Head]:
    """Turn a record into the line that follows the head; returns the line and the new head.

    Done twice for each call, when nothing of it is in the processor's caches any more: one plain function costs less
    than several small ones.
    """
    seq = head.seq + 1
    try:
        inner = ENCODER.encode(record)[1:-1]
    except UnicodeEncodeError:  # half a UTF-16 character, which a model may well write, fits only as an escape
        inner = json.dumps(record, default=str).encode("ascii")[1:-1]
    numbers = f'{"," if inner else ""}"seq":{seq},"prev":"{head.hash}"'
    body = b"".join((b'{"time":"', time.encode(), b'",', inner, numbers.encode()))
    hash: str = quick_sha256(body).hexdigest()
    line = b"".join((body, SEAL, hash.encode(), b'"}\n'))
    return line, Head(head.day, head.size + len(line), seq, hash)


def light_sha256() -> Any:
    """Python's own: OpenSSL's hashes faster, but takes longer to begin than a line takes to be hashed."""
    for module in ("_sha2", "_sha256"):
        with suppress(ImportError):
            return import_module(module).sha256
    return sha256


quick_sha256 = light_sha256()


def read_link(line: bytes) -> Link | None:
    """Read how a line is linked; None when it is not a whole line of a log."""
    found = SEALED.fullmatch(line)
    if found is None:
        return None
    seq, prev, hash = found.groups()
    body = line[: line.rindex(SEAL)]
    return Link(int(seq), prev.decode(), hash.decode(), sha256(body).hexdigest() == hash.decode())


def last_link(file: Path, head: Head) -> Head:
    """Move the head over the lines of its file that follow it."""
    offset = head.size
    for line in read_from(file, offset).splitlines(keepends=True):
        offset += len(line)
        link = read_link(line)
        if link and link.holds and link.prev == head.hash:
            head = replace(head, size=offset, seq=link.seq, hash=link.hash)
    return head


def last_line(file: Path) -> tuple[Link | None, int]:
    """How the last whole line of a file is linked, and where it ends; nothing of a file without one."""
    size = size_of(file)
    for start in dict.fromkeys((max(0, size - USUAL_TAIL), 0)):
        end = size
        for line in reversed(read_from(file, start).splitlines(keepends=True)):
            link = read_link(line)
            if link and link.holds:
                return link, end
            end -= len(line)
    return None, 0


def read_from(file: Path, offset: int) -> bytes:
    with reading_own(file) as log:
        log.seek(offset)
        return log.read()


def size_of(file: Path) -> int:
    with reading_own(file) as log:
        return os.fstat(log.fileno()).st_size


def day_files(folder: Path) -> list[Path]:
    """The files of a log, oldest first."""
    try:
        with entered(folder) as opened, listed(opened) as entries:
            names = [one.name for one in entries if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return sorted(folder / name for name in names if DAY_FILE.fullmatch(name))


def head_path(folder: Path) -> Path:
    """Where the head of a log is kept: beside its folder, which holds nothing but days."""
    return folder.with_name(folder.name + ".head")
