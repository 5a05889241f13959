"""Secrets in a home that no list names: files that programs of any kind call by what they are."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.secrets import facts_of, list_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET_NAME = late_pattern(
    r"(?i)(?:^|[._-])(?:access|auth|refresh|api|id)?[._-]?"
    r"(?:credentials?|creds?|tokens?|secrets?|passwords?|passwd|passphrase|apikeys?|private[._-]?key)(?:[._-]|$)"
)
KEY_NAME = late_pattern(r"(?i)id_[a-z0-9_]+|.*\.(?:key|pem|p12|pfx|p8|jks|keystore|kdbx|ppk)")
"""What holds a key, unless others may read it: then it is a certificate, or a key of no worth."""
NO_SECRET = late_pattern(
    r"(?i).*\.(?:pub|crt|c|h|cc|cpp|go|rs|py|pyi|pyc|js|mjs|cjs|ts|tsx|jsx|map|lua|vim|el|rb|pl|sh|fish|zsh|bash|md|rst"
    r"|html|css|svg|png|so|a|o|jar|class|wasm|lock|snap|d|desktop|service|socket|1)"
)
"""Code and what else people call so, though it only speaks of secrets."""
TOPS = ("", ".config", ".local/share", ".local/state")
"""Folders of a home whose entries are the folders of programs."""
NOT_LOOKED_INTO = frozenset({
    ".cache", ".cargo", ".config", ".git", ".local", ".npm", ".nvm", ".pyenv", ".rbenv", ".rustup", ".sdkman", ".asdf",
    ".m2", ".gradle", ".ivy2", ".vscode", ".vscode-server", ".cursor-server", ".oh-my-zsh", ".venv", ".virtualenvs",
    ".conda", ".mamba", ".nix-profile", ".nix-defexpr", ".pnpm-store", ".yarn", ".bun", ".deno", ".gem", ".opam", ".go",
    "Trash", "applications", "fonts", "icons", "uv", "virtualenv", "pnpm", "man", "mime", "themes", "nvim",
})  # fmt: skip
"""Folders of programs and of their caches, in which nothing is called by its name, and much is."""
MOST_IN_A_FOLDER = 200
MOST_LOOKED_AT = 4_000
MOST_FOUND = 100
"""Each takes a mount."""


def named_secrets(home: str) -> list[str]:
    """Files and folders of a home that are secrets by their names; looks at the folders of programs, and no deeper."""
    found = [entry.path for entry in list_folder(home) if entry.name.startswith(".") and is_secret(entry)]
    left = MOST_LOOKED_AT
    for folder in program_folders_of(home):
        entries = list_folder(folder)
        left -= len(entries)
        if left < 0 or len(found) >= MOST_FOUND:
            break
        if len(entries) <= MOST_IN_A_FOLDER:
            found += [entry.path for entry in entries if is_secret(entry)]
    return sorted(found[:MOST_FOUND])


def program_folders_of(home: str) -> Iterator[str]:
    """The folders to look into: those of programs. Of the home itself only hidden entries are."""
    for top in TOPS:
        for entry in list_folder(os.path.join(home, top)):
            if (top or entry.name.startswith(".")) and entry.name not in NOT_LOOKED_INTO and is_folder(entry):
                yield entry.path


def is_secret(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if NO_SECRET.fullmatch(name):
        return False
    if SECRET_NAME.search(name):
        return not entry.is_symlink()
    if KEY_NAME.fullmatch(name) is None:
        return False
    facts = facts_of(entry)
    return facts is not None and stat.S_ISREG(facts.st_mode) and not facts.st_mode & 0o077


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
