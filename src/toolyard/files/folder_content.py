"""A plugin's folder as content: what is in it, whether that has changed, and a copy of it."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING, TypeAlias

from toolyard.plugins.descriptors import is_inside

if TYPE_CHECKING:
    from collections.abc import Mapping


Look: TypeAlias = "Mapping[str, tuple[int, int, int] | str]"
"""Every file by its relative name, with what changes when it is written or replaced; a link with what it points to."""

SKIPPED = frozenset({"node_modules", ".git"})
"""What is installed, and what keeps the history: neither is the plugin's own content."""
MOST_FILES = 20_000
MOST_BYTES = 512 << 20
READ_SIZE = 1 << 20


def look_at(folder: str) -> Look:
    """All that counts in a folder, nothing when there is none; stops where there is more than any plugin has."""
    look: dict[str, tuple[int, int, int] | str] = {}
    waiting = [""]
    while waiting and len(look) <= MOST_FILES:
        below = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(folder, below)))
        except OSError:
            continue
        for entry in entries:
            name = os.path.join(below, entry.name)
            if entry.is_symlink():
                look[name] = os.readlink(entry.path)
            elif entry.is_dir():
                if entry.name not in SKIPPED:
                    waiting.append(name)
            elif entry.is_file():
                stat = entry.stat()
                look[name] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return look


def too_large(look: Look) -> str | None:
    """Why this is not taken for a plugin."""
    if len(look) > MOST_FILES:
        return f"it has more than {MOST_FILES} files"
    size = sum(stamp[1] for stamp in look.values() if not isinstance(stamp, str))
    return f"it has {size >> 20} MiB; at most {MOST_BYTES >> 20} are taken" if size > MOST_BYTES else None


def fingerprint(folder: str, look: Look) -> str:
    """A number for names, contents and links."""
    whole = hashlib.sha256()
    for name in sorted(look):
        stamp = look[name]
        whole.update(b"%b\0" % os.fsencode(name))
        whole.update(b"link %b" % os.fsencode(stamp) if isinstance(stamp, str) else content_digest(folder, name))
    return whole.hexdigest()


def content_digest(folder: str, name: str) -> bytes:
    digest = hashlib.sha256()
    with open(os.path.join(folder, name), "rb") as file:
        while piece := file.read(READ_SIZE):
            digest.update(piece)
    return digest.digest()


def links_outside(folder: str, look: Look) -> list[str]:
    """Links by which a copy would hold what is not the plugin's own."""
    root = os.path.realpath(folder)
    links = [name for name, stamp in look.items() if isinstance(stamp, str)]
    return sorted(name for name in links if os.path.isabs(str(look[name])) or not is_inside(root, name))


def copy_folder(folder: str, look: Look, target: str) -> None:
    """Write what was seen, and nothing else, to a folder that does not exist yet."""
    os.makedirs(target)
    for name, stamp in look.items():
        place = os.path.join(target, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if isinstance(stamp, str):
            os.symlink(stamp, place)
        else:
            shutil.copy2(os.path.join(folder, name), place)
