"""Whatever a service does instead of answering: it is asked again, told about, and nothing is lost or said twice."""

from __future__ import annotations

import asyncio
import email.utils
import json
import socket
import time
import traceback
from contextlib import aclosing
from dataclasses import replace
from typing import get_args

import pytest

from fake_model_server import Reply, Said, fake_model_server, responses_events
from provider_bench import LIST_FILES, SECRET, WIRES, Wire, bundled, provider_bench, told, user
from support import PATIENCE
from toolyard.agents.providers.connection import REST_SECONDS
from toolyard.agents.providers.faults import wait_of
from toolyard.agents.providers.retries import LONGEST_ASKED, wait
from toolyard.core.model import Answered, ModelEvent, ModelRequest, ProviderFault, TextDelta, Waiting
from toolyard.errors import ProviderError

pytestmark = pytest.mark.anyio
GOOD = Said(text="Here you are.", calls=(("c1", "list_files", '{"path": "."}'),))
each_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
SOON = {"retry-after": "0.01"}
STATUSES = (408, 409, 425, 429, 500, 502, 503, 504, 529)


def broken(wire: Wire, how: str) -> Reply:
    """A good answer, as far as it came."""
    good = wire.reply(GOOD)
    some = good.events[:4]
    match how:
        case "closed in the middle":
            return replace(good, events=some, end="cut")
        case "reset in the middle":
            return replace(good, events=some, end="reset")
        case "ended in the middle":
            return replace(good, events=some)
        case "ended within an event":
            return replace(good, events=(*some, good.events[4][:20]))
        case "malformed":
            return replace(good, events=(*some, b'data: {"choices": [{"del\n\n', *good.events[4:]))
        case "of a wrong shape":
            return replace(good, events=(*some, b'data: {"type": 5, "choices": "none"}\n\n', *good.events[4:]))
        case "no UTF-8":
            return replace(good, events=(*some, b'data: {"type": "\xff\xfe", "model": "\xff"}\n\n', *good.events[4:]))
        case "closed at once":
            return replace(good, events=(), end="cut")
        case "nothing at all":
            return replace(good, events=())
        case "an error in the stream":
            error = {"type": "error", "error": {"type": "overloaded_error", "code": 529, "message": "Overloaded"}}
            return replace(good, events=(*some, b"data: " + json.dumps(error).encode() + b"\n\n"))
    raise AssertionError(how)


BREAKS = (
    *("closed in the middle", "reset in the middle", "ended in the middle", "ended within an event", "malformed"),
    *("of a wrong shape", "no UTF-8", "closed at once", "nothing at all", "an error in the stream"),
)


@each_wire
@pytest.mark.parametrize("how", BREAKS)
async def test_a_broken_answer_is_asked_for_again(wire: Wire, how):
    async with provider_bench(wire, broken(wire, how), wire.reply(GOOD)) as bench:
        events, answer = await bench.events(user("Hello"), tools=[LIST_FILES])
        assert_whole(events, answer)
        assert len(bench.bodies) == 2
        assert bench.bodies[0] == bench.bodies[1]


@each_wire
@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_that_passes_is_waited_for(wire: Wire, status):
    async with provider_bench(wire, Reply(status=status, headers=SOON), wire.reply(GOOD)) as bench:
        events, answer = await bench.events(user("Hello"), tools=[LIST_FILES])
        assert_whole(events, answer)
        waiting = next(event for event in events if isinstance(event, Waiting))
        assert str(status) in waiting.reason
        assert waiting.seconds >= 0.01
        assert len(bench.bodies) == 2


def assert_whole(events, answer) -> None:
    """One wait, and what was told after it is the answer, once."""
    (at,) = [number for number, event in enumerate(events) if isinstance(event, Waiting)]
    assert events[at].attempt == 1
    assert "".join(event.text for event in events[at:] if isinstance(event, TextDelta)) == GOOD.text
    assert answer.text == GOOD.text
    assert [call.id for call in answer.calls] == ["c1"]


@each_wire
async def test_silence_is_not_waited_out(wire: Wire):
    silent = Reply(silent=True)
    half = replace(wire.reply(GOOD), events=wire.reply(GOOD).events[:4], end="open")
    limits = {"response_timeout_seconds": 0.5, "idle_timeout_seconds": 0.5}
    async with provider_bench(wire, silent, half, wire.reply(GOOD), **limits) as bench:
        events, answer = await bench.events(user("Hello"), tools=[LIST_FILES])
        # On a busy machine the good answer may be late as well.
        assert [event.attempt for event in events if isinstance(event, Waiting)][:2] == [1, 2]
        assert answer.text == GOOD.text


