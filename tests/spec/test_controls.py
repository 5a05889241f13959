"""The controls of an agent: one list of all that a person can set, settable for one conversation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scripted_provider import ScriptedProvider
from support import CommandLine
from toolyard import AgentApplication
from toolyard.errors import ControlError

pytestmark = pytest.mark.anyio

RUNTIME = """
TONES = ["dry", "warm"]

def get_ui_elements():
    return [{"id": "tone", "label": "Tone", "ui_type": "select", "options": TONES, "value": CONFIG.get("tone", "dry")}]
"""
CONFIG = {
    "plugins": [
        "shell:session",
        "path:${env:BUILTIN_PLUGINS}/feature-request-options",
        "path:${env:BUILTIN_PLUGINS}/feature-system-message",
    ],
    "provider": "scripted",
    "model": "usual-1",
    "request_options": {"temperature": 0.5},
    "system_message": {
        "template": "Be {{TONE}}.",
        "runtime_code": "runtime.py",
        "variables": {"TONE": {"inline_code": "CONFIG.get('tone', 'dry')"}},
    },
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "runtime.py").write_text(RUNTIME)
    monkeypatch.chdir(folder)
    return folder


@asynccontextmanager
async def opened(provider: ScriptedProvider, work: Path) -> AsyncIterator[AgentApplication]:
    async with asyncio.timeout(60):
        async with AgentApplication(CONFIG, work.parent / "sessions", tools=[provider]) as app:
            yield app


async def test_T12_all_controls_are_in_one_list_with_types_and_defaults(work: Path):
    async with opened(ScriptedProvider("Done."), work) as app:
        schema = await app.ui_schema()
        controls = {one["id"]: one for one in schema.controls}
        assert {"id", "label", "ui_type", "default", "value"} <= set.intersection(*map(set, controls.values()))
        assert (controls["plugins.shell:session"]["ui_type"], controls["plugins.shell:session"]["value"]) == (
            "toggle",
            True,
        )
        assert controls["model"]["default"] == "usual-1"
        assert controls["request_options.temperature"]["default"] == 0.5
        assert (controls["tone"]["options"], controls["tone"]["value"]) == (["dry", "warm"], "dry")
        assert schema.problems == []


async def test_T12_what_is_set_for_a_session_holds_for_its_requests_and_for_no_others(work: Path):
    provider = ScriptedProvider("Done.")
    async with opened(provider, work) as app:
        session, other = await app.open_session(), await app.open_session()
        for id, value in (
            ("model", "other-1"),
            ("request_options.temperature", 1.5),
            ("tone", "warm"),
            ("plugins.shell:session", False),
        ):
            await session.set_control(id, value)
        for one in (session, other):
            assert [update async for update in one.send("go")]
        controls = {one["id"]: one for one in (await app.ui_schema(session=session.id)).controls}
        assert (controls["tone"]["default"], controls["tone"]["value"]) == ("dry", "warm")
    changed, usual = provider.requests
    assert (changed.model, changed.options["temperature"], changed.system) == ("other-1", 1.5, "Be warm.")
    assert "bash" not in [spec.name for spec in changed.tools]
    assert (usual.model, usual.options["temperature"], usual.system) == ("usual-1", 0.5, "Be dry.")
    assert "bash" in [spec.name for spec in usual.tools]


async def test_T12_a_default_comes_back_and_another_process_finds_what_is_set(work: Path):
    provider = ScriptedProvider("Done.")
    async with opened(provider, work) as app:
        session = await app.open_session()
        await session.set_control("tone", "warm")
        await session.set_control("model", "other-1")
        await session.set_control("model", None)
    async with opened(provider, work) as app:
        session = await app.open_session(id=session.id)
        assert [update async for update in session.send("go")]
    assert (provider.requests[0].model, provider.requests[0].system) == ("usual-1", "Be warm.")


@pytest.mark.parametrize(
    ("id", "value", "said"),
    [
        ("tune", "warm", "did you mean 'tone'?"),
        ("tone", "cold", "one of dry, warm"),
        ("plugins.shell:session", "yes", "true or false"),
        ("request_options.temperature", 9, "a number from 0 to 2"),
        ("model", 3, "a text"),
    ],
)
async def test_T12_what_a_control_does_not_take_is_refused(work: Path, id: str, value: Any, said: str):
    async with opened(ScriptedProvider("Done."), work) as app:
        session = await app.open_session()
        with pytest.raises(ControlError, match=said.replace("?", r"\?")):
            await session.set_control(id, value)


def test_T12_controls_are_read_and_set_on_the_command_line(toolyard: CommandLine):
    toolyard.file("turns.jsonl", '{"text": "Done."}\n')
    toolyard.config(
        "path:${env:BUILTIN_PLUGINS}/replay",
        "path:${env:BUILTIN_PLUGINS}/feature-request-options",
        provider="replay",
        replay="turns.jsonl",
    )
    listed = toolyard("config", "ui")
    assert listed.code == 0
    assert re.search(r"request_options.temperature +number +not set", listed.out)
    toolyard("chat", "-p", "go")
    id = toolyard("sessions", "list", "--json").json["id"]
    done = toolyard("sessions", "set", id, "request_options.temperature=0.2", "plugins.feature_request_options=true")
    assert done.code == 0, done.err
    shown = toolyard("config", "ui", "--session", id).out
    assert re.search(r"request_options.temperature +number +0.2 +default not set", shown)
    wrong = toolyard("sessions", "set", id, "request_options.temperature=high")
    assert wrong.code == 2
    assert "a number from 0 to 2" in wrong.err
