"""The one call path: what holds for every tool, whatever its kind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from support import running, until
from toolyard.core.events import CallFinished, OutputChunk
from toolyard.core.tool import ToolCall
from toolyard.permissions.verdict import Verdict, answer_always
from toolyard.runtime.audit.verify import check_log

pytestmark = pytest.mark.anyio


class Rules:
    """A policy of the test's own."""

    def __init__(self, decision):
        self.decision = decision
        self.requests = []

    async def decide(self, request):
        self.requests.append(request)
        return Verdict(decision=self.decision, reason=f"the test says {self.decision}", rule="test-rule")


async def test_A01_every_call_goes_through_every_step_in_order(yard):
    yard.tool(run="echo out", cases="preview) echo shown ;;")
    async with yard.app("bash:probe.bash") as app:
        await app.call_tool("probe", {"value": "x"}, on_event=yard.watch)
    assert [type(event).__name__ for event in yard.events] == [
        "CallStarted",
        "PreviewReady",
        "PermissionDecided",
        "OutputChunk",
        "CallFinished",
    ]
    assert yard.events[1].preview == "shown"
    assert yard.events[2].reason == "no permission rules are configured"
    assert [line["event"] for line in yard.audit()] == ["start", "end"]


async def test_A01_a_refused_call_runs_nothing_and_is_recorded(yard):
    yard.tool(run=f"echo ran >> {yard.folder}/log")
    rules = Rules("deny")
    async with yard.open(yard.config("bash:probe.bash"), permissions=rules) as app:
        result = await app.call_tool("probe", {"value": "x"})
    assert result.failure == "denied"
    assert "the test says deny" in result.text
    assert yard.log() == []
    (line,) = yard.audit()
    assert (line["event"], line["decision"], line["rule"], line["failure"]) == ("end", "deny", "test-rule", "denied")
    assert rules.requests[0].plan.argv[2:] == ["run", "--value", "x"]


@pytest.mark.parametrize("allowed", [True, False])
async def test_A01_what_the_rules_leave_open_is_asked_with_the_tools_preview(yard, allowed):
    yard.tool(run="echo ran", cases="preview) echo shown ;;")
    seen = []

    class Asking:
        async def approve(self, request, verdict):
            seen.append(await request.preview())
            return await answer_always(allowed=allowed, reason="said so").approve(request, verdict)

    app = yard.open(yard.config("bash:probe.bash"), permissions=Rules("ask"), approver=Asking())
    async with app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert seen == ["shown"]
    assert result.ok is allowed
    assert "PermissionAsked" in [type(event).__name__ for event in yard.events]


async def test_A01_with_nobody_to_ask_the_answer_is_no(yard):
    yard.tool(run=f"echo ran >> {yard.folder}/log")
    async with yard.open(yard.config("bash:probe.bash"), permissions=Rules("ask")) as app:
        assert (await app.call_tool("probe", {})).failure == "denied"
    assert yard.log() == []


async def test_A01_output_is_limited_and_secrets_are_redacted_whatever_the_tool_does(yard, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-12345678")
    # The secret comes from a file, in two pieces with a pause between them, after much other output.
    yard.file("secret", "tok-12345678")
    pieces = f"head -c 6 {yard.folder}/secret; sleep 0.1; tail -c 6 {yard.folder}/secret"
    yard.tool(run=f"head -c 5000 /dev/zero | tr '\\0' x; {pieces}")
    async with yard.app("bash:probe.bash", output={"limit_bytes": 1000, "spill": True}) as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch, call_id="../x")
    assert result.truncated is not None
    assert result.truncated.omitted_bytes == 4012
    assert "4012 bytes" in result.text
    assert result.text.endswith("x[redacted SOME_TOKEN]")
    assert yard.streamed().endswith("x[redacted SOME_TOKEN]")
    assert result.truncated.kept_at is not None
    assert result.truncated.kept_at.parent.parent == yard.folder / "sessions" / "outputs"
    assert result.truncated.kept_at.read_text() == "x" * 5000 + "[redacted SOME_TOKEN]", "nor is it in the store"