@each_wire
async def test_a_stream_that_is_left_open_after_the_answer_holds_nobody_up(wire: Wire):
    async with provider_bench(wire, replace(wire.reply(GOOD), end="open")) as bench:
        async with asyncio.timeout(PATIENCE):
            assert (await bench.ask(tools=[LIST_FILES])).text == GOOD.text
            await bench.server.gone.wait()


@pytest.mark.parametrize("end", ["open", "cut", "reset"])
@pytest.mark.parametrize("name", ["chat", "anthropic"])
async def test_an_answer_that_said_why_it_stops_is_not_asked_for_again(name, end, monkeypatch):
    monkeypatch.setitem(REST_SECONDS, "whole", 0.1)
    good = WIRES[name].reply(GOOD)
    rest = {"chat": 2, "anthropic": 1}[name]  # the usage and the last word of one, the last word of the other
    async with provider_bench(WIRES[name], replace(good, events=good.events[:-rest], end=end)) as bench:
        events, answer = await bench.events(tools=[LIST_FILES])
        assert (answer.text, len(answer.calls)) == (GOOD.text, 1)
        assert not [event for event in events if isinstance(event, Waiting)]


@each_wire
async def test_who_takes_the_events_has_all_the_time_they_want(wire: Wire):
    async with provider_bench(wire, wire.reply(GOOD), max_retries=0, idle_timeout_seconds=0.5) as bench:
        taken = []
        async for event in bench.provider.stream(bench.request(tools=[LIST_FILES])):
            if not taken:
                await asyncio.sleep(0.6)  # longer than the service may be silent
            taken.append(event)
        assert isinstance(taken[-1], Answered)


@each_wire
async def test_slow_pieces_of_any_size_make_the_same_answer(wire: Wire):
    whole = b"".join(wire.reply(Said(text="Grüße, 漢字 🙂", calls=GOOD.calls)).events)
    for size in (1, 7, 1000):
        pieces = tuple(whole[at : at + size] for at in range(0, len(whole), size))
        async with provider_bench(wire, Reply(events=pieces)) as bench:
            answer = await bench.ask(tools=[LIST_FILES])
            assert (answer.text, len(answer.calls)) == ("Grüße, 漢字 🙂", 1)


@each_wire
async def test_it_gives_up_after_its_number_of_attempts(wire: Wire):
    async with provider_bench(wire, Reply(status=529, headers=SOON), max_retries=2) as bench:
        with pytest.raises(ProviderError) as raised:
            await bench.ask()
        assert (raised.value.fault, raised.value.status) == ("overloaded", 529)
        assert len(bench.bodies) == 3


async def failed(provider, request) -> tuple[list[ModelEvent], ProviderError]:
    """What was told before there was no answer, and why there was none."""
    events: list[ModelEvent] = []
    try:
        async for event in provider.stream(request):
            events.append(event)
    except ProviderError as error:
        return events, error
    raise AssertionError("there was an answer")


async def test_a_service_that_wants_to_be_left_alone_for_an_hour_is():
    wire = WIRES["anthropic"]
    async with provider_bench(wire, Reply(status=429, headers={"retry-after": "3600"})) as bench:
        with pytest.raises(ProviderError) as raised:
            await bench.ask()
        assert raised.value.fault == "rate_limit"
        assert len(bench.bodies) == 1


async def test_a_server_that_is_not_there_is_a_fault_of_the_network():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = {"base_url": f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "max_retries": 1}
        provider = bundled("openai_compatible")
        events, error = await failed(provider, ModelRequest(model="m", messages=[user("Hi")], config=config))
        assert error.fault == "network"
        assert error.hint
        assert [type(event) for event in events] == [Waiting]
        await provider.aclose()


FAULTS = [
    (401, {"error": {"message": "Incorrect API key provided"}}, "setup"),
    (402, {"error": {"message": "no credit"}}, "setup"),
    (403, {"error": {"type": "permission_error", "message": "no"}}, "setup"),
    (404, {"error": {"code": "model_not_found", "message": "no such model"}}, "setup"),
    (404, "<html><body>not here</body></html>", "setup"),
    (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "setup"),
    (400, {"error": {"type": "invalid_request_error", "message": "tools.0: bad"}}, "request"),
    (422, {"detail": [{"msg": "extra"}]}, "request"),
    (400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}}, "too_long"),
    (400, {"error": {"code": "context_length_exceeded", "message": "too much"}}, "too_long"),
    (400, {"error": {"type": "exceed_context_size_error", "message": "the request is larger"}}, "too_long"),
    (413, {"error": {"type": "request_too_large", "message": "x"}}, "too_long"),
    (429, {"error": {"type": "rate_limit_error", "message": "slow down"}}, "rate_limit"),
    (500, {"error": {"type": "overloaded_error", "message": "busy"}}, "overloaded"),
    (529, "", "overloaded"),
    (500, {"error": {"message": "oops"}}, "server"),
    (504, "", "network"),
    (418, "", "request"),
    (301, "", "request"),
]


