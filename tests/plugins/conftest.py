"""Every test here can get plugins from anywhere on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hosts import make_host
from toolyard.core.problems import Problem
from toolyard.plugins.acquire.fetch import Fetched
from toolyard.plugins.acquire.git_reference import read_git_reference, split_reference
from toolyard.process.child import Children


@pytest.fixture
async def children() -> AsyncIterator[Children]:
    running = Children()
    yield running
    await running.aclose()


@pytest.fixture
def fetch(tmp_path: Path, children: Children) -> Callable[..., Any]:
    """Fetch `URL#REF` under a policy."""

    async def run(text: str, **policy: Any) -> Fetched | Problem:
        reference = read_git_reference(*split_reference(text), "/")
        if isinstance(reference, Problem):
            return reference
        return await make_host(children, cache=tmp_path / "cache", **policy).fetcher.fetch(reference)

    return run
