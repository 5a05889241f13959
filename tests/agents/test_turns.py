"""A turn: ask, call, answer; and every way in which it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scripted_provider import ScriptedProvider, bash, calls, endless, texts_of
from toolyard import AgentApplication
from toolyard.agents.budget import TimeBound
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.events import CallAnswered, ContextShortened, Noticed, Stored, TurnEnded
from toolyard.core.conversation import AssistantMessage, Usage
from toolyard.core.model import ModelEvent, ModelRequest, TextDelta, Waiting
from toolyard.core.tool import ToolCall
from toolyard.errors import ProviderError
from toolyard.permissions.verdict import Answer

pytestmark = pytest.mark.anyio
SECONDS = 60


@asynccontextmanager
async def session_with(
    provider: ScriptedProvider, folder: Path, config: dict[str, Any] | None = None, **given: Any
) -> AsyncIterator[AgentSession]:
    settings = {"provider": "scripted", "plugins": ["shell:session"], **(config or {})}
    async with AgentApplication(settings, folder / "sessions", tools=[provider]) as app:
        yield await app.open_session(**given)


async def turn(session: AgentSession, prompt: str | None = "go") -> TurnEnded:
    async with asyncio.timeout(SECONDS):
        updates = [update async for update in session.send(prompt)]
    ended = updates[-1]
    assert isinstance(ended, Stored)
    assert isinstance(ended.event, TurnEnded)
    return ended.event


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path


async def test_a_model_calls_a_tool_reads_its_result_and_answers(folder: Path) -> None:
    provider = ScriptedProvider(bash("echo $((6 * 7))"), "It is 42.")
    async with session_with(provider, folder) as session:
        ended = await turn(session, "What is six times seven?")
    assert (ended.outcome, ended.usage) == ("answered", Usage(input=20, output=7))
    assert texts_of(provider.requests[1]) == ["user: What is six times seven?", "assistant: ['bash']", "tool: 42"]


async def test_the_conversation_goes_on_where_it_was(folder: Path) -> None:
    provider = ScriptedProvider("One.", "Two.")
    async with session_with(provider, folder) as session:
        await turn(session, "first")
        await turn(session, "second")
    assert texts_of(provider.requests[1]) == ["user: first", "assistant: One.", "user: second"]


async def test_mistakes_of_the_model_come_back_to_it_as_results(folder: Path) -> None:
    wrong = calls(("bassh", {"command": "ls"}), ("bash", {"comand": "ls"}))
    provider = ScriptedProvider(wrong, "Sorry.")
    async with session_with(provider, folder) as session:
        assert (await turn(session)).outcome == "answered"
    _, _, unknown, invalid = texts_of(provider.requests[1])
    assert "no tool named 'bassh'" in unknown
    assert "comand" in invalid


@pytest.mark.parametrize(
    ("budget", "words"),
    [({"steps": 2}, "2 steps"), ({"tokens": 20}, "tokens were used"), ({"cost": 0.5}, "$1.0000 were spent")],
)
async def test_at_the_end_of_a_budget_the_model_says_how_far_it_came(
    folder: Path, budget: dict[str, Any], words: str
) -> None:
    step = calls(("bash", {"command": "date +%N"}), usage=Usage(input=10, output=5, cost=0.5))
    provider = ScriptedProvider(step, step, "I came this far.")
    if "cost" in budget:
        provider = ScriptedProvider(calls(("bash", {"command": "true"}), usage=Usage(input=1, cost=1.0)), "So far.")
    async with session_with(provider, folder, {"budget": budget}) as session:
        ended = await turn(session)
    assert ended.outcome == "budget"
    assert words in ended.reason
    last = provider.requests[-1]
    assert not last.may_call
    assert "cannot be called any more" in texts_of(last)[-1]


@pytest.mark.parametrize("hangs", [bash("echo begun; sleep 300"), endless], ids=["a call", "an answer"])
async def test_at_the_end_of_its_time_what_runs_is_ended_and_the_model_says_how_far_it_came(
    folder: Path, hangs: Any
) -> None:
    provider = ScriptedProvider(hangs, "That far.")
    async with session_with(provider, folder, {"budget": {"seconds": 2}}) as session:
        await session.ui_schema()  # which loads everything, so that the time is the turn's
        ended = await turn(session)
    assert ended.outcome == "budget"
    assert "seconds were worked, of 2" in ended.reason
    said = texts_of(provider.requests[1])
    assert any(text.startswith("tool: ") or text == "assistant: so far" for text in said)
    assert "the last answer of the turn" in said[-1]
    assert not provider.requests[1].may_call


async def test_time_in_which_a_person_is_waited_for_counts_as_such_while_it_lasts(folder: Path) -> None:
    counted = []

    class Slow:
        async def approve(self, request: Any, verdict: Any) -> Answer:
            before = session.waited
            await asyncio.sleep(0.1)
            counted.append(session.waited - before)
            return Answer(allowed=True, reason="at last")

    provider = ScriptedProvider(calls(("bash", {"command": "touch a"}), ("bash", {"command": "touch b"})), "Done.")
    config = {"permissions": {"preset": "workspace", "ask": ["touch **"]}}
    async with session_with(provider, folder, config, approver=Slow()) as session:
        assert (await turn(session)).outcome == "answered"
        assert session.waited >= 0.1
    assert [seconds >= 0.1 for seconds in counted] == [True, True]


async def test_time_that_has_become_more_is_waited_for() -> None:
    left, ended = iter([0.01, 0.01, 0.0]), asyncio.Event()
    with TimeBound(lambda: next(left), ended.set):
        async with asyncio.timeout(SECONDS):
            await ended.wait()
    assert next(left, None) is None
    with TimeBound(lambda: 0.01, ended.clear):
        pass
    await asyncio.sleep(0.02)
    assert ended.is_set(), "who has left is bound no more"


async def test_going_round_in_circles_is_said_and_then_ended(folder: Path) -> None:
    provider = ScriptedProvider(bash("cat missing"))
    async with session_with(provider, folder) as session:
        ended = await turn(session)
        said = [one.event.text for one in session.events() if isinstance(one.event, Noticed)]
    assert ended.outcome == "stuck"
    assert len(provider.requests) == 6
    assert "3 times in a row" in said[0]
    assert "3 times in a row" in texts_of(provider.requests[3])[-1]


async def test_the_same_call_with_other_results_is_no_circle(folder: Path) -> None:
    provider = ScriptedProvider(*[bash("date +%s%N")] * 8, "Done.")
    async with session_with(provider, folder) as session:
        assert (await turn(session)).outcome == "answered"


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (AssistantMessage(stop="refusal"), "refused", "the model refused"),
        (AssistantMessage(text=""), "error", "only empty answers"),
        (ProviderError("no key", fault="setup", hint="set one"), "error", "no key"),
    ],
)
async def test_a_turn_never_ends_in_silence(folder: Path, answer: Any, outcome: str, reason: str) -> None:
    async with session_with(ScriptedProvider(answer), folder) as session:
        ended = await turn(session)
    assert ended.outcome == outcome
    assert reason in ended.reason


async def test_without_a_provider_the_turn_says_what_to_write(folder: Path) -> None:
    async with AgentApplication({"plugins": ["shell:session"]}, folder / "sessions") as app:
        ended = await turn(await app.open_session())
    assert (ended.outcome, ended.fault) == ("error", "setup")
    assert "BUILTIN_PLUGINS" in ended.hint


async def test_a_person_can_end_a_turn_while_the_model_speaks(folder: Path) -> None:
    provider = ScriptedProvider(endless, "Again.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        async for update in session.send("go"):
            if isinstance(update, TextDelta):
                session.interrupt()
        assert session.events()[-1].event.outcome == "interrupted"  # type: ignore[union-attr]
        await turn(session, "and now?")
    assert texts_of(provider.requests[1]) == ["user: go", "assistant: so far", "user: and now?"]


async def test_a_person_can_end_a_turn_while_a_tool_runs_and_its_output_stays(folder: Path) -> None:
    provider = ScriptedProvider(bash("echo begun; sleep 60"), "Again.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        async for update in session.send("go"):
            if type(update).__name__ == "OutputChunk":
                session.interrupt()
        ended = session.events()[-1].event
        results = [one.event.answer for one in session.events() if isinstance(one.event, CallAnswered)]
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "interrupted"
        assert len(results) == 1
        assert results[0].is_error
        assert (await turn(session, "what happened?")).outcome == "answered"


async def test_what_is_said_meanwhile_comes_after_the_results(folder: Path) -> None:
    provider = ScriptedProvider(bash("echo one"), "Done.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        async for update in session.send("go"):
            if type(update).__name__ == "CallStarted":
                session.say("in French, please")
    said = texts_of(provider.requests[1])
    assert said == ["user: go", "assistant: ['bash']", "tool: one", "user: in French, please"]


async def test_leaving_the_loop_ends_the_turn(folder: Path) -> None:
    provider = ScriptedProvider(endless, "Again.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        stream = session.send("go")
        async for update in stream:
            if isinstance(update, TextDelta):
                break
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert not session.is_working
        assert session.events()[-1].event.outcome == "interrupted"  # type: ignore[union-attr]


@pytest.mark.parametrize(("window", "cut_by"), [(12_000, "outputs"), (6_000, "summary")])
async def test_old_output_is_left_out_and_where_that_is_not_enough_a_summary_stands_for_it(
    folder: Path, window: int, cut_by: str
) -> None:
    def answer(request: Any) -> Any:
        if any("headings" in text for text in texts_of(request)[-1:]):
            return "NOTES: decided to use tabs."
        number = len(provider.requests)
        printing = calls(("bash", {"command": f"seq {number}0000 {number}0900"}), usage=Usage())
        return printing if number < 14 else "Finished."

    provider = ScriptedProvider(answer)
    config = {"context": {"window": window}, "budget": {"steps": 50}}
    async with session_with(provider, folder, config) as session:
        ended = await turn(session, "Use tabs, and never touch main.py.")
        cuts = [one.event for one in session.events() if isinstance(one.event, ContextShortened)]
        whole = [one.event.answer.text for one in session.events() if isinstance(one.event, CallAnswered)]
    assert ended.outcome == "answered"
    assert cut_by in {cut.what for cut in cuts}
    assert all("left out to save room" not in text for text in whole)
    first = texts_of(provider.requests[-1])[0]
    assert "never touch main.py" in first
    assert ("NOTES: decided to use tabs." in first) == (cut_by == "summary")


async def test_a_conversation_that_is_too_long_is_summed_up_and_asked_again(folder: Path) -> None:
    long = ProviderError("too long", fault="too_long")
    provider = ScriptedProvider("One.", "Two.", long, "Notes.", "Three.")
    async with session_with(provider, folder) as session:
        await turn(session, "first")
        await turn(session, "second")
        assert (await turn(session, "third")).outcome == "answered"
    last = texts_of(provider.requests[-1])
    assert last[0].startswith("summary:")
    assert "> first" in last[0]
    assert last[-1] == "user: third"


async def test_notes_for_a_summary_are_no_part_of_the_conversation(folder: Path) -> None:
    long = ProviderError("too long", fault="too_long")
    provider = ScriptedProvider("One.", "Two.", long, "The notes.", "Three.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        await turn(session, "first")
        await turn(session, "second")
        told = [update.text async for update in session.send("third") if isinstance(update, TextDelta)]
    assert told == ["Three."]


async def test_notes_that_are_empty_stand_for_nothing(folder: Path) -> None:
    long = ProviderError("too long", fault="too_long")
    provider = ScriptedProvider("One.", "Two.", long, AssistantMessage(text=" "), "Three.")
    async with session_with(provider, folder) as session:
        await turn(session, "first")
        await turn(session, "second")
        ended = await turn(session, "third")
        assert (ended.outcome, "wrote no notes" in ended.reason) == ("error", True)
        await turn(session, "fourth")
    assert len(texts_of(provider.requests[-1])) == 6
    assert [tool.name for tool in provider.requests[3].tools] == [tool.name for tool in provider.requests[0].tools]


async def test_a_summary_that_is_interrupted_stands_for_nothing(folder: Path) -> None:
    long = ProviderError("too long", fault="too_long")
    provider = ScriptedProvider("One.", "Two.", long, endless, "Three.")
    async with session_with(provider, folder) as session, asyncio.timeout(SECONDS):
        await turn(session, "first")
        await turn(session, "second")

        async def interrupt() -> None:
            await provider.streaming.wait()
            session.say("wait", interrupt=True)

        interrupting = asyncio.create_task(interrupt())
        await turn(session, "third")
        await interrupting
    assert texts_of(provider.requests[-1]) == [
        *("user: first", "assistant: One.", "user: second", "assistant: Two.", "user: third", "user: wait")
    ]


async def test_what_came_of_an_answer_that_broke_off_for_good_stays_in_the_conversation(folder: Path) -> None:
    class Breaking(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if not self.requests:
                self.requests.append(request)
                yield TextDelta(text="half of")
                yield Waiting(reason="the connection broke", seconds=0, attempt=1)
                raise ProviderError("the connection broke", fault="network")
            async for event in super().stream(request):
                yield event

    provider = Breaking("Whole.")
    async with session_with(provider, folder) as session:
        ended = await turn(session)
        assert (ended.outcome, ended.fault) == ("error", "network")
        await turn(session, "again")
    assert texts_of(provider.requests[1]) == ["user: go", "assistant: half of", "user: again"]


async def test_what_a_provider_holds_is_let_go_before_its_calls_run(folder: Path) -> None:
    class Holding(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            Path("held").touch()
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                await asyncio.sleep(0)  # as the closing of a connection takes its time
                Path("held").unlink()

    provider = Holding(bash("test ! -e held && echo free"), "Done.")
    async with session_with(provider, folder) as session:
        await turn(session)
    assert texts_of(provider.requests[1])[-1] == "tool: free"


def cut_off(*arguments: Any, stop: Any = "length") -> AssistantMessage:
    made = (ToolCall(id=f"call_{n}", name="bash", arguments=one) for n, one in enumerate(arguments))
    return AssistantMessage(calls=tuple(made), stop=stop, usage=Usage(input=10, output=5))


@pytest.mark.parametrize(
    ("last", "runs"),
    [
        ('{"command": "echo last >> ran"}', True),
        ('{"command": "echo last >> ran', False),
        ("echo last >> ran", False),  # a tool that takes any text would run it
        ({"command": "echo last >> ran"}, False),  # a native call, of which nobody can say that it is whole
        ("{}", False),
        ("", False),
    ],
)
async def test_a_call_that_reached_the_models_limit_is_not_run(folder: Path, last: Any, runs: bool) -> None:
    provider = ScriptedProvider(cut_off('{"command": "echo first >> ran"}', last), "Done.")
    async with session_with(provider, folder) as session:
        assert (await turn(session)).outcome == "answered"
    assert Path("ran").read_text().split() == ["first", "last"][: 1 + runs]
    assert ("reached the model's limit" in texts_of(provider.requests[1])[-1]) != runs


async def test_a_call_of_an_answer_that_is_a_refusal_is_not_run(folder: Path) -> None:
    provider = ScriptedProvider(cut_off('{"command": "touch ran"}', stop="refusal"))
    async with session_with(provider, folder) as session:
        assert (await turn(session)).outcome == "refused"
    assert not Path("ran").exists()


async def test_that_an_answer_was_empty_is_said_once(folder: Path) -> None:
    provider = ScriptedProvider(AssistantMessage(text=""), bash("echo one"), "Done.")
    async with session_with(provider, folder) as session:
        assert (await turn(session)).outcome == "answered"
    assert "answer was empty" in texts_of(provider.requests[1])[-1]
    assert texts_of(provider.requests[2])[-2:] == ["assistant: ['bash']", "tool: one"]


async def test_a_session_that_names_its_plugins_has_no_others(folder: Path) -> None:
    provider = ScriptedProvider("Hello.")
    config = {"plugins": ["shell:session", "shell:command"]}
    async with session_with(provider, folder, config, metadata={"plugins": ["scripted", "shell:command"]}) as session:
        await turn(session)
    assert [tool.name for tool in provider.requests[0].tools] == ["shell"] or "bash" not in [
        tool.name for tool in provider.requests[0].tools
    ]


async def test_pictures_that_differ_are_no_circle_and_the_same_long_output_is_one(folder: Path) -> None:
    from support import PNG
    from toolyard import tool

    shots = iter(range(9))

    @tool
    def shot() -> bytes:
        """Take a picture."""
        return PNG + bytes([next(shots)])

    @tool
    def flood() -> str:
        """Print much."""
        return "x" * 100_000

    config = {"provider": "scripted", "plugins": []}
    for name, outcome in (("shot", "answered"), ("flood", "stuck")):
        provider = ScriptedProvider(*[calls((name, {}))] * 7, "Done.")
        async with AgentApplication(config, folder.parent / name, tools=[provider, shot, flood]) as app:
            session = await app.open_session()
            updates = [update async for update in session.send("go")]
        assert updates[-1].event.outcome == outcome


async def test_a_provider_that_breaks_ends_the_turn_and_not_the_application(folder: Path) -> None:
    def broken(_: object) -> object:
        raise ValueError("boom")

    async with session_with(ScriptedProvider(broken, "Well again."), folder) as session:
        ended = await turn(session, "go")
        assert (ended.outcome, ended.fault, ended.reason) == (
            "error",
            "answer",
            "the provider failed: ValueError: boom",
        )
        assert (await turn(session, "again")).outcome == "answered"