@pytest.mark.parametrize(("status", "body", "fault"), FAULTS)
async def test_who_is_at_fault_is_told_with_a_hint(status, body, fault):
    text = body if isinstance(body, str) else json.dumps(body)
    reply = Reply(status=status, events=(text.encode(),) if text else (), content_type="application/json")
    async with provider_bench(WIRES["chat"], reply, max_retries=0) as bench:
        with pytest.raises(ProviderError) as raised:
            await bench.ask()
        assert raised.value.fault == fault
        assert raised.value.fault in get_args(ProviderFault)
        assert raised.value.status == status
        assert raised.value.hint
        assert "<html>" not in str(raised.value)
        assert "\n" not in str(raised.value)


@each_wire
async def test_what_cannot_pass_is_not_tried_again(wire: Wire):
    async with provider_bench(wire, Reply(status=401)) as bench:
        with pytest.raises(ProviderError):
            await bench.ask()
        assert len(bench.bodies) == 1


@each_wire
@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_key_is_never_in_an_error(wire: Wire, status):
    body = json.dumps({"error": {"message": f"bad key {SECRET} in 'Bearer {SECRET}'"}}).encode()
    reply = Reply(status=status, events=(body,), headers=SOON)
    async with provider_bench(wire, reply, max_retries=1) as bench:
        events, error = await failed(bench.provider, bench.request())
        shown = "".join(traceback.format_exception(error))
        assert SECRET not in shown + repr(events) + error.hint
        assert "bad key" in str(error)


async def test_a_key_is_not_taken_elsewhere_by_a_redirect():
    async with fake_model_server(WIRES["chat"].reply(GOOD)) as elsewhere:
        moved = Reply(status=307, headers={"location": f"{elsewhere.origin}/v1/chat/completions"})
        async with provider_bench(WIRES["chat"], moved) as bench:
            with pytest.raises(ProviderError):
                await bench.ask()
        assert elsewhere.received == []


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai_compatible", "OPENAI_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
    ],
)
async def test_a_missing_key_is_said_before_anything_is_sent(provider, variable, monkeypatch):
    for config in ({}, {"api_key": ""}, {"api_key": None}):
        with pytest.raises(ProviderError) as raised:
            await told(bundled(provider), ModelRequest(model="m", messages=[user("Hi")], config=config))
        assert raised.value.fault == "setup"
        assert variable in raised.value.hint
    monkeypatch.setenv(variable, SECRET)
    wire = next(wire for wire in WIRES.values() if wire.provider == provider)
    async with provider_bench(wire) as bench:
        del bench.config["api_key"]
        await bench.ask()
        headers = bench.server.received[0].headers
        assert SECRET in (headers.get("authorization", "") + headers.get("x-api-key", ""))


async def test_a_server_on_this_machine_needs_no_key():
    async with provider_bench(WIRES["chat"]) as bench:
        del bench.config["api_key"]
        assert (await bench.ask()).text == "Hi."
        assert "authorization" not in bench.server.received[0].headers


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": "nowhere"},
        {"base_url": "ftp://example.org"},
        {"base_url": 5},
        {"api_key": [SECRET]},
        {"max_retries": -1},
        {"idle_timeout_seconds": "long"},
        {"prices": {"m": {"input": "much"}}},
        {"api": "telepathy"},
        {"api_key": f"{SECRET}ü"},
        {"api_key": f"{SECRET}\nx-evil: 1"},
        {"headers": {"x": "a\r\nx-evil: 1"}},
    ],
    ids=str,
)
async def test_a_wrong_setting_is_said_without_its_value(config):
    request = ModelRequest(model="m", messages=[user("Hi")], config={"api_key": SECRET, **config})
    events, error = await failed(bundled("openai_compatible"), request)
    assert events == []
    assert error.fault == "setup"
    assert error.hint
    assert SECRET not in str(error)


