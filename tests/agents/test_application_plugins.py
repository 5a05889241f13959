"""Plugins that watch conversations: told everything in order, and never in the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from scripted_provider import ScriptedProvider, bash
from toolyard.agents import application_plugins
from toolyard.agents.sessions.store import SessionStore
from watched_sessions import BUILTIN, PATIENCE, opened, outcome

pytestmark = pytest.mark.anyio


class Witness:
    """Writes down what it is told."""

    id = "witness"

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self, config: dict[str, Any]) -> None:
        self.told.append(f"start {config['provider']}")

    async def on_event(self, event: dict[str, Any], context: Any) -> None:
        self.told.append(event["type"])

    def stop(self) -> None:
        self.told.append("stop")


class Broken(Witness):
    id = "broken"

    def on_event(self, event: dict[str, Any]) -> None:  # type: ignore[override]
        self.told.append(event["type"])
        raise SystemExit(3)


class Stuck(Witness):
    id = "stuck"

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def on_event(self, event: dict[str, Any]) -> None:  # type: ignore[override]
        self.told.append(event["type"])
        self.let_go.wait(PATIENCE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


async def test_a_plugin_is_started_told_everything_in_order_and_stopped(folder: Path):
    witness = Witness()
    async with opened(folder, ScriptedProvider(bash("true"), "Done."), witness) as session:
        await outcome(session, "go")
    assert witness.told[0] == "start scripted"
    assert witness.told[-1] == "stop"
    kept = [told for told in witness.told if told in ("prompt", "turn_started", "answer", "result", "turn_ended")]
    assert kept == ["prompt", "turn_started", "answer", "result", "answer", "turn_ended"]


async def test_a_broken_plugin_ends_no_turn_and_is_told_nothing_more(folder: Path):
    broken, witness = Broken(), Witness()
    async with opened(folder, ScriptedProvider("Done."), broken, witness) as session:
        assert await outcome(session, "go") == "answered"
        assert await outcome(session, "again") == "answered"
    assert len([told for told in broken.told if told not in ("start scripted", "stop")]) == 3
    assert witness.told.count("turn_ended") == 2


async def test_a_stuck_plugin_holds_up_no_turn_and_not_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(application_plugins, "LAST_WAIT", 0.1)
    stuck = Stuck()
    try:
        async with opened(folder, ScriptedProvider("Done."), stuck) as session:
            assert await outcome(session, "go") == "answered"
    finally:
        stuck.let_go.set()
    assert "turn_ended" not in stuck.told


async def test_a_plugin_that_is_off_hears_nothing(folder: Path):
    witness = Witness()
    async with opened(folder, ScriptedProvider("Done."), witness, config={"disabled_plugins": ["witness"]}) as session:
        await outcome(session, "go")
    assert witness.told == []


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("please fix the failing test. It is in tests/a.py", "Fix the failing test"),
        ("Hello, can you tell me what this folder holds?", "Tell me what this folder holds"),
        ("hi", "Hi"),
        ("word " * 40, "Word word word word word word word word word word word word…"),
    ],
)
async def test_without_a_model_a_title_is_made_of_words(folder: Path, said: str, title: str):
    config = {"plugins": [f"{BUILTIN}/session-title-app"]}
    async with opened(folder, ScriptedProvider("Done."), config=config) as session:
        await outcome(session, said)
    assert SessionStore(folder / "sessions" / "sessions.sqlite").session(session.id).title == title


async def test_a_model_that_is_named_makes_the_title(folder: Path):
    provider = ScriptedProvider("Done.", '"A fine title"')
    config = {"plugins": [f"{BUILTIN}/session-title-app"], "session_title": {"model": "cheap-1"}}
    async with opened(folder, provider, config=config) as session:
        await outcome(session, "please do it")
    assert SessionStore(folder / "sessions" / "sessions.sqlite").session(session.id).title == "A fine title"
    assert [request.model for request in provider.requests] == ["test-model", "cheap-1"]
    assert "please do it" in provider.requests[1].messages[0].text


async def test_a_title_that_somebody_gave_stays(folder: Path):
    provider = ScriptedProvider("Done.")
    config = {"plugins": [f"{BUILTIN}/session-title-app"]}
    async with opened(folder, provider, config=config) as session:
        await session.set_metadata(title="My own")
        await outcome(session, "please do it")
    assert SessionStore(folder / "sessions" / "sessions.sqlite").session(session.id).title == "My own"
