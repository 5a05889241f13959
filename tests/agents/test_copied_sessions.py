"""Forks, exports and imports: the copy is what the session was, and nothing of it means something else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from atif import Trajectory

from conversations import chance_events
from toolyard.agents.sessions.claim import LOCKS, SessionClaim, SessionTaken
from toolyard.agents.sessions.copying import CopyFault, export_lines, fork_session, import_lines
from toolyard.agents.sessions.deletion import delete_session
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    PromptGiven,
    Rewound,
    TurnEnded,
    TurnStarted,
)
from toolyard.agents.sessions.history import effective, read_history
from toolyard.agents.sessions.store import SessionStore
from toolyard.agents.sessions.trajectory import as_trajectory
from toolyard.core.content import ImagePart
from toolyard.core.conversation import AssistantMessage, CallAnswer, Usage, message_of
from toolyard.core.tool import ToolCall

pytestmark = pytest.mark.anyio
PICTURE = ImagePart(data=b"p", media_type="image/png")


@pytest.fixture
def store(tmp_path: Path):
    store = SessionStore(tmp_path / "sessions.sqlite")
    yield store
    store.close()


def exported(store: SessionStore, id: str) -> list[str]:
    return [json.dumps(line) for line in export_lines(store, store.session(id))]


@pytest.mark.parametrize("seed", range(8))
async def test_an_import_is_what_was_exported(store: SessionStore, tmp_path: Path, seed: int) -> None:
    id = (await store.create("default", workspace="/w", title="A talk")).id
    await store.append(id, chance_events(random.Random(seed)), state="waiting")
    await store.update(id, metadata={"plugins": ["a"]})
    elsewhere = SessionStore(tmp_path / "elsewhere" / "sessions.sqlite")
    assert (await import_lines(elsewhere, exported(store, id))).id == id
    assert exported(elsewhere, id) == exported(store, id)
    elsewhere.close()


async def test_an_import_whose_id_is_taken_differs_by_its_id_alone(store: SessionStore) -> None:
    id = (await store.create("default")).id
    await store.append(id, chance_events(random.Random(1)))
    again = (await import_lines(store, exported(store, id))).id
    assert again != id
    assert exported(store, again) == [line.replace(id, again) for line in exported(store, id)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [], "empty"),
        (lambda lines: lines[1:], "first line"),
        (lambda lines: [lines[0], *lines[2:]], "line 2 is event 2, and 1 should be here"),
        (lambda lines: [*lines[:2], '{"type": "nonsense"}'], "line 3 is no event"),
        (lambda lines: [lines[0].replace('"v": 1', '"v": 99'), *lines[1:]], "newer version"),
        (lambda lines: [json.dumps({**json.loads(lines[0]), "id": "../x"}), *lines[1:]], "id"),
    ],
)
async def test_a_file_that_is_no_export_leaves_nothing(store: SessionStore, change, reason: str) -> None:
    id = (await store.create("default")).id
    await store.append(id, [PromptGiven(message=message_of("hello")), TurnStarted(turn=1)])
    lines = change(exported(store, id))
    with pytest.raises(CopyFault, match=reason):
        await import_lines(store, lines)
    assert [row.id for row in store.sessions()] == [id]


@pytest.mark.parametrize("seed", range(20))
async def test_a_fork_goes_on_as_its_session_would(store: SessionStore, seed: int) -> None:
    id = (await store.create("default")).id
    await store.append(id, chance_events(random.Random(seed)))
    fork = await fork_session(store, id)
    of_session, of_fork = read_history(store.events(id)), read_history(store.events(fork.id))
    assert of_fork.messages == of_session.messages
    assert [one.time for one in of_fork.events] == [one.time for one in effective(store.events(id))]


async def test_a_fork_of_a_session_that_went_back_shortens_what_its_session_shortens(store: SessionStore) -> None:
    id = (await store.create("default")).id
    given = [PromptGiven(message=message_of(word)) for word in ("one", "two", "three", "four")]
    went_back = [given[0], given[1], Rewound(to=2), given[2], ContextShortened(what="summary", upto=4, summary="S")]
    await store.append(id, [*went_back, given[3]])
    fork = await fork_session(store, id)
    messages = read_history(store.events(fork.id)).messages
    assert messages == read_history(store.events(id)).messages
    assert messages[-1] == message_of("four")


@pytest.mark.parametrize("at", [0, -1, 5])
async def test_there_is_no_fork_at_what_never_was(store: SessionStore, at: int) -> None:
    id = (await store.create("default")).id
    await store.append(id, [TurnStarted(turn=1), TurnEnded(turn=1, outcome="answered")])
    with pytest.raises(CopyFault, match=f"no event {at}; the last is 2"):
        await fork_session(store, id, at)
    assert len(store.sessions()) == 1


async def test_a_session_that_somebody_uses_is_not_deleted(store: SessionStore, tmp_path: Path) -> None:
    id = (await store.create("default")).id
    claim = SessionClaim(tmp_path / LOCKS, id)
    with pytest.raises(SessionTaken):
        await delete_session(store, id)
    claim.release()
    await delete_session(store, id)
    assert not store.has(id)
    assert not list((tmp_path / LOCKS).iterdir())


@pytest.mark.parametrize("seed", range(20))
async def test_a_trajectory_is_what_the_package_of_its_format_takes(store: SessionStore, seed: int) -> None:
    id = (await store.create("default")).id
    await store.append(id, chance_events(random.Random(seed)))
    made = as_trajectory(store.session(id), store.events(id))
    read = Trajectory.model_validate(json.loads(json.dumps(made)))
    results = [one for step in read.steps if step.observation for one in step.observation.results]
    assert len(results) == sum(isinstance(one.event, CallAnswered) for one in effective(store.events(id)))


async def test_what_is_said_while_a_call_runs_takes_its_result_from_no_answer(store: SessionStore) -> None:
    id, call = (await store.create("default")).id, ToolCall(id="c", name="bash", arguments="not JSON")
    answer = AssistantMessage(calls=(call,), thinking="hm", usage=Usage(input=3, output=1, cost=0.1), model="m")
    said = PromptGiven(message=message_of("wait"), during_turn=True)
    result = CallAnswered(answer=CallAnswer(call_id="c", name="bash", text="x", attachments=(PICTURE,)))
    await store.append(id, [AnswerReceived(message=answer), CallBegan(call=call), said, result])
    read = Trajectory.model_validate(as_trajectory(store.session(id), store.events(id)))
    assert [(step.source, bool(step.observation)) for step in read.steps] == [("agent", True), ("user", False)]
    assert read.final_metrics
    assert read.final_metrics.total_cost_usd == 0.1