@pytest.mark.parametrize("ending", ["", "; exit 3"])
async def test_A01_the_text_of_a_failure_is_limited_like_any_other(yard, ending):
    much = "head -c 9000 /dev/zero | tr '\\0' x"
    yard.tool(run=f"{much}; {much} >&2{ending}")
    async with yard.app("bash:probe.bash", output={"limit_bytes": 1000}) as app:
        result = await app.call_tool("probe", {})
    assert result.truncated is not None
    assert len(result.text) <= 1000 + 1024


async def test_A01_a_broken_observer_breaks_nothing(yard):
    yard.tool(run="echo out")

    def broken(event):
        raise RuntimeError("observer")

    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {}, on_event=broken)).text == "out\n"


async def test_A02_every_format_carries_the_tool(yard):
    # The forms themselves are checked against the vendors' own types in tests/core/test_formats.py.
    yard.tool()
    async with yard.app("bash:probe.bash") as app:
        (chat,) = app.tool_specs("default", format="openai")
        (responses,) = app.tool_specs("default", format="responses")
        (anthropic,) = app.tool_specs("default", format="anthropic")
        (mcp,) = app.tool_specs("default", format="mcp")
    assert chat["function"]["name"] == responses["name"] == anthropic["name"] == mcp["name"] == "probe"
    assert chat["function"]["parameters"]["properties"] == {"value": {"type": "string"}}


async def test_A03_calls_of_a_turn_run_side_by_side_and_are_answered_in_call_order(yard):
    # The first waits for the second: one after the other it would run into its limit.
    wait = f"""case $2 in
      first) until [ -e {yard.folder}/second ]; do sleep 0.01; done ;;
      *) touch {yard.folder}/$2 ;;
    esac; echo "$2" """
    yard.tool(run=wait)
    calls = [
        ToolCall(id="1", name="probe", arguments={"value": "first"}),
        ToolCall(id="2", name="nothing", arguments={}),
        ToolCall(id="3", name="probe", arguments={"value": "second"}),
        ToolCall(id="4", name="probe", arguments="{broken"),
        ToolCall(id="1", name="probe", arguments={"value": "again"}),
    ]
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 20}) as app:
        results = await app.call_tools(calls)
    assert list(results) == ["1", "2", "3", "4"], "one answer for each id, in the order of the calls"
    assert [result.text.strip() for result in results.values()][::2] == ["first", "second"]
    assert [result.failure for result in results.values()] == [None, "unknown_tool", None, "invalid_arguments"]


async def test_A03_permission_is_asked_in_call_order(yard):
    yard.tool()
    rules = Rules("allow")
    async with yard.open(yard.config("bash:probe.bash"), permissions=rules) as app:
        await app.call_tools([ToolCall(id=str(n), name="probe", arguments={}) for n in range(5)])
    assert [request.call_id for request in rules.requests] == ["0", "1", "2", "3", "4"]


async def test_A03_a_cancelled_turn_still_answers_every_call(yard):
    yard.tool(run='if [ "${2:-}" = slow ]; then sleep 60; else echo done; fi')
    cancelled = asyncio.Event()

    def see(event):
        yard.watch(event)
        if isinstance(event, CallFinished) and event.call_id == "quick":
            cancelled.set()

    calls = [
        ToolCall(id="slow", name="probe", arguments={"value": "slow"}),
        ToolCall(id="quick", name="probe", arguments={"value": "quick"}),
    ]
    async with asyncio.timeout(30), yard.app("bash:probe.bash") as app:
        results = await app.call_tools(calls, on_event=see, cancelled=cancelled)
    assert {id: result.failure for id, result in results.items()} == {"slow": "cancelled", "quick": None}
    finished = [event.call_id for event in yard.events if isinstance(event, CallFinished)]
    assert sorted(finished) == ["quick", "slow"]


async def test_A03_a_crash_is_an_answer_too(yard, caplog):
    yard.tool()

    class Broken:
        async def decide(self, request):
            raise ZeroDivisionError("rules")

    async with yard.open(yard.config("bash:probe.bash"), permissions=Broken()) as app:
        results = await app.call_tools([ToolCall(id="1", name="probe", arguments={})])
    assert results["1"].failure == "crash"
    assert "ZeroDivisionError" in results["1"].text
    assert "Traceback" in caplog.text


