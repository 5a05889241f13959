"""What of a git folder travels between outside and inside, and what is compared of it."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.git.git_files import PACKED
from toolyard.process.sandbox.git.outgoing.index_file import read_index
from toolyard.process.sandbox.git.refs import is_ref, is_value, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.process.sandbox.git.outgoing.index_file import GitIndex


OF_A_WORKTREE = r"(?:worktrees/[^/\x00-\x1f]+/)?"
HEAD = late_pattern(rf"{OF_A_WORKTREE}HEAD")
INDEX = late_pattern(rf"{OF_A_WORKTREE}index")
SHARED_INDEX = late_pattern(rf"{OF_A_WORKTREE}sharedindex\.[0-9a-f]{{40,64}}")
"""What an index may go on from; it is read with that one, and never written."""
LOG = late_pattern(rf"{OF_A_WORKTREE}logs/[^\x00-\x1f]+")
POINTER = late_pattern(r"(worktrees/[^/\x00-\x1f]+)/(gitdir|commondir|locked)")
SHALLOW = "shallow"
TEXT = late_pattern(
    rf"{OF_A_WORKTREE}(?:[A-Z]+(?:_[A-Z]+)+|info/(?:exclude|attributes|sparse-checkout)"
    r"|(?:rebase-merge|rebase-apply|sequencer)/(?!patch-merge-index)[^\x00-\x1f]+)|description|shallow"
)
WORKTREE_REF = late_pattern(r"worktrees/[^/\x00-\x1f]+/refs/[^\x00-\x1f]+")
ONLY_INWARDS = late_pattern(rf"{OF_A_WORKTREE}config\.worktree")
KINDS = (HEAD, INDEX, SHARED_INDEX, LOG, POINTER, TEXT, WORKTREE_REF, ONLY_INWARDS)
MOST_NAMES = 4096
UNREADABLE = "?"
"""Before the value of what git could not read, or would be led elsewhere by."""


@lru_cache(maxsize=MOST_NAMES)
def travels(name: str) -> bool:
    """Whether a file in a git folder is compared at all; asked of the same names on both sides, again and again."""
    return name == PACKED or name.startswith("refs/") or any(kind.fullmatch(name) for kind in KINDS)


def order_of(name: str, known: Mapping[str, str]) -> tuple[int, bool, str]:
    """What has to be there first comes first; what may have gone before what may take its place."""
    kinds = (is_ref(name), bool(POINTER.fullmatch(name)), bool(HEAD.fullmatch(name)))
    rank = next((place for place, is_it in enumerate(kinds) if is_it), len(kinds))
    return rank, name not in known, name


def value_of(name: str, data: bytes | None, id_length: int, content: Callable[[str], bytes | None]) -> str | None:
    """What is compared of a file that is no ref; of an index that is what is staged.

    `content` tells what other files in the git folder hold.
    """
    if data is None or name == PACKED or name.startswith("refs/") or SHARED_INDEX.fullmatch(name):
        return None
    if HEAD.fullmatch(name):
        text = re.sub(r"^ref:\s+", "ref: ", text_of(data))
        return text if is_value(text) else UNREADABLE + digest_of(data)
    if INDEX.fullmatch(name):
        try:
            return staged_value(index_at(name, data, id_length, content))
        except (ValueError, IndexError):
            return UNREADABLE + digest_of(data)
    return value_of_text(data)


def staged_value(index: GitIndex) -> str:
    return f"staged:{index.digest()}"


def is_readable(value: str | None) -> bool:
    """Whether there is something, and git could read it."""
    return value is not None and not value.startswith(UNREADABLE)


def index_at(name: str, data: bytes, id_length: int, content: Callable[[str], bytes | None]) -> GitIndex:
    """The index of the repository, or of one of its worktrees."""
    above = name.removesuffix("index")
    return read_index(data, id_length, lambda beside: content(above + beside))


def written_anew(name: str, value: str, contents: Mapping[str, bytes], id_length: int) -> bytes:
    """What is written on one side for what the other one has: never the file itself where git believes it."""
    if HEAD.fullmatch(name) and is_value(value):
        return value.encode("utf-8", "surrogateescape") + b"\n"
    if INDEX.fullmatch(name) and is_readable(value):
        return index_at(name, contents[name], id_length, contents.get).written()
    return contents[name]


def value_of_text(data: bytes) -> str:
    return f"{len(data)}:{digest_of(data)}"


def added_to(known: str | None, data: bytes) -> bytes:
    """What was written behind what a text was before; all of it where it was changed otherwise."""
    length = int(known.partition(":")[0]) if known else 0
    return data[length:] if known is None or value_of_text(data[:length]) == known else data


def text_value(data: bytes) -> str | None:
    """The same of what is not there where it is empty."""
    return value_of_text(data) if data else None


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def heads_in(contents: Mapping[str, bytes]) -> list[str]:
    """What the repository and its worktrees have checked out."""
    return [text_of(data) for name, data in contents.items() if HEAD.fullmatch(name)]


def is_commit(value: str) -> bool:
    return is_value(value) and not value.startswith("ref: ")
