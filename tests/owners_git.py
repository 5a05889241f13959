"""Git as the owner of a repository outside runs it, and what a call inside does there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

OWNER = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org"]
WRITE = "git config user.name In; git config user.email in@side; "


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    ran = subprocess.run(["git", *OWNER, *words], cwd=folder, capture_output=True, text=True, env=env, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def inside(box, children, script: str) -> list[str]:
    """Run something as a call does; what is said of it."""
    outcome = await box.bash(children, f"set -e; {script}")
    assert outcome.exit_code == 0, outcome.stderr.text
    await children.sandbox.exchange_repositories()
    return children.sandbox.take_notes()
