"""Trees of files for tests: made by chance, changed by chance, compared whole."""

from __future__ import annotations

import os
import random
import shutil
import stat
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Facts: TypeAlias = "dict[bytes, tuple[str, int, bytes]]"
NAMES = [b"a", b"b.txt", "ü".encode(), b"odd \xff name", b"-rf", b"new\nline", b"c", b".hidden", b"x" * 200, b"*"]


def facts_of(top: Path) -> Facts:
    """Everything below a folder: kind, mode, content or target."""
    found: Facts = {}
    waiting = [os.fsencode(top)]
    while waiting:
        folder = waiting.pop()
        for entry in os.scandir(folder):
            facts = entry.stat(follow_symlinks=False)
            name = os.path.relpath(entry.path, os.fsencode(top))
            if entry.is_symlink():
                found[name] = ("link", 0, os.readlink(entry.path))
            elif entry.is_dir():
                found[name] = ("folder", stat.S_IMODE(facts.st_mode), b"")
                waiting.append(entry.path)
            elif entry.is_file():
                with open(entry.path, "rb") as file:
                    found[name] = ("file", stat.S_IMODE(facts.st_mode), file.read())
            else:
                found[name] = ("other", stat.S_IMODE(facts.st_mode), b"")
    return found


def change_by_chance(top: Path, chance: random.Random, steps: int) -> None:
    """Make, change, move and remove files, folders and links."""
    for _ in range(steps):
        folders = [os.fsencode(top)] + [root for root, _, _ in os.walk(os.fsencode(top))]
        path = os.path.join(chance.choice(folders), chance.choice(NAMES))
        match chance.randrange(8):
            case 0 | 1 | 2 if not os.path.isdir(path) and not os.path.islink(path):
                with open(path, "wb") as file:
                    file.write(chance.randbytes(chance.choice([0, 1, 100, 5000])) * chance.choice([1, 1, 500]))
                os.chmod(path, chance.choice([0o644, 0o755, 0o600, 0o444]))
            case 3 if not os.path.lexists(path) and path.count(b"/") < 60:
                os.mkdir(path)
            case 4 if not os.path.lexists(path):
                os.symlink(chance.choice([b"/etc/passwd", b"../..", b"a", b"no\xffwhere"]), path)
            case 5 if os.path.lexists(path):
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            case 6 if os.path.isfile(path) and not os.path.islink(path):
                os.chmod(path, chance.choice([0o644, 0o755, 0o400]))
            case 7 if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, chance.choice([0o755, 0o700, 0o750]))
            case _:
                pass
