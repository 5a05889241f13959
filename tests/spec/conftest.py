"""Every test here gets a yard."""

from __future__ import annotations

from pathlib import Path

import pytest

from chat_terminal import chat, model  # noqa: F401
from yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)
