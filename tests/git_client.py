"""A git client that runs outside all the time, as editors do, and what it obeys where nothing keeps that in."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

COMMON = """p=$(git rev-parse --git-common-dir); printf '* filter=evil diff=evil\\n' > .gitattributes
evil() { printf '[core]\\n\\tfsmonitor = %s\\n' "$EVIL"; }
"""
OBEYED = {
    "a monitor": 'git config core.fsmonitor "$EVIL"',
    "hooks elsewhere": 'mkdir h; cp "$EVIL" h/pre-commit; git config core.hooksPath "$PWD/h"',
    "a filter": 'git config filter.evil.clean "$EVIL"; echo x >> file',
    "a converter": 'git config diff.evil.textconv "$EVIL"; echo x >> file',
    "another diff": 'git config diff.external "$EVIL"; echo x >> file',
    "an upload program": 'git config remote.origin.uploadpack "$EVIL"',
    "an included file": 'evil > i; git config include.path "$PWD/i"',
    "written by hand": 'evil >> $p/config',
    "a hook": 'cp "$EVIL" $p/hooks/pre-commit; cp "$EVIL" .git/hooks/pre-commit',
    "a replaced configuration": 'evil > n; mv -f n .git/config',
    "a moved configuration": 'mv .git/config .git/c; evil > .git/config',
    "another common folder": (
        'cp -r .git c; evil > c/config; echo "$PWD/c" > .git/commondir'
    ),
    "another repository": (
        'mv .git g; git init -q .; git config core.fsmonitor "$EVIL"; git add file; git commit -qm x'
    ),
}  # fmt: skip
"""What runs something outside where nothing keeps it in."""


class Client:
    """Runs git in some folders again and again."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.rounds = 0

    def __enter__(self) -> Client:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for folder in self._folders:
                look(folder)
            self.rounds += 1


def look(folder: Path) -> None:
    for words in (["status"], ["log", "-1", "-p"], ["diff"], ["fetch", "--dry-run", "--all"]):
        git(folder, *words)


def git(folder: Path, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run(["git", *words], cwd=folder, capture_output=True, timeout=60, env=env, stdin=subprocess.DEVNULL)
