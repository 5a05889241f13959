"""A yard of tools to serve, and the protocol era to serve them in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from mcp_peer import ERAS, Peer, connected
from yard import Yard

Connect = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    return Yard(tmp_path)


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest, yard: Yard) -> Connect:
    """Connects a client of each era in turn to an application on a configuration."""

    def connect(*plugins: Any, config: Any = None, **options: Any) -> AbstractAsyncContextManager[Peer]:
        options = {"era": request.param, **options}
        return connected(config or yard.config(*plugins), yard.folder, **options)

    return connect
