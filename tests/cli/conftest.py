"""Every test here gets the command line of a new user."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import CommandLine


@pytest.fixture
def toolyard(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
