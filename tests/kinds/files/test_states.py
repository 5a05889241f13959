"""What file tools change in a turn comes back with the state before it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scripted_provider import ScriptedProvider, calls
from support import PATIENCE
from toolyard.agents.sessions.events import CallBegan
from toolyard.app import AgentApplication

pytestmark = pytest.mark.anyio
PATCH = "*** Begin Patch\n*** Delete File: b.txt\n*** Add File: new/c.txt\n+x\n*** End Patch"


async def test_a_state_is_kept_before_a_change_and_not_before_a_look_and_brings_all_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "a.txt").write_text("one\n")
    (work / "b.txt").write_text("two\n")
    provider = ScriptedProvider(
        calls(("read", {"file_path": "a.txt"})),
        calls(
            ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}), ("apply_patch", {"input": PATCH})
        ),
        "Done.",
    )
    config = {"plugins": ["files:all"], "provider": "scripted"}
    async with AgentApplication(config, tmp_path / "sessions", tools=[provider]) as app, asyncio.timeout(PATIENCE):
        session = await app.open_session()
        async for _ in session.send("change it"):
            pass
        began = [one.event for one in session.events() if isinstance(one.event, CallBegan)]
        assert [one.checkpoint is not None for one in began] == [False, True, True]
        assert ((work / "a.txt").read_text(), (work / "new/c.txt").read_text()) == ("1\n", "x\n")
        assert not (work / "b.txt").exists()
        await session.rewind()
    assert {path.name: path.read_text() for path in work.iterdir()} == {"a.txt": "one\n", "b.txt": "two\n"}
