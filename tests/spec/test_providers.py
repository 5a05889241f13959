"""T01, T02, T04 and T14: models are asked as the configuration says, by agents of an application."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fake_model_server import FakeModelServer, Reply, Said, anthropic_events, fake_model_server
from provider_bench import WIRES, Wire, own_connections
from sdk_types import assert_official
from support import PATIENCE, need_backend
from toolyard.agents.providers import retries
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, Stored, TurnEnded
from toolyard.core.conversation import AssistantMessage
from toolyard.core.model import TextDelta, ThinkingDelta, Waiting
from yard import Yard

pytestmark = pytest.mark.anyio
FOLDERS = {"openai_compatible": "openai-compatible", "anthropic": "anthropic", "openrouter": "openrouter"}
LOOK = Said(text="I look.", thinking="Where?", calls=(("c1", "bash", '{"command": "ls"}'),))
BOTH = Said(calls=(("c1", "bash", '{"command": "ls"}'), ("c2", "bash", '{"command": "cat a.txt"}')))
each_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No wait between attempts is a real one, and there is a workspace with a file."""
    own_connections(monkeypatch)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello\n")
    monkeypatch.chdir(tmp_path / "work")


def settings(wire: Wire, server: FakeModelServer, **more: Any) -> dict[str, Any]:
    """A configuration as the pages have it: an agent that names an entry of `providers`."""
    entry = {"provider": wire.provider, "base_url": f"{server.origin}{wire.base}", "api_key": "sk-1", **wire.config}
    options = {"max_tokens": 50}
    return {
        "providers": {"mine": {**entry, "model": "fake-1", "options": options, **more}},
        "agents": {"default": {"provider": "mine"}},
        "permissions": {"preset": "workspace"},
    }


async def turn(session: AgentSession, prompt: str = "Look around") -> list[Any]:
    """All that happens in a turn, which must end by an answer."""
    async with asyncio.timeout(PATIENCE):
        updates = [update async for update in session.send(prompt)]
    events = [update.event if isinstance(update, Stored) else update for update in updates]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].outcome == "answered", events[-1]
    return events


def plugins(wire: Wire) -> list[str]:
    return ["shell:session", f"path:${{env:BUILTIN_PLUGINS}}/{FOLDERS[wire.provider]}"]


@each_wire
async def test_T01_a_configuration_makes_requests(yard: Yard, wire: Wire):
    async with fake_model_server(wire.reply(Said(text="Here."))) as server:
        async with yard.app(*plugins(wire), **settings(wire, server)) as app:
            assert app.get_config_errors() == []
            await turn(await app.open_session())
        (received,) = server.received
    assert received.body["model"] == "fake-1"
    assert "sk-1" in received.headers.get("authorization", received.headers.get("x-api-key"))
    names = {"responses": "max_output_tokens"}
    assert received.body[names.get(wire.name, "max_tokens")] == 50
    body = {key: value for key, value in received.body.items() if key != "usage"}  # OpenRouter's own
    assert_official(wire.name, body)


async def test_T01_openrouter_is_asked_what_it_cost_unless_that_is_off(yard: Yard):
    wire = WIRES["openrouter"]
    for off in ([], ["openrouter_usage"]):
        async with fake_model_server(wire.reply(Said(text="Here."))) as server:
            async with yard.app(*plugins(wire), **settings(wire, server), disabled_plugins=off) as app:
                await turn(await app.open_session())
            assert ("usage" in server.received[0].body) == (not off)


async def test_T01_the_usage_of_openrouter_is_not_asked_of_others(yard: Yard):
    wire = WIRES["chat"]
    async with fake_model_server(wire.reply(Said(text="Here."))) as server:
        both = [*plugins(wire), *plugins(WIRES["openrouter"])[1:]]
        async with yard.app(*both, **settings(wire, server)) as app:
            await turn(await app.open_session())
        assert "usage" not in server.received[0].body


@each_wire
async def test_T02_streaming_calls_and_thinking_that_goes_back_unchanged(yard: Yard, wire: Wire):
    prices = {"fake-1": {"input": 1, "output": 10}}
    async with fake_model_server(wire.reply(LOOK), wire.reply(Said(text="There is a.txt."))) as server:
        async with yard.app(*plugins(wire), **settings(wire, server, prices=prices)) as app:
            events = await turn(await app.open_session())
        first, second = (received.body for received in server.received)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 2
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Where?"
    (result,) = [event.answer for event in events if isinstance(event, CallAnswered)]
    assert result.text.split() == ["a.txt"]
    answers = [event.message for event in events if isinstance(event, AnswerReceived)]
    assert all(json.dumps(item) in json.dumps(second) for item in answers[0].items)
    assert events[-1].usage.cost == pytest.approx(2 * (100 * 1 + 20 * 10) / 1e6)
    key = "input" if wire.name == "responses" else "messages"
    assert len(second[key]) > len(first[key])


