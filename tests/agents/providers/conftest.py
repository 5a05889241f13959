"""No key and no proxy of the developer's own is used, and no wait between attempts is a real one."""

from __future__ import annotations

import pytest

from provider_bench import own_connections
from toolyard.agents.providers import retries


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for maker in ("OPENAI", "ANTHROPIC", "OPENROUTER"):
        for name in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{maker}_{name}", raising=False)
    own_connections(monkeypatch)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
