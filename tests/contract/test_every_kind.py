"""What holds for every tool, whatever its kind: the same assertions for all."""

from __future__ import annotations

import asyncio
import gc
import json
import re

import pytest

from contract.bench import LIMITS, Bench
from contract.kinds import FLOOD
from support import PNG, Signpost, is_alive
from toolyard.core.content import ImagePart
from toolyard.permissions.verdict import Verdict
from toolyard.runtime.call import PendingCall

pytestmark = pytest.mark.anyio

TWENTY = [f"value-{number}" for number in range(20)]


class Never:
    """Rules that allow nothing."""

    async def decide(self, request):
        return Verdict(decision="deny", reason="the test says no", rule="never")


@pytest.mark.ability("echo")
async def test_success(bench: Bench):
    async with bench.tool("echo") as tool:
        result = await tool("hello")
    assert (bench.said(result), result.failure) == ("hello", None)
    assert result.exit_code in (0, None)
    assert result.truncated is None


@pytest.mark.ability("fail")
async def test_failure_says_why_and_what_comes_after_it_works(bench: Bench):
    async with bench.tool("fail") as tool:
        for _ in range(2):
            result = await tool()
            assert (result.failure, result.exit_code) == (bench.kind.failure, bench.kind.exit_code)
            assert "broken" in result.text


@pytest.mark.ability("where")
async def test_it_works_in_the_configured_folder(bench: Bench):
    (bench.yard.folder / "inner").mkdir()
    async with bench.tool("where", working_directory=str(bench.yard.folder / "inner")) as tool:
        result = await tool()
    assert bench.said(result) == str(bench.yard.folder / "inner")
    assert {line["cwd"] for line in bench.yard.audit()} == {str(bench.yard.folder / "inner")}


@pytest.mark.ability("echo")
async def test_a_conversation_can_end_while_another_goes_on(bench: Bench):
    async with bench.tool("echo") as tool:
        assert bench.said(await tool("one", session="first")) == "one"
        assert bench.said(await tool("two", session="second")) == "two"
        await tool.app.end_session("first")
        assert bench.said(await tool("three", session="second")) == "three"
        assert bench.said(await tool("four", session="first")) == "four"


@pytest.mark.ability("hang")
async def test_a_tool_past_its_time_is_ended_with_all_that_it_started(bench: Bench, here: Signpost):
    for limit in LIMITS:
        async with bench.tool("hang", limit=limit) as tool:
            result = await tool()
            pids = bench.pids()
            assert result.failure == "timeout"
            assert [pid for pid in pids if is_alive(pid)] == [], "while the application goes on"
        if len(pids) == bench.kind.processes:
            break
        (bench.yard.folder / "pids").unlink(missing_ok=True)
    assert len(pids) == bench.kind.processes
    assert bench.yard.audit()[-1]["timed_out"] is True


@pytest.mark.ability("hang")
async def test_a_cancelled_call_has_one_result_and_nothing_of_it_goes_on(bench: Bench, here: Signpost):
    cancelled = asyncio.Event()
    async with bench.tool("hang") as tool:
        turn = asyncio.create_task(tool.turn(["the call"], cancelled))
        await asyncio.to_thread(here.wait)
        cancelled.set()
        results = await turn
        assert {id: result.failure for id, result in results.items()} == {"the call": "cancelled"}
        if bench.kind.streams or bench.kind.name == "python":  # a server's own output belongs to no call
            assert results["the call"].text.startswith("The call was cancelled. Output so far:\nbegun")
        assert bench.finished() == ["the call"]
        assert len(bench.pids()) == bench.kind.processes
        assert [pid for pid in bench.pids() if is_alive(pid)] == []
    assert [line["failure"] for line in bench.yard.audit() if line["event"] == "end"] == ["cancelled"]


