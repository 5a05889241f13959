"""Calls of a program that print how it is used, or which version it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import PRIVILEGED, is_carrier, is_interpreter, is_shell, names
from toolyard.permissions.programs.subcommands import CARRYING

if TYPE_CHECKING:
    from collections.abc import Sequence


ASKS = frozenset({"--help", "--version"})
ASKS_SHORTLY = frozenset({"-V", "-v", "-version", "version"})
"""Words for the same that are only sure for programs of which it is known."""
KNOWN_VERSIONS = names("""
    node nodejs npm pnpm yarn npx deno bun python python3 pip pip3 ruby gem perl php go cargo rustc java javac gcc
    g++ clang clang++ cmake make ninja git docker kubectl helm terraform uv poetry ruff mypy pytest black eslint tsc
    prettier jest bash zsh fish vim nvim emacs tmux ssh curl wget sqlite3 psql mysql redis-cli awk gawk sed tar
    unzip gzip jq yq rg fd
""")
RUNS_WORDS = names("""
    run exec x start test t dlx watch serve shell console tool -m -c -e node python init create generate
""")
"""Commands behind which another program may stand that would get the question."""


HAS_HELP = names("""
    git cargo docker podman kubectl npm pip pip3 go gh helm terraform tofu uv apt apt-get apt-cache dnf brew gem conda
    systemctl aws gcloud az poetry
""")
"""Programs that print the help of each of their commands, and run nothing for that."""
HANDS_ON = names("""
    nx lerna turbo yarn pnpm corepack bazel ng gulp grunt webpack expo ember rush direnv mise asdf rbenv nodenv jenv
    volta
""")
"""Programs that hand on whatever they are asked to one of the folder's own."""


def asks_for_help(words: Sequence[str | None]) -> bool:
    """Whether a call does nothing but print how a program is used, or its version."""
    name, rest = words[0], words[1:]
    if (
        name is None
        or "/" in name
        or name in PRIVILEGED
        or name in HANDS_ON
        or None in rest
        or not rest
        or len(rest) > 3
    ):
        return False
    if len(rest) == 1:
        return rest[0] in ASKS or (rest[0] in ASKS_SHORTLY and name in KNOWN_VERSIONS)
    if rest[0] == "--version" and rest[1:] in (["--verbose"], ["-v"]):
        return not is_carrier(name)
    if name not in HAS_HELP or is_carrier(name) or is_shell(name) or is_interpreter(name):
        return False
    *command, last = rest
    is_plain = all(word is not None and word.replace("-", "").isalnum() and word[0] != "-" for word in command)
    runs = RUNS_WORDS.intersection(filter(None, command)) or CARRYING.get(name, frozenset()).intersection(
        filter(None, command[1:])
    )
    return last in ("--help", "-h") and is_plain and not runs


def found_inside(name: str, workspace: str, path: str) -> bool:
    """Whether a program would be one of the workspace's own files, by the folders that programs are looked for in."""
    for folder in path.split(os.pathsep):
        if not os.path.isabs(folder):
            return True
        if os.path.exists(os.path.join(folder, name)):
            real, top = os.path.realpath(os.path.join(folder, name)), os.path.realpath(workspace)
            return f"{folder}/".startswith(f"{workspace}/") or f"{real}/".startswith(f"{top}/")
    return False