@each_wire
async def test_leaving_early_ends_the_request(wire: Wire):
    half = replace(wire.reply(GOOD), events=wire.reply(GOOD).events[:5], end="open")
    async with provider_bench(wire, half) as bench:
        async with aclosing(bench.provider.stream(bench.request())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        async with asyncio.timeout(PATIENCE):
            await bench.server.gone.wait()
        assert len(bench.bodies) == 1


@each_wire
async def test_cancelling_ends_the_request(wire: Wire):
    async with provider_bench(wire, Reply(silent=True)) as bench:
        task = asyncio.create_task(bench.ask())
        async with asyncio.timeout(PATIENCE):
            while not bench.server.received:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await bench.server.gone.wait()


@each_wire
async def test_a_server_that_does_not_stream_is_understood(wire: Wire):
    whole = {
        "openai": {
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": "Whole."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        },
        "anthropic": {
            "type": "message",
            "content": [{"type": "text", "text": "Whole."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
        "responses": {
            "object": "response",
            "status": "completed",
            "error": None,
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "Whole."}]}],
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
    }[wire.name]
    reply = Reply(events=(json.dumps(whole).encode(),), content_type="application/json")
    async with provider_bench(wire, reply, max_retries=0) as bench:
        answer = await bench.ask()
        assert (answer.text, answer.usage.input, answer.usage.output) == ("Whole.", 3, 2)


@each_wire
@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limit"),
        ({"code": 429, "message": "slow down"}, "rate_limit"),
        ({"type": "overloaded_error", "message": "busy"}, "overloaded"),
        ({"code": "server_error", "message": "oops"}, "server"),
        ({"code": "insufficient_quota", "message": "pay"}, "setup"),
        ({"code": 400, "type": "invalid_request_error", "message": "maximum context length is 5"}, "too_long"),
        ("just words", "server"),
    ],
    ids=str,
)
async def test_an_error_instead_of_an_answer_says_whose_fault_it_is(wire: Wire, error, fault):
    streamed = Reply(events=(b"data: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n",))
    whole = Reply(events=(json.dumps({"type": "error", "error": error}).encode(),), content_type="application/json")
    for reply in (streamed, whole):
        async with provider_bench(wire, reply, max_retries=0) as bench:
            _, failure = await failed(bench.provider, bench.request())
            assert failure.fault == fault


async def test_a_response_that_failed_says_why():
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    events = responses_events(Said(text="Not", stop="failed"), status="failed", error=error)
    async with provider_bench(WIRES["responses"], Reply(events=events), max_retries=0) as bench:
        _, failure = await failed(bench.provider, bench.request())
        assert (failure.fault, "slow down" in str(failure)) == ("rate_limit", True)


@each_wire
async def test_a_page_for_people_is_a_wrong_address(wire: Wire):
    async with provider_bench(wire, Reply(events=(b"<html>Welcome</html>",), content_type="text/html")) as bench:
        _, failure = await failed(bench.provider, bench.request())
        assert failure.fault == "setup"
        assert "base_url" in failure.hint


@pytest.mark.parametrize("proxy", ["http://[::1", "socks5://u:proxy-password@127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_said_without_its_password(proxy, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", proxy)
    async with provider_bench(WIRES["chat"]) as bench:
        _, failure = await failed(bench.provider, bench.request())
        assert failure.fault == "setup"
        assert "proxy-password" not in "".join(traceback.format_exception(failure))


async def test_a_proxy_of_the_environment_is_used(monkeypatch):
    async with fake_model_server(WIRES["chat"].reply(GOOD)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.origin)
        config = {"api_key": SECRET, "base_url": "http://models.example/v1"}
        provider = bundled("openai_compatible")
        _, answer = await told(provider, ModelRequest(model="m", messages=[user("Hi")], config=config))
        assert answer.text == GOOD.text
        assert proxy.received[0].path == "http://models.example/v1/chat/completions"
        await provider.aclose()


async def test_blanks_around_a_key_are_no_part_of_it():
    async with provider_bench(WIRES["chat"]) as bench:
        bench.config["api_key"] = f" {SECRET}\n"
        await bench.ask()
        assert bench.server.received[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_connections_are_used_again():
    for wire in WIRES.values():
        async with provider_bench(wire) as bench:
            for _ in range(3):
                await bench.ask()
            assert bench.server.connections == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
async def test_what_a_service_asks_for_is_read(headers, seconds):
    assert wait_of(headers) == seconds


async def test_a_time_of_the_clock_is_read():
    at = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < (wait_of({"retry-after": at}) or 0) <= 101


async def test_waits_grow_and_are_spread_and_never_shorter_than_asked():
    for number in range(1, 40):
        waits = {wait(number, None) for _ in range(20)}
        assert len(waits) > 1
        assert max(waits) <= 40
    assert all(wait(1, 5.0) >= 5.0 for _ in range(50))
    assert LONGEST_ASKED > 60