async def test_A03_cancelling_the_caller_cancels_the_call_and_records_it(yard):
    yard.tool(run="echo started; sleep 60")
    started = asyncio.Event()
    async with asyncio.timeout(30), yard.app("bash:probe.bash") as app:
        task = asyncio.create_task(
            app.call_tool("probe", {}, on_event=lambda event: isinstance(event, OutputChunk) and started.set())
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert yard.audit()[-1]["failure"] == "cancelled"


async def test_A04_an_audit_line_before_and_after_in_the_file_of_the_utc_day(yard):
    yard.tool(run="echo out; exit 3")
    async with yard.app("bash:probe.bash") as app:
        await app.call_tool("probe", {"value": "x"}, call_id="call-1")
    (file,) = (yard.folder / "sessions" / "audit").iterdir()
    start, end = (json.loads(line) for line in file.read_text().splitlines())
    assert file.name == f"{datetime.fromisoformat(start['time']).astimezone(UTC):%Y-%m-%d}.ndjson"
    for line in (start, end):
        assert (line["call_id"], line["tool"], line["kind"]) == ("call-1", "probe", "bash_script")
        assert line["argv"][1:] == [str(yard.folder / "probe.bash"), "run", "--value", "x"]
        assert (line["decision"], line["rule"]) == ("allow", "allow-all")
        assert line["session"]
        assert line["cwd"]
        assert line["envKeys"] == []
    assert start["event"] == "start"
    assert (end["event"], end["exit"], end["signal"], end["timed_out"]) == ("end", 3, None, False)
    assert end["bytes_out"] == 4
    assert end["truncated"] is False
    assert end["ms"] > 0


async def test_A04_the_line_before_the_run_is_on_disk_while_the_tool_runs(yard):
    yard.tool(run=f"cd {yard.folder}; touch up; while [ ! -e go ]; do sleep 0.01; done")
    async with yard.app("bash:probe.bash") as app:
        asked = asyncio.ensure_future(app.call_tool("probe", {}))
        await until((yard.folder / "up").exists)
        (line,) = yard.audit()
        (yard.folder / "go").touch()
        await asked
    assert line["event"] == "start"


@pytest.mark.parametrize(("policy", "failure"), [("continue", None), ("stop", "denied")])
async def test_A04_a_log_that_cannot_be_written_is_said_once_and_stops_calls_by_policy(yard, policy, failure):
    yard.tool(run=f"echo ran >> {yard.folder}/log")
    yard.file("sessions/audit", "a file in the place of the folder")
    async with yard.app("bash:probe.bash", audit={"on_failure": policy}) as app:
        for _ in range(3):
            assert (await app.call_tool("probe", {})).failure == failure
        said = [problem for problem in app.get_config_errors() if problem["type"] == "audit_unwritable"]
    assert len(said) == 1
    assert yard.log() == (["ran"] * 3 if failure is None else [])


async def test_A04_a_log_that_can_be_written_again_is_no_problem_any_more(yard):
    yard.tool(run="echo out")
    blocked = yard.file("sessions/audit", "a file in the place of the folder")
    async with yard.app("bash:probe.bash", audit={"on_failure": "stop"}) as app:
        assert (await app.call_tool("probe", {})).failure == "denied"
        assert [problem["type"] for problem in app.get_config_errors()] == ["audit_unwritable"]
        blocked.unlink()
        assert (await app.call_tool("probe", {})).text == "out\n"
        assert app.get_config_errors() == []


CALLS_FOR_EVER = """
import asyncio, sys
from toolyard import AgentApplication

async def main():
    async with AgentApplication(sys.argv[1], sys.argv[2]) as app:
        for number in range(10_000):
            await app.call_tool("probe", {"value": str(number)}, call_id=f"call-{number}")
            print(f"call-{number}", flush=True)

asyncio.run(main())
"""


async def test_A05_a_call_that_was_reported_is_in_the_audit_log_although_the_application_was_killed(yard):
    yard.tool(run="echo out")
    argv = [sys.executable, "-c", CALLS_FOR_EVER, yard.config("bash:probe.bash"), yard.folder / "sessions"]
    with running([str(word) for word in argv], stdout=subprocess.PIPE) as process:
        done = [process.stdout.readline().decode().strip() for _ in range(5)]
        process.kill()
        done += process.stdout.read().decode().split()
    ends = [line["call_id"] for line in yard.audit() if line["event"] == "end"]
    assert ends[: len(done)] == done
    assert check_log(yard.folder / "sessions" / "audit").broken is None
