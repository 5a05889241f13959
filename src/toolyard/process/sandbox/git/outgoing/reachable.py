"""What some objects are made of, as far as git inside has it in files of its own.

Only what belongs to something that is taken goes to the owner, and only if all of it is there: what is broken would be
found by git outside whenever it looks over its objects.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections import deque

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.git.git_files import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

ID = late_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
LINK = late_pattern(rb"(?m)^(?:tree|parent|object) ([0-9a-f]{40}(?:[0-9a-f]{24})?)$")
HEADER = late_pattern(rb"(blob|tree|commit|tag) (\d{1,18})\0")
LONGEST_HEADER, LONGEST_WITH_LINKS = 64, 1 << 26
MODULE = b"160000"
A_MODULE = "a submodule"


class Reachable:
    """Objects that others lead to, in files of their own inside; and those that are not there."""

    def __init__(self, top: int, is_outside: Callable[[str], bool], ends: Collection[str]) -> None:
        """`top` is the open folder of the inside; nothing is looked for behind commits that are ends."""
        self._top, self._is_outside, self._ends = top, is_outside, ends
        self._links: dict[str, list[str]] = {}
        self.elsewhere: set[str] = set()
        """What is led to, and is in no such file."""
        self.has_modules = False
        """Whether a tree among them has a submodule."""

    def add(self, roots: Iterable[str]) -> None:
        waiting = deque(one for one in roots if ID.fullmatch(one))
        while waiting:
            one = waiting.popleft()
            if one in self._links or one in self.elsewhere or self._is_outside(one):
                continue
            links = links_of(self._top, one)
            if links is None:
                self.elsewhere.add(one)
                continue
            if A_MODULE in links:
                self.has_modules = True
                links.remove(A_MODULE)
            is_end = one in self._ends
            self._links[one] = links[:1] if is_end else links
            waiting.extend(self._links[one])

    def whole(self, missing: Collection[str]) -> list[str]:
        """Those of which nothing is missing, each after what it is made of."""
        leading: dict[str, list[str]] = {}
        for one, links in self._links.items():
            for other in links:
                leading.setdefault(other, []).append(one)
        broken, waiting = set(missing), list(missing)
        while waiting:
            for one in leading.get(waiting.pop(), ()):
                if one not in broken:
                    broken.add(one)
                    waiting.append(one)
        return [one for one in reversed(self._links) if one not in broken]


def links_of(top: int, name: str) -> list[str] | None:
    """What an object leads to, and `A_MODULE`; None where it is in no file of its own, or is not what it says."""
    try:
        fd = os.open(f"{name[:2]}/{name[2:]}", READ, dir_fd=top)
    except OSError:
        return None
    with open(fd, "rb") as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return None
        unpacking = zlib.decompressobj()
        try:
            begin = unpacking.decompress(file.read(LONGEST_HEADER), LONGEST_HEADER)
            header = HEADER.match(begin)
            if header is None or header[1] == b"blob":
                return [] if header else None
            if int(header[2]) > LONGEST_WITH_LINKS or facts.st_size > LONGEST_WITH_LINKS:
                return None
            data = begin + unpacking.decompress(unpacking.unconsumed_tail + file.read(), LONGEST_WITH_LINKS)
        except zlib.error:
            return None
    if digest_of(data, name) != name:
        return None
    body = data[header.end() :]
    if header[1] == b"tree":
        return list(dict.fromkeys(entries_in(body, len(name) // 2)))
    return [found.decode() for found in LINK.findall(body.partition(b"\n\n")[0])]


def digest_of(data: bytes, name: str) -> str:
    return hashlib.new("sha1" if len(name) == 40 else "sha256", data, usedforsecurity=False).hexdigest()


def entries_in(tree: bytes, id_length: int) -> Iterator[str]:
    """The objects in a tree; commits of submodules are elsewhere, so these have another name."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        mode, at = tree[at:end].partition(b" ")[0], end + 1 + id_length
        yield A_MODULE if mode == MODULE else tree[end + 1 : at].hex()
