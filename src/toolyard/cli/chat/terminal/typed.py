"""What a person types: files after an @, pictures too, and what could follow at the cursor."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.content import ImagePart, TextPart
from toolyard.files.door import Door

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.core.content import Part

MENTION = re.compile(r'(?:^|(?<=\s))@("[^"\n]+"|\S+)')
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
LARGEST_TEXT = 256 << 10
LARGEST_IMAGE = 5 << 20
MOST_OFFERED = 50


class TypedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed, with what it names, and which of that could not be had."""

    parts: tuple[Part, ...]
    problems: tuple[str, ...] = ()


def read_prompt(text: str, folder: Path) -> TypedPrompt:
    """The words as they are, then each file that they name."""
    parts: list[Part] = [TextPart(text=text)]
    problems = []
    for name in dict.fromkeys(found[1].strip('"') for found in MENTION.finditer(text)):
        found = attached(name, folder)
        if isinstance(found, str):
            problems.append(f"@{name}: {found}; it is sent as a word")
        else:
            parts.append(found)
    return TypedPrompt(parts=tuple(parts), problems=tuple(problems))


def attached(name: str, folder: Path) -> Part | str:
    """A file as a part of what is said, or why it cannot be one."""
    path = folder / os.path.expanduser(name)
    kind = IMAGES.get(path.suffix.lower())
    largest = LARGEST_IMAGE if kind else LARGEST_TEXT
    try:
        data = Door.to([str(folder)]).read(path, largest=largest).data
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:  # also a link in the workspace, which a tool may have made to a file that it cannot read
        more = "; let the agent read it" if error.errno == errno.EFBIG else ""
        return f"it cannot be read: {error.strerror}{more}"
    if kind:
        return ImagePart(media_type=kind, data=data)
    if b"\0" in data:
        return "it is no text"
    return TextPart(text=f"The file {name}:\n{data.decode(errors='replace')}")


def offered_files(begun: str, folder: Path) -> Iterator[str]:
    """Names of files that begin so; folders end with a slash, hidden ones are offered when a dot is typed."""
    head, slash, last = os.path.expanduser(begun).rpartition("/")
    try:
        with os.scandir(folder / (head + slash)) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(last)]
    except OSError:
        return
    typed = begun[: len(begun) - len(last)]
    for name, is_folder in sorted(found)[:MOST_OFFERED]:
        if not name.startswith(".") or last.startswith("."):
            yield f"{typed}{name}{'/' if is_folder else ''}"


def offers(text: str, commands: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    """What is begun at the end of a text, and what it may become."""
    if text.startswith("/") and not any(char.isspace() for char in text):
        return text, [name for name in commands if name.startswith(text)]
    if found := re.search(r"(?:^|\s)@(\S*)$", text):
        return found[1], list(offered_files(found[1], folder))
    return "", []
