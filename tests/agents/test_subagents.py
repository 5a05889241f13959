"""An agent gives work to another: own context, the same rules and budgets, cancelled and resumed with its caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scripted_provider import ENDLESS, ScriptedProvider, calls, texts_of
from toolyard import AgentApplication
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import CallAnswered, Stored, TurnEnded
from toolyard.core.conversation import AssistantMessage, Usage
from toolyard.core.model import ModelRequest, TextDelta

pytestmark = pytest.mark.anyio
SECONDS = 60
AGENTS = {"default": {"subagents": ["helper"]}, "helper": {"description": "Helps.", "model": "small"}}


def ask(*prompts: str, agent: str = "helper") -> AssistantMessage:
    return calls(*(("agent", {"agent": agent, "prompt": prompt}) for prompt in prompts))


def bash(command: str) -> AssistantMessage:
    return calls(("bash", {"command": command}))


def by_model(**steps: list[Any]) -> ScriptedProvider:
    """Answers for each agent, told apart by their models; of several conversations at once, by how far each is."""

    def answer(request: ModelRequest) -> Any:
        number = sum(isinstance(message, AssistantMessage) for message in request.messages)
        step = steps[request.model.replace("test-model", "top")][number]
        return step(request) if callable(step) else said(step)

    return ScriptedProvider(answer)


def said(step: Any) -> Any:
    return AssistantMessage(text=step, usage=Usage(input=10, output=2, cost=0.1)) if isinstance(step, str) else step


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@asynccontextmanager
async def opened(
    provider: ScriptedProvider, folder: Path, agents: dict[str, Any] = AGENTS, **rest: Any
) -> AsyncIterator[tuple[AgentApplication, AgentSession]]:
    config = {"provider": "scripted", "plugins": ["shell:session"], "agents": agents, **rest}
    async with AgentApplication(config, folder / "sessions", tools=[provider]) as app, asyncio.timeout(SECONDS):
        yield app, await app.open_session()


async def turn(session: AgentSession, prompt: str | None = "go") -> TurnEnded:
    updates = [update async for update in session.send(prompt)]
    ended = updates[-1]
    assert isinstance(ended, Stored)
    assert isinstance(ended.event, TurnEnded)
    return ended.event


async def test_it_has_a_context_and_a_shell_of_its_own_and_its_answer_is_the_result(folder: Path) -> None:
    provider = by_model(top=[ask("Count."), "It said so."], small=[bash("x=1; echo $((6 * 7))"), "It is 42."])
    async with opened(provider, folder) as (app, session):
        assert (await turn(session, "secret of the caller")).outcome == "answered"
        child = app.session_store().sessions(subagents=True)
        assert [row.parent for row in child if row.id != session.id] == [session.id]
        assert [row.id for row in app.session_store().sessions()] == [session.id]
    small = [request for request in provider.requests if request.model == "small"]
    assert texts_of(small[0]) == ["user: Count."]
    assert texts_of(provider.requests[-1])[-1] == "tool: It is 42."
    described = provider.requests[0].tools
    assert "- helper: Helps." in next(spec.description for spec in described if spec.name == "agent")
    assert "agent" not in [spec.name for spec in small[0].tools]


async def test_those_who_listen_to_the_caller_hear_the_subagent_with_the_call_it_works_on(folder: Path) -> None:
    provider = by_model(top=[ask("Go."), "Done."], small=["Found."])
    async with opened(provider, folder) as (_, session):
        updates = [update async for update in session.send("go")]
    told = [update for update in updates if isinstance(update, SubagentTold)]
    assert {(one.call_id, one.agent) for one in told} == {("call_0", "helper")}
    assert any(isinstance(one.update, TextDelta) for one in told)
    assert isinstance(told[-1].update, Stored)


async def test_several_work_side_by_side(folder: Path) -> None:
    meeting = asyncio.Barrier(3)

    async def meet() -> None:
        await meeting.wait()

    class Meeting(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            if request.model == "small":
                await meet()
            async for event in super().stream(request):
                yield event

    made = by_model(top=[ask("a", "b", "c"), "Done."], small=["Here."])
    async with opened(Meeting(*made.steps), folder) as (_, session):
        assert (await turn(session)).outcome == "answered"


@pytest.mark.parametrize("budget", [{"steps": 3}, {"cost": 0.15}])
async def test_what_it_takes_counts_against_the_budget_of_its_caller(folder: Path, budget: dict[str, Any]) -> None:
    step = calls(("bash", {"command": "date +%N"}), usage=Usage(input=1, cost=0.1))
    provider = by_model(top=[ask("Work."), "So far."], small=[step, step, "Cut short.", "x", "x", "x"])
    agents = {**AGENTS, "default": {"subagents": ["helper"], "budget": budget}}
    async with opened(provider, folder, agents) as (_, session):
        ended = await turn(session)
    assert ended.outcome == "budget"
    small = [request for request in provider.requests if request.model == "small"]
    assert len(small) == 3
    assert not small[-1].may_call


async def test_it_may_do_no_more_than_its_caller(folder: Path) -> None:
    provider = by_model(top=[ask("Touch."), "Done."], small=[bash("touch made"), "I could not."])
    caller = {"subagents": ["helper"], "permissions": {"deny": ["touch **"]}}
    async with opened(provider, folder, {**AGENTS, "default": caller}) as (_, session):
        await turn(session)
    assert "not allowed" in texts_of([one for one in provider.requests if one.model == "small"][1])[-1]
    assert not (folder / "work" / "made").exists()


async def test_agents_that_call_each_other_come_to_an_end(folder: Path) -> None:
    agents = {"default": {"subagents": ["default"]}}
    provider = by_model(top=[ask("Again.", agent="default"), "Enough."])
    async with opened(provider, folder, agents) as (app, session):
        assert (await turn(session)).outcome == "answered"
        assert len(app.session_store().sessions(subagents=True)) == 3
    assert any("3 deep already" in text for request in provider.requests for text in texts_of(request))


async def test_ending_the_turn_of_the_caller_ends_the_subagent(folder: Path) -> None:
    provider = by_model(top=[ask("Wait."), "x"], small=[lambda _: ENDLESS])
    async with opened(provider, folder) as (app, session):
        async for update in session.send("go"):
            if isinstance(update, SubagentTold) and isinstance(update.update, TextDelta):
                session.interrupt()
        store = app.session_store()
        (child,) = [row for row in store.sessions(subagents=True) if row.parent]
        ended = store.events(child.id)[-1].event
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "interrupted"
        assert child.state == "idle"


async def test_a_question_of_a_subagent_waits_with_its_caller_and_goes_on_with_it(folder: Path) -> None:
    from toolyard.permissions.verdict import Answer, FixedAnswer, answer_always

    provider = by_model(top=[ask("Touch."), "Done."], small=[bash("echo x >> ran"), bash("touch made"), "I did."])
    rules = {"preset": "workspace", "ask": ["touch **"]}
    later = FixedAnswer(answer=Answer(allowed=False, reason="not now", later=True))
    async with opened(provider, folder, permissions=rules) as (app, first):
        await first.aclose()
        session = await app.open_session(approver=later)
        async for _ in session.send("go"):
            pass
        assert [one.question["command"] for one in session.waiting_questions()] == ["touch made"]
        assert app.session_store().session(session.id).state == "waiting"
        await session.aclose()
    async with opened(provider, folder, permissions=rules) as (app, first):
        await first.aclose()
        session = await app.open_session(id=session.id, approver=answer_always(allowed=True, reason="yes"))
        assert (await turn(session, None)).outcome == "answered"
        results = [one.event.answer.text for one in session.events() if isinstance(one.event, CallAnswered)]
    assert results == ["I did."]
    assert (folder / "work" / "made").exists()
    assert (folder / "work" / "ran").read_text() == "x\n"


async def test_a_name_that_no_agent_has_is_a_problem(folder: Path) -> None:
    app = AgentApplication({"agents": {"default": {"subagents": ["helpr"]}, "helper": {}}}, folder / "sessions")
    (problem,) = [one for one in app.problems() if one.code == "agent_unknown"]
    assert "helpr" in problem.message
    assert "helper" in problem.hint
