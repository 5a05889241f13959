"""aimock, a fake of several model services that others wrote, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, need

PROGRAM = ROOT / ".venv" / "npm" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"


@contextmanager
def aimock(folder: Path, fixtures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A server that answers by these fixtures; its address."""
    node = need("node")
    if not PROGRAM.is_file():
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("aimock is not installed; `make test` does it, or scripts/npm-packages")
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    argv = [node, str(PROGRAM), "--port", "0", "--fixtures", str(file), "--strict"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder) as process:
        try:
            yield address(process)
        finally:
            process.terminate()


def address(process: subprocess.Popen[str]) -> str:
    """Where the server says that it listens; its output ends when it cannot."""
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
    raise AssertionError("".join(said))
