"""Every test here can get plugins from anywhere on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from toolyard.config.settings import PluginPolicy
from toolyard.core.problems import Problem
from toolyard.plugins.acquire.acquirer import Acquirer, Fetched
from toolyard.plugins.acquire.build import Builders
from toolyard.plugins.acquire.git_reference import read_git_reference, split_reference
from toolyard.process.child import Children


@pytest.fixture
async def children() -> AsyncIterator[Children]:
    running = Children()
    yield running
    await running.aclose()


@pytest.fixture
def acquirer(tmp_path: Path, children: Children) -> Callable[..., Acquirer]:
    def make(**policy: Any) -> Acquirer:
        return Acquirer(tmp_path / "cache" / "plugins", PluginPolicy(**policy), children, Builders())

    return make


@pytest.fixture
def fetch(acquirer: Callable[..., Acquirer]) -> Callable[..., Any]:
    """Fetch `URL#REF` under a policy."""

    async def run(text: str, **policy: Any) -> Fetched | Problem:
        reference = read_git_reference(*split_reference(text), "/")
        return reference if isinstance(reference, Problem) else await acquirer(**policy).fetch(reference)

    return run
