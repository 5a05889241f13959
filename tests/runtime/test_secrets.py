"""A known secret shows nowhere, whatever way it takes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from support import PATIENCE, need_backend
from toolyard.config.document import Document
from toolyard.core.tool import ToolCall
from toolyard.permissions.grants import GrantStore
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import Sections
from toolyard.permissions.verdict import Answer, PermissionRequest, Verdict
from toolyard.process.sandbox.network.proxy import ConnectionAttempt
from toolyard.runtime.host_questions import HostQuestions
from toolyard.runtime.process_pools import ProcessPools
from toolyard.runtime.redaction import Redactor
from yard import Yard

pytestmark = pytest.mark.anyio
SECRET = "tok-1234567890"


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    return Yard(tmp_path)


class Says:
    """A policy that repeats what it was asked about."""

    def __init__(self, decision: str) -> None:
        self.decision = decision

    async def decide(self, request) -> Verdict:
        return Verdict(decision=self.decision, reason=f"because of {' '.join(request.plan.argv)}", rule="rule")


def everything(yard: Yard, *texts: object) -> str:
    """All that anybody can see of a call: what was told of it, and the whole store."""
    files = [path.read_text() for path in (yard.folder / "sessions").rglob("*") if path.is_file()]
    return "\n".join([*map(repr, yard.events), *map(repr, texts), *files])


@pytest.mark.parametrize("decision", ["allow", "ask", "deny"])
async def test_in_arguments_and_reasons(yard, decision):
    yard.tool(run='printf "%s" "$2"', cases='preview) echo "shows $3" ;;')
    async with yard.open(yard.config("bash:probe.bash"), permissions=Says(decision)) as app:
        result = await app.call_tool("probe", {"value": f"x {SECRET}"}, on_event=yard.watch)
    assert SECRET not in everything(yard, result)
    assert "[redacted SOME_TOKEN]" in everything(yard, result)


async def test_it_does_reach_the_tool_that_is_given_it(yard):
    yard.tool(run='printf "%s" "$2" | wc -c')
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {"value": SECRET})).text.strip() == str(len(SECRET))


async def test_in_what_a_tool_prints_whole_in_pieces_and_where_it_was_cut(yard):
    # The limit keeps 500 bytes at each end, so that the first secret is cut in two, and the last comes in two pieces.
    padding = "head -c 493 /dev/zero | tr '\\0' x"
    middle = "head -c 9000 /dev/zero | tr '\\0' y"
    halves = f"printf %s {SECRET[:5]}; sleep 0.05; printf %s {SECRET[5:]}"
    yard.tool(run=f"{padding}; printf %s {SECRET}; {middle}; {halves}")
    async with yard.app("bash:probe.bash", output={"limit_bytes": 1000, "spill": True}) as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert result.text.startswith("x" * 493 + "[redacted SOME_TOKEN]\n[... ")
    assert SECRET not in everything(yard, result)
    assert SECRET[:7] not in everything(yard, result)


@pytest.mark.parametrize("command", ["seq 9000 | sed s/^/{}/ >&2", "seq 9000 | sed s/^/{}/; sleep 300"])
async def test_in_files_that_a_result_does_not_tell_of(yard, command):
    yard.config("shell:command", output={"limit_bytes": 1000})
    async with yard.open(yard.folder / "toolyard.json") as app:
        arguments = {"command": command.format(SECRET), "timeout": 0.5 if "sleep" in command else PATIENCE}
        result = await app.call_tool("shell", arguments)
    kept = [path.read_text() for path in (yard.folder / "sessions/outputs").rglob("*.*")]
    assert [text.count("[redacted SOME_TOKEN]") for text in kept] == [9000]
    assert SECRET not in everything(yard, result, result.data, *kept)


async def test_in_what_a_cancelled_call_had_printed(yard):
    os.mkfifo(yard.folder / "here")
    yard.config("shell:command", "shell:session", output={"limit_bytes": 1000})
    command = f"seq 9000 | sed s/^/{SECRET}/; echo x >{yard.folder}/here; sleep 300"
    for tool in ("shell", "bash"):
        cancelled = asyncio.Event()
        async with yard.open(yard.folder / "toolyard.json") as app:
            call = ToolCall(id=tool, name=tool, arguments={"command": command})
            turn = asyncio.create_task(app.call_tools([call], cancelled=cancelled))
            await asyncio.to_thread((yard.folder / "here").read_text)
            cancelled.set()
            result = (await turn)[tool]
        assert result.truncated.kept_at.read_text().count("[redacted SOME_TOKEN]") == 9000
        assert SECRET not in everything(yard, result)


async def test_in_the_data_of_a_result_however_deep(yard):
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool("shell", {"command": f"echo {SECRET}; echo {SECRET} >&2"})
    assert SECRET not in everything(yard, result, result.data)


async def test_in_the_traceback_of_a_crash(yard, caplog):
    class Broken:
        async def decide(self, request):
            raise RuntimeError(f"failed with {SECRET}")

    yard.tool()
    async with yard.open(yard.config("bash:probe.bash"), permissions=Broken()) as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert "RuntimeError" in caplog.text
    assert SECRET not in everything(yard, result) + caplog.text


async def test_in_a_problem_of_the_configuration(yard):
    yard.file("toolyard.json", json.dumps({"plugins": ["git+https://x:${env:SOME_TOKEN}@example.com/repo"]}))
    async with yard.open(yard.folder / "toolyard.json") as app:
        problems = app.get_config_errors()
    assert problems
    assert SECRET not in json.dumps(problems)


async def test_no_process_of_a_tool_has_it_in_its_environment(yard):
    yard.tool(run="cat /proc/self/environ /proc/$$/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; true")
    async with yard.app("bash:probe.bash", sandbox={"mode": "off"}) as app:
        result = await app.call_tool("probe", {})
    assert "PATH=" in result.text
    assert "SOME_TOKEN" not in result.text


async def test_in_a_sandbox_not_even_the_application_s_own_environment_can_be_read(yard):
    import os

    need_backend("bubblewrap", "bubblewrap-pids", "landlock")
    yard.tool(run=f"set +o pipefail; cat /proc/{os.getpid()}/environ | tr '\\0' '\\n' | grep -c ^PATH= || true")
    async with yard.app("bash:probe.bash", sandbox={"mode": "require", "properties": ["processes"]}) as app:
        assert (await app.call_tool("probe", {})).text == "0\n"
    async with yard.app("bash:probe.bash", sandbox={"mode": "off"}) as app:
        assert (await app.call_tool("probe", {})).text == "1\n", "or this would prove nothing"


async def test_what_is_passed_by_name_is_passed_and_still_redacted(yard):
    yard.tool(run='printf "%s" "$SOME_TOKEN"')
    async with yard.app("bash:probe.bash", policy={"pass_env": ["SOME_TOKEN"]}) as app:
        assert (await app.call_tool("probe", {})).text == "[redacted SOME_TOKEN]"
    assert json.loads(next(Path(yard.folder, "sessions", "audit").glob("*.ndjson")).read_text().splitlines()[0])[
        "envKeys"
    ] == ["SOME_TOKEN"]


async def test_values_for_the_configuration_are_secret_only_where_their_name_or_they_themselves_say_so(yard):
    values = {
        "REGION": "eu-central-1",
        "DATA_FOLDER": "/srv/data/long",
        "SERVICE_TOKEN": "quite-an-odd-word",
        "SERVICE": "sk-abcdefghijklmnop1234",
        "HIDDEN": "hidden-by-its-key",
    }
    yard.tool(run="echo " + " ".join(f"'{value}'" for value in values.values()))
    config = yard.config("bash:probe.bash", agents={"default": {"api_key": "${env:HIDDEN}", "place": "${env:REGION}"}})
    async with yard.open(config, config_env=values) as app:
        text = (await app.call_tool("probe", {})).text
    assert text.startswith("eu-central-1 /srv/data/long [redacted SERVICE_TOKEN] [redacted SERVICE] [redacted ")
    assert "hidden-by-its-key" not in text


async def test_in_the_folder_of_a_call_and_its_id(yard, tmp_path):
    yard.tool(run="echo done")
    folder = tmp_path / f"of-{SECRET}"
    folder.mkdir()
    config = yard.config("bash:probe.bash", working_directory=str(folder))
    async with yard.open(config) as app:
        results = await app.call_tools([ToolCall(id=f"call-{SECRET}", name="probe", arguments={"value": "x"})])
    assert [result.ok for result in results.values()] == [True]
    assert SECRET not in everything(yard)
    assert "of-[redacted SOME_TOKEN]" in everything(yard)


async def test_in_what_is_asked_of_a_host_and_no_rule_is_offered_for_it(yard):
    """A name with a secret in it goes to whoever answers for names, and to whoever reads the questions."""
    asked: list[tuple[PermissionRequest, Verdict]] = []

    class Person:
        async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
            asked.append((request, verdict))
            return Answer(allowed=False, reason="no")

    questions = HostQuestions(
        RulePolicy(
            Sections({}, Document(yard.folder / "toolyard.json", "{}", {})), GrantStore(yard.folder / "grants.json")
        ),
        Person(),
        agent="default",
        session="s",
        workspace=yard.folder,
        hide=lambda text: text.replace(SECRET, "[hidden]"),
    )
    found = await questions.decide(f"{SECRET}.example.com", 443)
    ((request, verdict),) = asked
    assert not found.allowed
    assert verdict.offers == ()
    assert "[hidden].example.com:443" in await request.preview()
    assert SECRET not in f"{request.plan} {request.call_id} {verdict} {await request.preview()}"


def test_a_wish_to_reach_a_host_is_recorded_without_a_secret_in_its_name(yard):
    written: list[dict] = []

    class Log:
        def write(self, record: dict) -> None:
            written.append(record)

        def close(self) -> None: ...

    pools = ProcessPools(audit=Log(), session="s", hide=lambda text: text.replace(SECRET, "[hidden]"))
    reason = f"{SECRET}.example.com is not named"
    pools._record_connection(ConnectionAttempt(host=f"{SECRET}.example.com", port=443, allowed=False, reason=reason))
    assert written[0]["host"] == "[hidden].example.com"
    assert SECRET not in repr(written)


def test_a_name_of_a_host_hides_no_secret_behind_small_letters():
    assert Redactor({"A_TOKEN": "Zq8vLw3R"}).redact_in_host("x.zq8vlw3r.example") == "x.[redacted A_TOKEN].example"
