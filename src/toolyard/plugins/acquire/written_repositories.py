"""What of a repository on this machine may be of tools: their commits are not run because a branch leads to them."""

from __future__ import annotations

import os
import zlib
from functools import cached_property
from hashlib import sha1, sha256
from typing import TYPE_CHECKING

from toolyard.files.plain_text import data_of, text_of
from toolyard.files.write_times import birth_time, spans_above

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.files.write_times import Span

POINTER, SYMBOLIC = "gitdir: ", "ref: "
LEADING = (b"parent", b"object")
"""What a commit, or a tag, says that it comes after or stands for."""
MOST_COMMITS = 2000
LARGEST_COMMIT = 1 << 18


class LocalRepository:
    """A repository by its path, and when tools could commit to it."""

    def __init__(self, path: str) -> None:
        places = [led_to(os.path.join(path, ".git")), led_to(path), led_to(f"{path}.git/.git"), led_to(f"{path}.git")]
        self._own = next((one for one in places if os.path.lexists(os.path.join(one, "HEAD"))), os.path.realpath(path))
        common = text_of(os.path.join(self._own, "commondir")).strip()
        self._common = os.path.realpath(os.path.join(self._own, common)) if common else self._own

    @cached_property
    def spans(self) -> list[Span]:
        """All times in which something ran that could write there, or from which commits were handed over to it."""
        return [
            span
            for folder in dict.fromkeys((self._own, self._common))
            for span in spans_above(os.path.join(folder, "HEAD"))
            # A git folder can be guarded itself and be handed commits, but not one in a folder that is.
            if not span.guards_above(folder)
        ]

    def is_owners(self, ref: str | None, now: str, known: str | None) -> bool:
        """Whether only its owner can have let a name mean a commit, and made all that this comes after.

        Up to a commit that is known, or the first. In doubt it is not: `git gc` by its owner packs the commits of all.
        """
        return all(map(self._is_owners_file, self._named_by(ref))) and self._is_owners_work(now, known)

    def _named_by(self, ref: str | None) -> Iterator[str]:
        """The files that say what a name means."""
        if ref is None:
            yield (head := os.path.join(self._own, "HEAD"))
            names = [text_of(head).removeprefix(SYMBOLIC).strip()]
        else:
            names = [f"refs/tags/{ref}", f"refs/heads/{ref}"]
        loose = [path for name in names if os.path.isfile(path := os.path.join(self._common, name))]
        yield loose[0] if loose else os.path.join(self._common, "packed-refs")

    def _is_owners_file(self, path: str) -> bool:
        try:
            facts = os.lstat(path)
        except OSError:
            return False
        if os.path.basename(path) == "packed-refs":  # in which their owner's git puts what others let names mean
            return all(facts.st_ctime < span.since for span in self.spans)
        born = birth_time(path, facts)
        return not any(span.meets(born, facts.st_ctime) for span in self.spans)

    def _is_owners_work(self, now: str, known: str | None) -> bool:
        waiting, seen = [now], set[str]()
        while waiting and len(seen) < MOST_COMMITS:
            name = waiting.pop()
            if name in seen or name == known:
                continue
            seen.add(name)
            path = os.path.join(self._common, "objects", name[:2], name[2:])
            before = before_commit(name, data_of(path, LARGEST_COMMIT)) if self._is_owners_file(path) else None
            if before is None:
                return False
            waiting += before
        return not waiting


def before_commit(name: str, data: bytes) -> list[str] | None:
    """What a commit comes after, by its loose object; None for what is no commit, or not the one that it is said to be.

    Git takes what is below it for granted by its number, and so may we.
    """
    try:
        plain = zlib.decompressobj().decompress(data, LARGEST_COMMIT)
    except zlib.error:
        return None
    made_by = sha1 if len(name) == 40 else sha256
    if made_by(plain).hexdigest() != name or not plain.startswith((b"commit ", b"tag ")):
        return None
    lines = plain.partition(b"\0")[2].partition(b"\n\n")[0].split(b"\n")
    return [os.fsdecode(value) for key, _, value in (line.partition(b" ") for line in lines) if key in LEADING]


def led_to(git: str) -> str:
    """A git folder, or where the pointer to one leads."""
    pointer = text_of(git)
    target = pointer.removeprefix(POINTER).strip() if pointer.startswith(POINTER) else ""
    return os.path.realpath(os.path.join(os.path.dirname(git), target) if target else git)
