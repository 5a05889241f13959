"""N12: results carry more than text, through every format, and nothing that is too long is lost to the model."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path

import pytest

from scripted_provider import ScriptedProvider, calls
from support import PNG
from toolyard import AgentApplication, AudioPart, ImagePart, LinkPart, tool
from toolyard.agents.sessions.events import CallAnswered
from toolyard.agents.sessions.store import SessionStore
from toolyard.core.conversation import ToolMessage
from toolyard.core.tool import ToolCall
from toolyard.core.wire.content_forms import mcp_content

pytestmark = pytest.mark.anyio
SECONDS = 90
PARTS = (
    ImagePart(media_type="image/png", data=PNG),
    AudioPart(media_type="audio/wav", data=b"RIFF....WAVEfmt "),
    LinkPart(uri="https://example.org/a", name="a"),
)
IN_BASE64 = base64.b64encode(PNG).decode()


@tool
def show() -> list:
    """Show everything."""
    return ["Look:", *PARTS]


@tool
def count() -> str:
    """Count."""
    return "\n".join(f"number {number}" for number in range(20_000))


async def test_N12_text_images_audio_and_links_go_through_every_format(tmp_path: Path):
    async with AgentApplication({"plugins": []}, tmp_path / "sessions", tools=[show]) as app:
        results = await app.call_tools([ToolCall(id="c", name="show", arguments={})])
        formats = {
            "anthropic": app.tool_messages(results, format="anthropic"),
            "responses": app.tool_messages(results, format="responses"),
            "openai": app.tool_messages(results, format="openai"),
            "mcp": mcp_content(results["c"].content),
        }
    assert results["c"].attachments == PARTS
    for name, messages in formats.items():
        told = str(messages)
        assert "Look:" in told, name
        assert IN_BASE64 in told, name
        assert "https://example.org/a" in told, name
        assert ("audio/wav" in told) or ("input_audio" in told), "carried, or named where there is no place for it"


async def test_N12_an_agent_sees_the_picture_and_the_store_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider(calls(("show", {})), "I see.", "I still see.")
    config = {"provider": "scripted", "plugins": []}
    async with asyncio.timeout(SECONDS):
        async with AgentApplication(config, tmp_path / "sessions", tools=[provider, show]) as app:
            session = await app.open_session()
            _ = [update async for update in session.send("Show me.")]
        async with AgentApplication(config, tmp_path / "sessions", tools=[provider, show]) as app:
            again = await app.open_session(id=session.id)
            _ = [update async for update in again.send("And now?")]
    for request in provider.requests[1:]:
        (message,) = [message for message in request.messages if isinstance(message, ToolMessage)]
        assert (message.answers[0].text, message.answers[0].attachments) == ("Look:", PARTS)
    store = SessionStore(tmp_path / "sessions" / "sessions.sqlite")
    (kept,) = [one.event for one in store.events(session.id) if isinstance(one.event, CallAnswered)]
    store.close()
    assert kept.answer.attachments == PARTS


async def test_N12_an_agent_reads_on_in_output_beyond_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def read_on(request):
        cut = request.messages[-1].answers[0].text
        handle, offset = re.search(r"read_output has it: handle (\S+), offset (\d+)", cut).groups()
        return calls(
            ("read_output", {"handle": handle, "offset": int(offset)}),
            ("read_output", {"handle": handle, "find": "number 12345"}),
        )

    provider = ScriptedProvider(calls(("count", {})), read_on, "Done.")
    config = {"provider": "scripted", "plugins": [], "output": {"limit_bytes": 2000}}
    async with asyncio.timeout(SECONDS):
        async with AgentApplication(config, tmp_path / "sessions", tools=[provider, count]) as app:
            session = await app.open_session()
            _ = [update async for update in session.send("Count.")]
    assert {tuple(spec.name for spec in request.tools) for request in provider.requests} == {("count", "read_output")}
    messages = [message for message in provider.requests[2].messages if isinstance(message, ToolMessage)]
    cut, (next_piece, found) = (message.answers for message in messages)
    head = cut[0].text.partition("\n[... ")[0]
    assert f"{head}{next_piece.text}".startswith("\n".join(f"number {number}" for number in range(200)))
    before = len("".join(f"number {number}\n" for number in range(12_345)))
    assert found.text == f"{before}: number 12345\n[that is all]"
