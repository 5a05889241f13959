"""Where a script and a test wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import CommandLine, Signpost


@pytest.fixture
def signpost(toolyard: CommandLine) -> Iterator[Signpost]:
    """A script reads `go_on`, and goes on when the test says so."""
    post = Signpost(toolyard.folder / "go_on")
    yield post
    post.close()


@pytest.fixture
def started(toolyard: CommandLine) -> Iterator[Signpost]:
    """A script writes to `started`, and the test waits for it."""
    post = Signpost(toolyard.folder / "started")
    yield post
    post.close()
