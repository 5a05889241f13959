"""A console to open sessions from; at the end of a test no process and no file of theirs may be left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shell.console import Console, Session, end_marked, marked


@pytest.fixture
async def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Console]:
    """Sessions whose private folders are where we can look."""
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(private))
    console = Console(tmp_path)
    yield console
    await console.close()
    left = marked(console.mark)
    end_marked(console.mark)
    assert left == []
    assert list(private.iterdir()) == []


@pytest.fixture
async def shell(console: Console) -> Session:
    """A fresh session that has run `cd …; export KEEP=42`."""
    return await console.open_prepared()
