"""Installs projects by policy, on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hosts import make_host
from toolyard.core.problems import Problem
from toolyard.kinds.python_function.install import Installed, install
from toolyard.plugins.host import Host
from toolyard.process.child import Children


class Acquirer:
    """A host that installs."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def install(self, project: Path, *, name: str, beside: Sequence[Path] = ()) -> Installed | Problem:
        return await install(project, name=name, beside=beside, host=self._host)


@pytest.fixture
async def acquirer(tmp_path: Path) -> AsyncIterator[Callable[..., Acquirer]]:
    children = Children()

    def make(**policy: Any) -> Acquirer:
        return Acquirer(make_host(children, cache=tmp_path / "cache", **policy))

    yield make
    await children.aclose()