@each_wire
async def test_T02_parallel_calls_are_answered_each_in_its_place(yard: Yard, wire: Wire):
    async with fake_model_server(wire.reply(BOTH), wire.reply(Said(text="Done."))) as server:
        async with yard.app(*plugins(wire), **settings(wire, server)) as app:
            events = await turn(await app.open_session())
        assert_official(wire.name, {key: value for key, value in server.received[1].body.items() if key != "usage"})
    given = [event.answer for event in events if isinstance(event, CallAnswered)]
    assert {answer.call_id: answer.text.split() for answer in given} == {"c1": ["a.txt"], "c2": ["hello"]}


async def test_T02_the_native_bash_tool_runs_in_the_live_session(yard: Yard):
    wire = WIRES["anthropic"]
    said = [
        Said(calls=((f"t{at}", "bash", json.dumps({"command": line})),)) for at, line in enumerate(("X=7", "echo $X"))
    ]
    replies = [*(Reply(events=anthropic_events(each)) for each in said), wire.reply(Said(text="7"))]
    async with fake_model_server(*replies) as server:
        async with yard.app(*plugins(wire), **settings(wire, server)) as app:
            events = await turn(await app.open_session())
        assert {"type": "bash_20250124", "name": "bash"} in [
            {key: value for key, value in tool.items() if key != "cache_control"}
            for tool in server.received[0].body["tools"]
        ]
    assert [event.answer.text.strip() for event in events if isinstance(event, CallAnswered)][1] == "7"


@each_wire
async def test_T04_trouble_on_the_way_is_shown_and_passes(yard: Yard, wire: Wire):
    good = wire.reply(LOOK)
    trouble = [
        Reply(status=429, headers={"retry-after": "0.01"}),
        Reply(status=529),
        Reply(events=good.events[:4], end="cut"),
    ]
    async with fake_model_server(*trouble, good, wire.reply(Said(text="There is a.txt."))) as server:
        async with yard.app(*plugins(wire), **settings(wire, server)) as app:
            events = await turn(await app.open_session())
        assert len(server.received) == 5
    waits = [event for event in events if isinstance(event, Waiting)]
    assert [event.attempt for event in waits] == [1, 2, 3]
    assert all(event.reason for event in waits)
    answers = [event.message.text for event in events if isinstance(event, AnswerReceived)]
    assert answers == ["I look.", "There is a.txt."]
    assert len([event for event in events if isinstance(event, CallAnswered)]) == 1


async def test_T14_recorded_turns_are_played(yard: Yard):
    call = {"id": "c1", "name": "bash", "arguments": {"command": "cat a.txt"}}
    lines = [{"text": "I look.", "calls": [call], "stop": "tool_calls"}, {"text": "It says hello."}]
    yard.file("answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    config = {"provider": "replay", "replay": "${env:CONFIG_DIR}/answers.jsonl", "permissions": {"preset": "workspace"}}
    async with yard.app("shell:session", "path:${env:BUILTIN_PLUGINS}/replay", **config) as app:
        assert app.get_config_errors() == []
        events = await turn(await app.open_session())
    (result,) = [event.answer for event in events if isinstance(event, CallAnswered)]
    assert result.text == "hello\n"
    (last,) = [event.message for event in events if isinstance(event, AnswerReceived)][1:]
    assert isinstance(last, AssistantMessage)
    assert last.text == "It says hello."


async def test_T14_a_model_from_a_package_lists_files_with_no_account_and_no_network(yard: Yard):
    config = {"provider": "local", "permissions": {"preset": "workspace"}}
    async with yard.app("shell:session", "path:${env:BUILTIN_PLUGINS}/local", **config) as app:
        assert app.get_config_errors() == []
        events = await turn(await app.open_session(), "List the files in the current directory.")
    (result,) = [event.answer for event in events if isinstance(event, CallAnswered)]
    assert "a.txt" in result.text
    began, ended = yard.audit()
    assert (began["event"], ended["event"], ended["exit"]) == ("start", "end", 0)
    assert (began["tool"], began["reach"]) == ("bash", "work")
    assert "ls" in began["command"]
    assert began["sandbox"] == need_backend("bubblewrap", "landlock")
