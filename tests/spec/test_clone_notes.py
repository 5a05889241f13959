"""What a clone made inside loses is said, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from repositories import git, repository
from support import need, need_backend
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    need("git")
    need_backend("bubblewrap", "bubblewrap-pids")
    return Yard(inhabit(tmp_path, monkeypatch) / "project")


async def test_E06_a_clone_of_a_repository_outside_says_that_it_loses_its_address_and_what_to_do(yard, tmp_path):
    outside = repository(tmp_path / "outside", {"file": "text"})
    async with yard.app("shell:command", sandbox={"readable": [str(outside)]}) as app:
        result = await app.call_tool("shell", {"command": f"git clone -q {outside} cloned && git -C cloned log -1"})
        assert result.failure is None, result.text
        (note,) = [line for line in result.text.splitlines() if "cloned/.git/config" in line]
        assert f"remote.origin.url = {outside}" in note
        assert "is a folder that is not looked over" in note
        assert f"git -C {Path.cwd()}/cloned remote set-url origin {outside}" in note
    assert git(Path.cwd() / "cloned", "config", "--get-all", "remote.origin.fetch")
    git(Path.cwd() / "cloned", "remote", "set-url", "origin", str(outside))
    git(Path.cwd() / "cloned", "fetch", "--quiet")
