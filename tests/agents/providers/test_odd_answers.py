"""Whatever a server sends instead of what its API promises, it is an answer or a fault, never a crash."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_model_server import EVENTS, Said
from provider_bench import LIST_FILES, user
from toolyard.agents.providers.anthropic.answer import AnthropicAnswer
from toolyard.agents.providers.anthropic.request import anthropic_body
from toolyard.agents.providers.chat.answer import ChatAnswer
from toolyard.agents.providers.chat.request import chat_body
from toolyard.agents.providers.event_stream import data_of
from toolyard.agents.providers.faults import TryAgain
from toolyard.agents.providers.responses.answer import ResponsesAnswer
from toolyard.agents.providers.responses.request import responses_body
from toolyard.agents.providers.wire_tools import wire_tools
from toolyard.core.conversation import AssistantMessage
from toolyard.core.model import ModelRequest
from toolyard.errors import ProviderError

READERS: dict[str, Any] = {"openai": ChatAnswer, "responses": ResponsesAnswer, "anthropic": AnthropicAnswer}
BODIES: dict[str, Any] = {"openai": chat_body, "responses": responses_body, "anthropic": anthropic_body}
SAID = Said(
    text="I look.", thinking="Where?", calls=(("c1", "list_files", '{"path": "."}'), ("c2", "list_files", "{}"))
)
STREAMS = {wire: [data_of(event.rstrip(b"\n")) for event in events(SAID)] for wire, events in EVENTS.items()}
ODD = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], [None], ["x"], [[]], {}, {"type": 5}, {"x": None}, [{}]])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values inside one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in places(each, (*at, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    changed = copy.copy(value)
    changed[place[0]] = replaced(value[place[0]], place[1:], new)
    return changed


@st.composite
def odd_streams(draw: Any, wire: str) -> list[bytes]:
    """A good stream with events left out, doubled, or with something else in a place of one."""
    stream = list(STREAMS[wire])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(stream) - 1))
        if stream[at] == b"[DONE]":
            continue
        event = json.loads(stream[at])
        place = draw(st.sampled_from(places(event)))
        how = draw(st.sampled_from(["leave out", "double", "change", "change", "change"]))
        changed = json.dumps(replaced(event, place, draw(ODD))).encode()
        stream[at : at + 1] = {"leave out": [], "double": [stream[at]] * 2, "change": [changed]}[how]
        if not stream:
            return [b"{}"]
    return stream


@pytest.mark.parametrize("wire", READERS)
@given(data=st.data())
@settings(deadline=None, max_examples=400)
def test_an_odd_stream_is_an_answer_or_a_fault(wire, data):
    tools = wire_tools([LIST_FILES], wire, native=True)
    reader = READERS[wire]("m", tools, "the service")
    try:
        for event in data.draw(odd_streams(wire)):
            for told in reader.take(event):
                msgspec.json.encode(told)
        answer = reader.message()
    except (TryAgain, ProviderError):
        return
    stored = msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)
    assert stored == answer
    body = BODIES[wire](ModelRequest(model="m", messages=[user("One"), stored, user("Two")]), tools)
    msgspec.json.encode(body)
