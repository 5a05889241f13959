"""A file's bytes as text and back: encoding, byte order mark and the ends of lines stay as they are."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from contextlib import suppress

from toolyard.files.steps import spare_name
from toolyard.files.workspace.places import FileFault, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolyard.files.workspace.places import Spot

READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""What is no regular file must not hold us up before we can see that it is none."""
LARGEST = 32 << 20
"""Of a file that is read whole, in bytes."""
LOOKED_AT = 8192
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
NO_FILE = "is no regular file; the sandbox also shows what must not be made, because it is obeyed outside, as a device"
IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
Version = list[int]
"""What changes when a file does: the kernel's own facts, of which the time of the change cannot be set."""


AS_IT_IS: Version = []
"""Instead of what a file was when it was read, by somebody who need not have read it here."""


class FileText:
    """The text of a file, and how it was written."""

    __slots__ = ("encoding", "mark", "newline", "text")

    def __init__(self, text: str, encoding: str = "utf-8", mark: bytes = b"", newline: str = "\n") -> None:
        self.text = text
        """With the ends of lines as the file has them."""
        self.encoding = encoding
        self.mark = mark
        self.newline = newline
        """What most of its lines end with."""

    def encoded(self, text: str) -> bytes:
        """Another text as the same file would have it; FileFault where its encoding has no such characters."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = text[error.start]
            raise FileFault(
                f"the file is in {self.encoding}, which has no {char!r}; write the whole file anew"
            ) from None


def opened(spot: Spot) -> int:
    """A regular file, open for reading."""
    try:
        fd = spot.open(READING)
    except FileNotFoundError:
        raise FileFault(f"there is no file {spot.shown}") from None
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise FileFault(f"{spot.shown} {NO_FILE}") from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise FileFault(f"{spot.shown} is a folder")
    raise FileFault(f"{spot.shown} {NO_FILE}")


def whole(spot: Spot) -> tuple[bytes, os.stat_result]:
    """All bytes of a file, and its facts."""
    fd = opened(spot)
    with open(fd, "rb", buffering=0) as file:
        facts = os.fstat(fd)
        if facts.st_size > LARGEST:
            raise FileFault(f"{spot.shown} has {facts.st_size} bytes, too many to change; use a command instead")
        return file.read(), facts


def version_of(facts: os.stat_result) -> Version:
    return [facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def decoded(data: bytes, shown: str, size: int | None = None) -> FileText:
    """The text of a file, or of a part of one of that size; FileFault when it is none."""
    mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", ""))
    if not mark and is_binary(data):
        raise FileFault(f"{shown} is a binary file of {len(data) if size is None else size} bytes, which is no text")
    body = data[len(mark) :]
    for name in (encoding,) if mark else ("utf-8", "cp1252", "latin-1"):
        try:
            text = body.decode(name)
        except UnicodeDecodeError:
            continue
        return FileText(text, name, mark, newline_of(text))
    raise FileFault(f"{shown} begins as {encoding} text, but is none")


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:LOOKED_AT] or data.startswith(b"%PDF-")


def image_type(data: bytes) -> str | None:
    """What kind of picture it is that a model can look at; None for all else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for begin, name in IMAGES if data.startswith(begin)), None)


def newline_of(text: str) -> str:
    crlf = text.count("\r\n") if "\r" in text else 0
    return "\r\n" if crlf and crlf * 2 >= text.count("\n") else "\n"


def with_newlines(text: str, newline: str) -> str:
    """A text whose lines all end alike."""
    plain = text.replace("\r\n", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)


def replace_content(spot: Spot, data: bytes, before: os.stat_result | None) -> os.stat_result:
    """Write beside and move into place, so that nobody ever sees half a file; OSError where that is not to be.

    The file is a new one: names elsewhere that were linked to the old keep its content.
    """
    spare = spare_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(spare, flags, 0o666 if before is None else 0o600, dir_fd=spot.folder)
    try:
        with open(fd, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            keep_rights(fd, before, spot.folder)
            os.rename(spare, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
            return os.fstat(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(spare, dir_fd=spot.folder)
        raise


def keep_rights(fd: int, before: os.stat_result | None, folder: int) -> None:
    """The mode and the owner of the file that was there, but not that it runs as somebody else; a new one is owned as
    its folder is.
    """
    if os.geteuid() == 0:
        owner = before or os.fstat(folder)
        os.fchown(fd, owner.st_uid, owner.st_gid)
    if before is not None:
        os.fchmod(fd, before.st_mode & 0o777)


def require_unchanged(spot: Spot, facts: os.stat_result, seen: Version | None) -> None:
    """A file is only changed by who has read it, as it is now."""
    if seen == AS_IT_IS:
        return
    shown = quoted(spot.shown)
    if seen is None:
        raise FileFault(f"{shown} has not been read in this session; read it first, so that nothing in it is lost")
    if version_of(facts) != seen:
        raise FileFault(f"{shown} was changed since it was read; read it again")
