"""Live shells of conversations in which nothing happens cost no process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support import PATIENCE
from toolyard.app import AgentApplication
from toolyard.process.process_tree import descendants

pytestmark = pytest.mark.anyio
CONVERSATIONS = 20


def shells(app: AgentApplication) -> int:
    """How many processes of bash there are below the application's keepers."""
    children = app._lifecycle.known().host.processes.children.values()
    keepers = [pid for one in children if (pid := one.keeper_pid)]
    return sum(name_of(pid) == "bash" for pid in descendants(keepers))


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has just ended
        return ""


async def call(app: AgentApplication, command: str, number: int) -> str:
    result = await app.call_tool("bash", {"command": command}, session=f"s{number}")
    assert result.ok, result.text
    return result.text


async def test_idle_shells_are_given_back_and_come_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"plugins": [{"shell_session": {"idle_seconds": 0.2}}], "sandbox": {"mode": "off"}}
    async with asyncio.timeout(PATIENCE), AgentApplication(config, tmp_path / "sessions") as app:
        await call(app, "sleep 300 >/dev/null 2>&1 & echo working", CONVERSATIONS)
        for number in range(CONVERSATIONS):
            await call(app, f"x=state-{number}", number)
        while shells(app) > 1:
            await asyncio.sleep(0.05)
        for number in range(CONVERSATIONS):
            text = await call(app, "echo $x", number)
            assert "given back while it had nothing to do" in text
            assert f"state-{number}" in text
        assert await call(app, "kill %1 && echo there", CONVERSATIONS) == "there\n"


async def test_a_command_that_takes_longer_than_that_is_not_disturbed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"plugins": [{"shell_session": {"idle_seconds": 0.05}}], "sandbox": {"mode": "off"}}
    async with asyncio.timeout(PATIENCE), AgentApplication(config, tmp_path / "sessions") as app:
        assert await call(app, "a=$$; sleep 1; [ $a = $$ ] && echo same", 1) == "same\n"


async def test_they_end_with_their_conversation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"plugins": [{"shell_session": {"idle_seconds": None}}], "sandbox": {"mode": "off"}}
    async with asyncio.timeout(PATIENCE), AgentApplication(config, tmp_path / "sessions") as app:
        await call(app, "x=1", 1)
        assert shells(app) == 1
        await app.end_session("s1")
        assert shells(app) == 0
