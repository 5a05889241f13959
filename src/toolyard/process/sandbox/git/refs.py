"""Branches, tags and other refs of a git folder: reading them, loose or packed, and changing one at a time."""

from __future__ import annotations

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.git.git_files import PACKED, WasChanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.process.sandbox.git.git_files import GitFiles


COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
PART = r"(?!\.)(?:(?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\/])+(?<!\.lock)(?<!\.)"
NAME = late_pattern(rf"refs(?:/{PART})+")
VALUE = late_pattern(rf"{COMMIT}|ref: refs(?:/{PART})+")
LINE = late_pattern(rf"({COMMIT}) (refs/\S+)")
LONGEST_NAME = 1000
KEPT_AT = "refs/from-sandbox"
"""Below it is what a branch was inside that was changed outside, too, and what it was outside before it went inside."""


def is_ref(name: str) -> bool:
    """Whether git takes this for the name of a ref."""
    return name.startswith("refs/") and len(name) < LONGEST_NAME and NAME.fullmatch(name) is not None


def is_kept(name: str) -> bool:
    """Whether a ref is, or is in the place of, one of those that are kept for the owner."""
    return name == KEPT_AT or name.startswith(f"{KEPT_AT}/")


def is_value(text: str) -> bool:
    """Whether a ref, or HEAD, may say this."""
    return len(text) < LONGEST_NAME and VALUE.fullmatch(text) is not None


def refs_in(contents: Mapping[str, bytes]) -> dict[str, str]:
    """The value of each ref; a loose one counts before a packed one. What git would not read is left out."""
    found = packed_in(contents.get(PACKED, b""))
    for name, data in contents.items():
        if name.startswith("refs/") and is_ref(name) and is_value(value := text_of(data)):
            found[name] = value
    return found


def packed_in(data: bytes) -> dict[str, str]:
    lines = (LINE.fullmatch(line) for line in data.decode("utf-8", "surrogateescape").splitlines())
    return {line[2]: line[1] for line in lines if line and is_ref(line[2])}


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").strip()


def change_ref(tree: GitFiles, name: str, expected: str | None, value: str | None, patience: float) -> None:
    """Change a ref that still has the value that is expected; WasChanged if it has not."""
    with tree.locked(name, patience) as file:
        loose = file.content()
        now = text_of(loose) if loose is not None else packed_in(tree.content(PACKED) or b"").get(name)
        if now not in (expected, value):
            raise WasChanged(name)
        if value is not None:
            file.replace(value.encode("utf-8", "surrogateescape") + b"\n")
            return
        forget_packed(tree, name, patience)
        file.remove()
    tree.remove_empty(name, "/".join(name.split("/")[:2]))


def forget_packed(tree: GitFiles, name: str, patience: float) -> None:
    """Take a ref out of those that are packed."""
    ending = b" " + name.encode("utf-8", "surrogateescape")
    if not any(line.endswith(ending) for line in (tree.content(PACKED) or b"").split(b"\n")):
        return
    with tree.locked(PACKED, patience) as file:
        kept: list[bytes] = []
        is_gone = False
        for line in (file.content() or b"").splitlines(keepends=True):
            is_gone = line.rstrip(b"\n").endswith(ending) or (is_gone and line.startswith(b"^"))
            kept += [] if is_gone else [line]
        file.replace(b"".join(kept))
