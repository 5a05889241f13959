"""Answers as services really give them: every reason to stop, odd servers, usage, and calls that were cut."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_model_server import Reply, Said, anthropic_events, chat_events, responses_events, sse
from provider_bench import LIST_FILES, WIRES, Wire, provider_bench, user
from sdk_types import assert_official
from toolyard.agents.providers.event_stream import EventStream
from toolyard.agents.providers.prices import Price, price_of, tokens_at, with_cost
from toolyard.core.conversation import AssistantMessage, Usage
from toolyard.core.model import CallDelta, TextDelta, ThinkingDelta

pytestmark = pytest.mark.anyio
each_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
LS = ("c1", "list_files", '{"path": "."}')
PWD = ("c2", "list_files", '{"path": "/"}')


@each_wire
async def test_text_thinking_and_parallel_calls_are_told_while_they_come(wire: Wire):
    said = Said(text="I look.", thinking="Where to?", calls=(LS, PWD))
    async with provider_bench(wire, wire.reply(said)) as bench:
        events, answer = await bench.events(user("List"), tools=[LIST_FILES])
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 1
    assert "".join(texts) == answer.text == said.text
    thoughts = [event.text for event in events if isinstance(event, ThinkingDelta)]
    assert len(thoughts) > 1
    assert "".join(thoughts) == answer.thinking == said.thinking
    for id, name, arguments in said.calls:
        pieces = [event.text for event in events if isinstance(event, CallDelta) and event.call_id == id]
        assert "".join(pieces) == arguments
        assert {event.name for event in events if isinstance(event, CallDelta)} == {name}
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [LS, PWD]
    assert (answer.stop, answer.model, answer.wire) == ("tool_calls", "fake-1", wire.name)


@each_wire
async def test_an_answer_survives_being_stored(wire: Wire):
    async with provider_bench(wire, wire.reply(Said(text="I look.", thinking="Where?", calls=(LS,)))) as bench:
        answer = await bench.ask(tools=[LIST_FILES])
    stored = msgspec.json.encode(answer)
    again = msgspec.json.decode(stored, type=AssistantMessage)
    assert again == answer
    assert msgspec.json.encode(again) == stored


STOPS = [
    ("chat", "stop", "answer"),
    ("chat", "length", "length"),
    ("chat", "content_filter", "refusal"),
    ("chat", "model_length", "window_full"),
    ("chat", "something new", "answer"),
    ("anthropic", "end_turn", "answer"),
    ("anthropic", "stop_sequence", "answer"),
    ("anthropic", "max_tokens", "length"),
    ("anthropic", "pause_turn", "paused"),
    ("anthropic", "refusal", "refusal"),
    ("anthropic", "model_context_window_exceeded", "window_full"),
    ("anthropic", "something new", "answer"),
]


@pytest.mark.parametrize(("name", "theirs", "ours"), STOPS)
async def test_every_reason_to_stop_is_known(name, theirs, ours):
    wire = WIRES[name]
    async with provider_bench(wire, wire.reply(Said(text="So far.", stop=theirs))) as bench:
        answer = await bench.ask()
        assert (answer.stop, answer.text) == (ours, "So far.")


@pytest.mark.parametrize(
    ("reason", "ours"), [("max_output_tokens", "length"), ("content_filter", "refusal"), ("other", "length")]
)
async def test_an_incomplete_response_says_why(reason, ours):
    events = responses_events(Said(text="So far.", stop="incomplete"), incomplete_details={"reason": reason})
    async with provider_bench(WIRES["responses"], Reply(events=events)) as bench:
        assert (await bench.ask()).stop == ours


@pytest.mark.parametrize(("name", "stop"), [("chat", "length"), ("anthropic", "max_tokens")])
async def test_an_answer_without_words_that_was_cut_off_or_refused_is_no_empty_one(name, stop):
    wire = WIRES[name]
    async with provider_bench(wire, wire.reply(Said(thinking="Long…", stop=stop))) as bench:
        answer = await bench.ask()
        assert (answer.stop, answer.text) == ("length", "")
        assert len(bench.bodies) == 1


@each_wire
@pytest.mark.parametrize(
    "said", [Said(), Said(text=" \n "), Said(thinking="Hm.")], ids=["nothing", "blank", "thinking"]
)
async def test_an_empty_answer_is_given_as_such_and_not_sent_back(wire: Wire, said):
    async with provider_bench(wire, wire.reply(said), wire.reply(Said(text="Sorry."))) as bench:
        answer = await bench.ask(user("One"))
        assert (answer.text.strip(), answer.calls, answer.stop) == ("", (), "answer")
        assert (await bench.ask(user("One"), answer, user("Two"))).text == "Sorry."
        body = bench.bodies[1]
        assert_official(wire.name, body)
        assert {item["role"] for item in body.get("messages") or body["input"]} == {"user"}


async def test_a_refusal_is_told_in_its_words():
    delta = {"role": "assistant", "refusal": "I will not."}
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
    async with provider_bench(WIRES["chat"], Reply(events=(*sse(chunk), b"data: [DONE]\n\n"))) as bench:
        answer = await bench.ask()
        assert (answer.stop, answer.text) == ("refusal", "I will not.")
    content = [{"type": "refusal", "refusal": "I will not."}]
    message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    async with provider_bench(WIRES["responses"], Reply(events=responses_events(Said(), message))) as bench:
        answer = await bench.ask()
        assert (answer.stop, answer.text) == ("refusal", "I will not.")


CUT = ("c1", "list_files", '{"path": "/home/us')


@pytest.mark.parametrize(("name", "stop"), [("chat", "length"), ("openrouter", "length"), ("anthropic", "max_tokens")])
async def test_a_call_that_was_cut_goes_on_as_the_text_that_came(name, stop):
    wire = WIRES[name]
    async with provider_bench(wire, wire.reply(Said(calls=(CUT,), stop=stop)), wire.reply(Said(text="x"))) as bench:
        answer = await bench.ask(tools=[LIST_FILES])
        assert answer.stop == "length"
        assert answer.calls[0].arguments == CUT[2]
        await bench.ask(user("List"), answer, tools=[LIST_FILES])
        assert CUT[2] in json.dumps(bench.bodies[1]).replace('\\"', '"')


async def test_a_call_without_arguments_has_an_empty_object():
    for wire in WIRES.values():
        async with provider_bench(wire, wire.reply(Said(calls=(("c1", "list_files", ""),)))) as bench:
            (call,) = (await bench.ask(tools=[LIST_FILES])).calls
            assert call.arguments in ("{}", {})


def chat(*deltas: dict[str, Any], finish: str | None = "tool_calls", done: bool = True) -> Reply:
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    last = [{"choices": [{"delta": {}, "finish_reason": finish}]}] if finish else []
    return Reply(events=(*sse(*chunks, *last), *([b"data: [DONE]\n\n"] if done else [])))


def piece(**fields: Any) -> dict[str, Any]:
    return {"tool_calls": [fields]}


ODD = {
    "without ids": [piece(index=0, function={"name": "a", "arguments": "{}"}), piece(index=1, function={"name": "b"})],
    "without an index": [
        piece(id="x", function={"name": "a", "arguments": ""}),
        piece(function={"arguments": "{}"}),
        piece(id="y", function={"name": "b", "arguments": "{}"}),
    ],
    "all of index 0": [
        piece(index=0, id="x", function={"name": "a", "arguments": "{}"}),
        piece(index=0, id="y", function={"name": "b", "arguments": "{}"}),
    ],
    "the id again and again": [
        piece(index=0, id="x", function={"name": "a", "arguments": "{"}),
        piece(index=0, id="x", function={"name": "a", "arguments": "}"}),
        piece(index=1, id="y", function={"name": "b", "arguments": "{}"}),
    ],
    "arguments as an object": [
        piece(index=0, id="x", function={"name": "a", "arguments": {}}),
        piece(index=1, id="y", function={"name": "b", "arguments": {"c": 1}}),
    ],
    "both in one chunk": [
        {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "a"}}, {"index": 1, "function": {"name": "b"}}]}
    ],
}


@pytest.mark.parametrize("deltas", ODD.values(), ids=ODD)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
async def test_servers_that_write_calls_in_ways_of_their_own_are_understood(deltas, finish):
    async with provider_bench(WIRES["chat"], chat(*deltas, finish=finish)) as bench:
        answer = await bench.ask()
        assert [call.name for call in answer.calls] == ["a", "b"]
        assert len({call.id for call in answer.calls}) == 2
        assert all(isinstance(json.loads(call.arguments), dict) for call in answer.calls)
        assert answer.stop == "tool_calls"


async def test_a_stream_that_ends_without_its_last_word_is_whole_when_it_said_why_it_stops():
    async with provider_bench(WIRES["chat"], chat({"content": "Done."}, finish="stop", done=False)) as bench:
        assert (await bench.ask()).text == "Done."
        assert len(bench.bodies) == 1


async def test_a_custom_tool_call_of_chat_is_free_text_and_goes_back_as_it_came():
    deltas = [
        piece(index=0, id="x", type="custom", custom={"name": "patch", "input": "+a"}),
        piece(index=0, custom={"input": "bc"}),
    ]
    async with provider_bench(WIRES["chat"], chat(*deltas)) as bench:
        answer = await bench.ask()
        (call,) = answer.calls
        assert (call.name, call.arguments) == ("patch", {"input": "+abc"})
        (item,) = answer.items
        assert item["tool_calls"] == [{"id": "x", "type": "custom", "custom": {"name": "patch", "input": "+abc"}}]


async def test_reasoning_details_are_joined_and_go_back():
    deltas = [
        {"reasoning": "Let", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Let"}]},
        {"reasoning": " me", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": " me"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s1", "text": None}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "abc"}]},
        {"content": "Done."},
    ]
    async with provider_bench(WIRES["openrouter"], chat(*deltas, finish="stop")) as bench:
        events, answer = await bench.events()
        assert answer.thinking == "Let me"
        assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["Let", " me"]
        assert answer.items[0]["reasoning_details"] == [
            {"type": "reasoning.text", "index": 0, "text": "Let me", "signature": "s1"},
            {"type": "reasoning.encrypted", "index": 1, "data": "abc"},
        ]
        await bench.ask(user("Hi"), answer, user("More"))
        assert bench.bodies[1]["messages"][1] == answer.items[0]


async def test_thinking_that_was_hidden_and_citations_go_back():
    blocks = [
        ({"type": "redacted_thinking", "data": "hidden"}, []),
        ({"type": "text", "text": ""}, []),
        (
            {"type": "text", "text": "", "citations": None},
            [{"type": "text_delta", "text": "As said."}, {"type": "citations_delta", "citation": {"cited_text": "x"}}],
        ),
    ]
    events = [{"type": "message_start", "message": {"usage": {"input_tokens": 1}}}]
    for index, (begin, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    async with provider_bench(WIRES["anthropic"], Reply(events=sse(*events, named=True))) as bench:
        answer = await bench.ask()
        assert answer.items == (
            {"type": "redacted_thinking", "data": "hidden"},
            {"type": "text", "text": "As said.", "citations": [{"cited_text": "x"}]},
        )


async def test_usage_says_the_same_for_every_api():
    expected = Usage(input=100, output=20, cached=60, cache_written=30, reasoning=5, cost=0.000_138)
    prices = {"fake-1": {"input": 1, "output": 4, "cached": 0.1, "cache_written": 1.4}}
    chat_said = chat_events(
        Said(text="Hi."),
        prompt_tokens_details={"cached_tokens": 60, "cache_write_tokens": 30},
        completion_tokens_details={"reasoning_tokens": 5},
    )
    responses_usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    anthropic_said = anthropic_events(
        Said(text="Hi."),
        input_tokens=10,
        cache_read_input_tokens=60,
        cache_creation_input_tokens=30,
        output_tokens_details={"thinking_tokens": 5},
    )
    replies = {
        "chat": chat_said,
        "responses": responses_events(Said(text="Hi."), usage=responses_usage),
        "anthropic": anthropic_said,
    }
    for name, events in replies.items():
        async with provider_bench(WIRES[name], Reply(events=events), prices=prices) as bench:
            usage = (await bench.ask()).usage
            assert usage.cost == pytest.approx(expected.cost)
            assert msgspec.structs.replace(usage, cost=expected.cost) == expected


async def test_a_service_that_says_its_cost_is_believed():
    events = chat_events(Said(text="Hi."), cost=0.25)
    async with provider_bench(
        WIRES["openrouter"], Reply(events=events), prices={"fake-1": {"input": 1, "output": 1}}
    ) as b:
        assert (await b.ask()).usage.cost == 0.25


def test_a_price_is_found_by_name_with_and_without_a_date_and_never_guessed():
    own = {"mine": Price(input=1, output=2)}
    assert price_of(["mine"], own) == own["mine"]
    assert price_of(["other", "mine-20260101"], own) == own["mine"]
    assert price_of(["gpt-5-mini-2025-08-07"], {}) == price_of(["gpt-5-mini"], {})
    assert price_of(["gpt-5-mini"], {"gpt-5-mini": own["mine"]}) == own["mine"]
    assert price_of(["gpt-5.6-sol"], {}) is None
    assert with_cost(Usage(input=5), None).cost is None
    assert with_cost(Usage(input=1_000_000, cached=500_000), own["mine"]).cost == 1
    assert tokens_at({"a": {"b": 3}}, "a", "b") == 3
    assert tokens_at({"a": "x"}, "a", "b") == tokens_at(None, "a") == tokens_at({"a": "x"}, "a") == 0


@each_wire
async def test_usage_of_any_shape_breaks_nothing(wire: Wire):
    text = b"".join(wire.reply(Said(text="Hi.")).events)
    for odd in (b"null", b'{"prompt_tokens": "many", "input_tokens": null, "output_tokens": []}'):
        cut = text
        for name in (b'"prompt_tokens": 100', b'"input_tokens": 100'):
            cut = cut.replace(name, b'"odd": ' + odd)
        async with provider_bench(wire, Reply(events=(cut,))) as bench:
            assert (await bench.ask()).usage.input == 0


async def test_half_a_character_does_not_make_a_conversation_unusable():
    for wire in WIRES.values():
        async with provider_bench(wire) as bench:
            assert (await bench.ask(user("broken \ud800 text"))).text == "Hi."
            assert "broken ? text" in json.dumps(bench.bodies[0])


EVENT_STREAM = (
    b": a comment\n\ndata: one\n\nevent: x\r\ndata: two\r\n\r\n"
    b"data:three\ndata: more\n\nid: 5\n\ndata: \xc3\xbc\r\rdata: end\n\n"
)
WHOLE = [b"one", b"two", b"three\nmore", "ü".encode(), b"end"]


@given(st.lists(st.integers(0, len(EVENT_STREAM)), max_size=8))
@settings(deadline=None)
def test_a_stream_can_be_cut_anywhere(cuts):
    stream = EventStream()
    edges = [0, *sorted(cuts), len(EVENT_STREAM)]
    found = [data for at, to in itertools.pairwise(edges) for data in stream.feed(EVENT_STREAM[at:to])]
    assert [*found, *stream.end()] == WHOLE


def test_an_event_without_an_end_counts_only_when_its_line_is_whole():
    for rest, found in ((b"data: [DONE]", [b"[DONE]"]), (b"data: {}\n", [b"{}"]), (b'data: {"a', []), (b"", [])):
        stream = EventStream()
        assert stream.feed(rest) == []
        assert stream.end() == found