@pytest.mark.ability("hang")
async def test_nothing_of_a_tool_outlives_the_application(bench: Bench, here: Signpost):
    async with bench.tool("hang") as tool:
        call = asyncio.create_task(tool())
        await asyncio.to_thread(here.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert [pid for pid in bench.pids() if is_alive(pid)] == []


@pytest.mark.ability("flood")
async def test_huge_output_keeps_its_head_and_its_tail(bench: Bench):
    async with bench.tool("flood", output={"limit_bytes": 10_000}) as tool:
        result = await tool()
    assert result.failure is None
    assert "HEADxxx" in result.text
    assert "xxxTAIL" in result.text
    assert len(result.text.encode()) <= 10_000 + 1024
    assert result.truncated is not None
    assert FLOOD - 10_000 <= result.truncated.omitted_bytes <= FLOOD
    assert bench.yard.audit()[-1]["truncated"] is True


@pytest.mark.ability("flood")
async def test_a_model_reads_on_in_output_that_was_cut(bench: Bench):
    async with bench.tool("flood", output={"limit_bytes": 10_000, "reader": True}) as tool:
        result = await tool()
        cut = re.search(r"read_output has it: handle (\S+), offset (\d+)", result.text)
        assert cut is not None
        handle, offset = cut[1], int(cut[2])
        read = "HEAD"
        while offset < FLOOD // 100:
            part = await tool.app.call_tool("read_output", {"handle": handle, "offset": offset})
            text, _, end = part.text.rpartition("\n[bytes ")
            assert set(text) == {"x"}
            assert len(part.text.encode()) <= 10_000
            assert end.startswith(f"{offset} to {offset + len(text)} of ")
            offset += len(text)
            read += text
        last = await tool.app.call_tool("read_output", {"handle": handle, "offset": -8})
        found = await tool.app.call_tool("read_output", {"handle": handle, "find": "xxTAIL"})
    assert last.text.startswith("xxxxTAIL\n[bytes ")
    assert last.text.endswith("; that is its end]")
    assert found.text.splitlines()[0].split(":")[0] == str(FLOOD + len("HEAD") - len("xx"))


@pytest.mark.ability("draw")
async def test_a_picture_comes_with_the_text(bench: Bench):
    (bench.yard.folder / "dot.png").write_bytes(PNG)
    async with bench.tool("draw") as tool:
        result = await tool("drawn")
    assert (result.text, result.failure) == ("drawn", None)
    assert result.attachments == (ImagePart(media_type="image/png", data=PNG),)


UNFIT = ({}, {"value": ["x"], "command": ["x"]}, "{broken", "[]", '"text"')


@pytest.mark.ability("log")
async def test_arguments_that_do_not_fit_are_refused_and_nothing_runs(bench: Bench):
    async with bench.tool("log") as tool:
        for number, arguments in enumerate(UNFIT, 1):
            refused = await tool.call_with(arguments)
            assert refused.failure == "invalid_arguments", arguments
            assert refused.text, arguments
            assert bench.yard.log() == [], arguments
            assert [line["event"] for line in bench.yard.audit()] == ["end"] * number, f"{arguments} was begun"
        await tool("fits")
    assert bench.yard.log() == ["fits"]


@pytest.mark.ability("echo")
async def test_arguments_may_be_the_text_that_a_model_wrote(bench: Bench):
    async with bench.tool("echo") as tool:
        arguments = json.dumps(tool.written.arguments("größe 😀"), indent=1)
        assert bench.said(await tool.call_with(arguments)) == "größe 😀"


TEXTS = ("größe", "日本語 テスト", "😀👩‍👩‍👧", "e\u0301 combining", "\"quotes\" 'and' \\ $HOME `id` * ;", "a\nb\n\n c")


@pytest.mark.ability("echo")
async def test_text_arrives_and_comes_back_character_by_character(bench: Bench):
    async with bench.tool("echo") as tool:
        assert [bench.said(await tool(text)) for text in TEXTS] == list(TEXTS)


@pytest.mark.ability("echo")
async def test_nothing_of_a_call_waits_for_the_collector(bench: Bench):
    async with bench.tool("echo") as tool:
        await tool()
        gc.collect()
        gc.disable()
        try:
            await tool()
            before = calls_in_memory()
            gc.collect()
            assert calls_in_memory() == before
        finally:
            gc.enable()


def calls_in_memory() -> int:
    return sum(type(one) is PendingCall for one in gc.get_objects())


@pytest.mark.ability("echo")
async def test_twenty_calls_at_once_are_answered_each_with_its_own_in_their_order(bench: Bench):
    async with bench.tool("echo") as tool:
        results = await tool.turn(TWENTY)
    assert [(id, bench.said(result)) for id, result in results.items()] == [(value, value) for value in TWENTY]
    assert sorted(bench.finished()) == sorted(TWENTY)


@pytest.mark.ability("side_by_side")
@pytest.mark.ability("meet")
async def test_twenty_calls_run_side_by_side(bench: Bench, here: Signpost):
    async with bench.tool("meet") as tool:
        turn = asyncio.create_task(tool.turn(TWENTY))
        arrived: list[str] = []
        while len(arrived) < len(TWENTY):
            arrived += (await asyncio.to_thread(here.wait)).split()
        assert sorted(arrived) == sorted(TWENTY), "all of them are running now"
        (bench.yard.folder / "go").touch()
        results = await turn
    assert {id: bench.said(result) for id, result in results.items()} == {value: value for value in TWENTY}


@pytest.mark.ability("crash")
async def test_a_tool_that_is_killed_is_an_answer_and_the_next_call_works(bench: Bench):
    async with bench.tool("crash") as tool:
        for _ in range(2):
            result = await tool()
            assert (result.failure, result.exit_code) == (bench.kind.failure, bench.kind.killed)
            assert result.text
    assert [line["exit"] for line in bench.yard.audit() if line["event"] == "end"] == [bench.kind.killed] * 2


@pytest.mark.ability("meet")
async def test_a_line_is_on_disk_before_the_run_and_one_after_it(bench: Bench, here: Signpost):
    async with bench.tool("meet") as tool:
        turn = asyncio.create_task(tool.turn(["the call"]))
        await asyncio.to_thread(here.wait)
        (start,) = bench.yard.audit()
        (bench.yard.folder / "go").touch()
        await turn
    before, end = bench.yard.audit()
    assert (start, start["event"], end["event"]) == (before, "start", "end")
    for line in (start, end):
        assert (line["call_id"], line["tool"], line["kind"]) == ("the call", bench.kind.tool, bench.kind.name)
        assert (line["decision"], line["rule"], line["cwd"]) == ("allow", "allow-all", str(bench.yard.folder))
        assert "argv" in line or "command" in line
    assert (end["failure"], end["timed_out"], end["bytes_out"]) == (None, False, len("the call"))


@pytest.mark.ability("leak")
async def test_secrets_are_in_no_result_no_event_and_no_record(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-1234567890")
    bench.yard.file("secret", "it is tok-1234567890, look")
    async with bench.tool("leak") as tool:
        result = await tool()
    assert "it is [redacted SOME_TOKEN], look" in result.text
    assert bench.yard.streamed() == ("it is [redacted SOME_TOKEN], look" if bench.kind.streams else "")
    for place in (result, bench.yard.events, bench.yard.audit()):
        assert "tok-1234567890" not in repr(place)


@pytest.mark.ability("leak")
async def test_what_is_kept_whole_has_no_secret(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-1234567890")
    bench.yard.file("secret", "it is tok-1234567890, look\n" * 2000)
    async with bench.tool("leak", output={"limit_bytes": 1000}) as tool:
        result = await tool()
    kept = [path.read_text() for path in (bench.yard.folder / "sessions" / "outputs").rglob("*.*")]
    assert len(kept) == (result.truncated is not None), "file tools give long files in parts, and keep nothing"
    assert all(text.count("[redacted SOME_TOKEN]") == 2000 for text in kept)
    assert "tok-" not in "".join([*kept, result.text])


@pytest.mark.ability("read")
async def test_standard_input_is_at_its_end(bench: Bench):
    async with bench.tool("read") as tool:
        assert bench.said(await tool()).strip() == "rest:0"


@pytest.mark.ability("log")
async def test_a_call_that_is_not_allowed_runs_nothing(bench: Bench):
    async with bench.tool("log", options={"permissions": Never()}) as tool:
        assert (await tool()).failure == "denied"
    assert bench.yard.log() == []
    (line,) = bench.yard.audit()
    assert (line["event"], line["decision"], line["rule"]) == ("end", "deny", "never")


@pytest.mark.parametrize("level", ["top", "agent", "provider"])
@pytest.mark.ability("log")
async def test_a_rule_against_a_tool_holds_wherever_it_is_written(bench: Bench, level: str):
    rule = {"tool": bench.kind.tool, "reason": "not this one"}
    section = {"permissions": {"preset": "trusted", "deny": [rule]}}
    settings = {
        "top": section,
        "agent": {"agents": {"default": section}},
        "provider": {"agents": {"default": {"provider": "p"}}, "providers": {"p": section}},
    }[level]
    async with bench.tool("log", **settings) as tool:
        result = await tool()
    assert result.failure == "denied"
    assert "not this one" in result.text
    assert bench.yard.log() == []
