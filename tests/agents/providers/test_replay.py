"""Recorded answers are played in their order, whatever was restarted in between."""

from __future__ import annotations

import json

import msgspec
import pytest

from provider_bench import bundled, told, user
from toolyard.core.conversation import AssistantMessage, SummaryMessage
from toolyard.core.model import CallDelta, ModelRequest, TextDelta
from toolyard.core.tool import ToolCall
from toolyard.errors import ProviderError

pytestmark = pytest.mark.anyio


def request(path, *messages, **rest):
    return ModelRequest(model="m", messages=messages or [user("Hi")], config={"replay": str(path)}, **rest)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "answers.jsonl"
    call = {"id": "c1", "name": "bash", "arguments": {"command": "ls"}}
    lines = [
        {"type": "user", "content": []},
        {"seq": 1, "type": "partial", "message": {"type": "assistant", "text": "not yet"}},
        {"text": "I look.", "calls": [call], "stop": "tool_calls"},
        {},
        {"seq": 3, "type": "answer", "message": {"type": "assistant", "text": "Done. " * 20}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n")
    return path


async def test_answers_are_played_in_their_order_by_any_process(recording):
    events, first = await told(bundled("replay"), request(recording))
    assert first.calls == (ToolCall(id="c1", name="bash", arguments={"command": "ls"}),)
    assert "".join(event.text for event in events if isinstance(event, CallDelta)) == '{"command":"ls"}'
    events, second = await told(bundled("replay"), request(recording, user("Hi"), first))
    assert second.text == "Done. " * 20
    assert len([event for event in events if isinstance(event, TextDelta)]) > 2


async def test_a_summary_does_not_begin_it_anew(recording):
    provider = bundled("replay")
    await told(provider, request(recording, session="s"))
    _, second = await told(provider, request(recording, SummaryMessage(text="We looked."), user("Go on"), session="s"))
    assert second.text.startswith("Done.")


async def test_what_was_recorded_comes_out_as_it_went_in(tmp_path):
    answer = AssistantMessage(text="Grüße", wire="anthropic", items=({"type": "thinking", "signature": "=="},))
    (tmp_path / "a.jsonl").write_bytes(msgspec.json.encode(answer) + b"\n")
    _, again = await told(bundled("replay"), request(tmp_path / "a.jsonl"))
    assert msgspec.json.encode(again) == msgspec.json.encode(answer)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 answers"),
        ('{"text": 5}\n', ":1: Expected `str`"),
        ("{}\nno json\n", ":2: "),
        (None, "cannot be read"),
    ],
)
async def test_what_cannot_be_played_is_said(tmp_path, text, says):
    path = tmp_path / "a.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProviderError, match=says) as raised:
        await told(bundled("replay"), request(path))
    assert raised.value.fault == "setup"
    assert raised.value.hint


async def test_a_recording_must_be_named():
    with pytest.raises(ProviderError, match="must name a file"):
        await told(bundled("replay"), ModelRequest(model="m", messages=[user("Hi")]))
