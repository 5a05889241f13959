"""Asking is a protocol: a question, an answer that is bound to it, and no answer means no."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from support import PATIENCE
from toolyard.permissions.approval import ApprovalDesk
from toolyard.permissions.grants import default_grants_file
from toolyard.permissions.verdict import Answer
from yard import Yard

pytestmark = pytest.mark.anyio
ASK = {"preset": "ask-everything", "deny": ["rm **"]}


@pytest.fixture
def yard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Yard(tmp_path)


class Person:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, **answer):
        self.answer = answer
        self.asked = []

    async def approve(self, request, verdict):
        self.asked.append((request, verdict))
        return Answer(**{"allowed": True, "reason": "said so", **self.answer})


async def run(app, command):
    return await asyncio.wait_for(app.call_tool("shell", {"command": command}), PATIENCE)


async def test_a_question_has_all_that_an_answer_needs_and_a_no_reaches_the_model(yard):
    desk = ApprovalDesk()
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=desk) as app:
        call = asyncio.ensure_future(run(app, "ls \u202e | cat > out"))
        question = await asyncio.wait_for(anext(desk.questions()), PATIENCE)
        assert question.tool == "shell"
        assert question.command == "ls \\u{202e} | cat > out", "nothing can hide what is approved"
        assert {part.kind for part in question.parts} == {"command", "redirection", "doubt"}
        assert question.offers == (), "a line that cannot be proven cannot be allowed for good"
        assert json.dumps(question.as_mapping())
        assert desk.pending() == [question]
        assert desk.refuse(question, reason="not that way")
        assert "not that way" in (await call).text
        assert not desk.refuse(question, reason="again"), "an answer comes too late"
    assert desk.pending() == []


async def test_an_answer_holds_for_one_call_and_no_other(yard):
    desk = ApprovalDesk()
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=desk) as app:
        questions = desk.questions()
        first, second = (asyncio.ensure_future(run(app, "echo same")) for _ in range(2))
        one, two = await anext(questions), await anext(questions)
        assert one.fingerprint != two.fingerprint
        assert desk.allow(one)
        assert (await first).ok
        assert not second.done()
        assert desk.refuse(two, reason="once is enough")
        assert (await second).failure == "denied"


@pytest.mark.parametrize("bound_to", ["", "0" * 64])
async def test_an_answer_for_another_call_is_none(yard, bound_to):
    person = Person(bound_to=bound_to)
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=person) as app:
        refused = await run(app, "echo x")
    assert refused.failure == "denied"
    assert "another call" in refused.text


async def test_no_answer_in_time_means_no(yard):
    config = yard.config("shell:command", permissions={**ASK, "ask_timeout_seconds": 0.05})
    async with yard.open(config, approver=ApprovalDesk()) as app:
        refused = await run(app, "echo x")
    assert refused.failure == "denied"
    assert "nobody answered within 0.05 seconds" in refused.text


async def test_an_approver_that_breaks_means_no(yard):
    class Broken:
        async def approve(self, request, verdict):
            raise RuntimeError("no line")

    async with yard.open(yard.config("shell:command", permissions=ASK), approver=Broken()) as app:
        assert (await run(app, "echo x")).failure == "denied"


async def test_a_cancelled_call_takes_its_question_along(yard):
    desk = ApprovalDesk()
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=desk) as app:
        call = asyncio.ensure_future(run(app, "echo x"))
        await anext(desk.questions())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert desk.pending() == []


async def test_an_answer_for_the_session_holds_until_its_end_and_is_not_written_down(yard):
    person = Person(scope="session")
    config = yard.config("shell:command", permissions=ASK)
    async with yard.open(config, approver=person) as app:
        assert (await run(app, "echo one")).ok
        assert (await run(app, "echo two")).ok
        assert (await run(app, "ls")).ok
        assert len(person.asked) == 2
        config.write_text(config.read_text() + "\n")
        assert (await run(app, "echo three")).ok
        assert len(person.asked) == 2, "also when the configuration was read again"
    assert not default_grants_file().exists()
    async with yard.open(config, approver=person) as app:
        await run(app, "echo one")
    assert len(person.asked) == 3


async def test_an_answer_for_good_never_beats_a_rule_against_it(yard):
    person = Person(scope="always")
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=person) as app:
        assert (await run(app, "rm x")).failure == "denied"
    assert person.asked == []
    config = yard.config("shell:command", permissions={"preset": "ask-everything", "ask": ["echo **"]})
    async with yard.open(config, approver=person) as app:
        assert (await run(app, "echo x")).ok
        assert (await run(app, "echo x")).ok
    assert len(person.asked) == 2
    assert person.asked[0][1].offers == ()


async def test_secrets_are_in_no_question_and_in_no_grant(yard, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-12345678")
    person = Person(scope="always")
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=person) as app:
        assert (await run(app, "curl -H tok-12345678 x")).failure in (None, "exit_code")
        assert (await run(app, "echo tok-12345678")).ok
    assert "tok-12345678" not in str([verdict for _, verdict in person.asked])
    assert "tok-12345678" not in default_grants_file().read_text()
    assert "tok-12345678" not in str(yard.audit())


async def test_a_tool_that_runs_no_command_is_asked_about_by_its_name(yard):
    yard.tool(run="echo ran")
    person = Person(scope="session")
    async with yard.open(yard.config("bash:probe.bash", permissions=ASK), approver=person) as app:
        assert (await app.call_tool("probe", {"value": "x"})).ok
        assert (await app.call_tool("probe", {"value": "y"})).ok
    assert [offer.rule for offer in person.asked[0][1].offers] == [{"tool": "probe"}]
    assert len(person.asked) == 1


async def test_without_a_section_everything_configured_runs_but_what_the_user_forbade(yard):
    from toolyard.permissions.grants import GrantStore

    async with yard.app("shell:command") as app:
        assert (await run(app, "x=1; eval 'echo $x'")).ok
        GrantStore(default_grants_file()).add("deny", {"command": "rm **"}, workspace=None, source="", by="test")
        assert (await run(app, "echo x")).ok
        assert (await run(app, "rm nothing")).failure == "denied"
        assert (await run(app, "$(echo rm) nothing")).failure == "denied", "what may be forbidden is asked about"


async def test_damaged_grants_are_a_problem_of_the_application(yard):
    file = default_grants_file()
    file.parent.mkdir(parents=True)
    file.write_text("{")
    async with yard.app("shell:command", permissions=ASK) as app:
        assert [problem["type"] for problem in app.get_config_errors()] == ["grants_damaged"]


async def test_a_broken_section_is_a_problem_and_allows_nothing(yard):
    async with yard.app("shell:command", permissions={"preset": "trusted", "deny": [{"comand": "rm **"}]}) as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "permissions_rule"
        assert problem["line"]
        refused = await run(app, "echo x")
    assert refused.failure == "denied"
    assert "damaged" in refused.text


BROKEN = [
    None,
    [],
    "trusted",
    {"preset": "trusted", "dney": ["rm **"]},
    {"preset": "trust"},
    {"preset": "trusted", "deny": "rm **"},
    {"preset": "trusted", "deny": [{"tool": 5}]},
    {"preset": "trusted", "deny": [{"command": "rm **", "write": "x"}]},
    {"preset": "trusted", "ask_timeout_seconds": 0},
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
@pytest.mark.parametrize("layer", ["top", "provider", "agent", "mixin", "provider of all"])
async def test_a_section_that_is_broken_anywhere_is_told_once_and_allows_nothing(yard, broken, layer):
    section = {"permissions": broken}
    config = {
        "top": section,
        "provider": {"providers": {"p": section}, "agents": {"default": {"provider": "p"}}},
        "agent": {"agents": {"default": section}},
        "mixin": {"mixins": {"m": section}, "agents": {"default": {"mixin_refs": ["m"]}}},
        "provider of all": {"providers": {"p": section}, "provider": "p"},
    }[layer]
    async with yard.app("shell:command", **config) as app:
        problems = [problem for problem in app.get_config_errors() if problem["type"] == "permissions_rule"]
        assert len(problems) == 1, problems
        assert problems[0]["line"] > 1
        assert (await app.call_tool("shell", {"command": "touch made"})).failure == "denied"


async def test_the_rules_of_a_provider_that_the_file_names_for_all_agents_hold(yard):
    deny = {"permissions": {"preset": "trusted", "deny": ["rm **"]}}
    async with yard.app("shell:command", providers={"p": deny}, provider="p", agents={"a": {}}) as app:
        assert (await app.call_tool("shell", {"command": "rm x"}, agent="a")).failure == "denied"


async def test_a_preset_may_come_from_a_placeholder(yard, monkeypatch):
    monkeypatch.setenv("PRESET_OF_MINE", "read-only")
    agents = {"default": {"permissions": {"preset": "${env:PRESET_OF_MINE}"}}}
    yard.config("shell:command", agents=agents)
    async with yard.app("shell:command", agents=agents) as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("shell", {"command": "touch made"})).failure == "denied"
        monkeypatch.setenv("PRESET_OF_MINE", "no-such-preset")
        await app.reload()
        (problem,) = app.get_config_errors()
        assert "'preset' must be one of" in problem["detail"]


async def test_a_broken_edit_of_the_configuration_leaves_every_rule_in_force(yard):
    path = yard.config("shell:command", permissions={"preset": "trusted", "deny": ["touch **"]})
    async with yard.open(path) as app:
        for text in ("{", "[]", "", None):
            path.unlink() if text is None else path.write_text(text)
            refused = await run(app, "touch made")
            assert (refused.failure, "touch **" in refused.text) == ("denied", True)
            assert any("last good configuration" in problem["detail"] for problem in app.get_config_errors())
        yard.config("shell:command", permissions={"preset": "trusted"})
        assert (await run(app, "echo fine")).failure is None


@pytest.mark.parametrize("text", ["{", "[]", "3"])
async def test_without_a_configuration_that_can_be_read_there_is_nothing_to_call(yard, text):
    async with yard.open(yard.file("toolyard.json", text), only="shell:command") as app:
        assert (await run(app, "touch made")).failure == "unknown_tool"
        assert not app.has_configuration
        assert len(app.get_config_errors()) == 1


async def in_session(app, command):
    return await asyncio.wait_for(app.call_tool("bash", {"command": command}), PATIENCE)


@pytest.mark.parametrize(
    ("definition", "later", "taken_back"),
    [
        ("ls() { echo other; }", "ls", "unset -f ls"),
        ("function pwd { echo other; }", "pwd | cat", "unset -f pwd"),
        ("shopt -s expand_aliases; alias wc='echo other'", "echo a && timeout 5 wc x", "unalias wc"),
        ("enable -n echo", "echo x", "enable echo"),
    ],
)
async def test_a_word_with_another_meaning_in_a_session_is_asked_about(yard, definition, later, taken_back):
    person = Person()
    config = yard.config("shell:session", "shell:command", permissions={"preset": "workspace"})
    async with yard.open(config, approver=person) as app:
        await in_session(app, later)
        assert person.asked == [], "no rule has anything against it"
        await in_session(app, definition)
        assert len(person.asked) == 1
        await in_session(app, later)
        assert len(person.asked) == 2
        assert "another meaning" in person.asked[-1][1].reason
        await run(app, later)
        assert len(person.asked) == 2, "another shell has its own words"
        await in_session(app, taken_back)
        asked = len(person.asked)
        await in_session(app, later)
        assert len(person.asked) == asked


async def test_what_was_refused_gives_no_word_another_meaning(yard):
    person = Person(allowed=False)
    async with yard.open(yard.config("shell:session", permissions={"preset": "workspace"}), approver=person) as app:
        assert (await in_session(app, "ls() { echo other; }")).failure == "denied"
        assert (await in_session(app, "ls")).ok


async def test_a_session_that_begins_anew_has_its_words_back(yard):
    person = Person()
    async with yard.open(yard.config("shell:session", permissions={"preset": "workspace"}), approver=person) as app:
        await in_session(app, "ls() { echo other; }")
        await asyncio.wait_for(app.call_tool("bash", {"restart": True}), PATIENCE)
        await in_session(app, "ls")
    assert len(person.asked) == 1


async def test_reasons_hide_nothing_either(yard):
    desk = ApprovalDesk()
    async with yard.open(yard.config("shell:command", permissions=ASK | {"allow": ["tee **"]}), approver=desk) as app:
        call = asyncio.ensure_future(run(app, "tee '\x1b[2K\u202e'"))
        question = await asyncio.wait_for(anext(desk.questions()), PATIENCE)
        shown = json.dumps(question.as_mapping(), ensure_ascii=False)
        assert desk.refuse(question, reason="no")
        await call
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert all(part.reason.isprintable() for part in question.parts)


def yes(request, verdict):
    return True


def not_that(request):
    return request.plan.command != "ls"


async def not_here(request, verdict):
    return Answer(allowed=False, reason=f"not here ({verdict.decision})")


async def only_the_request(request):
    return request.tool.name == "shell"


class Callable:
    def __call__(self, request, *rest):
        return bool(rest)


@pytest.mark.parametrize(
    ("approver", "allowed", "words"),
    [
        (yes, True, ""),
        (not_that, False, "refused by not_that"),
        (not_here, False, "not here (ask)"),
        (only_the_request, True, ""),
        (lambda request: True, True, ""),
        (Callable(), True, ""),
        (lambda request, verdict: 1, False, "the question could not be asked"),
        (lambda request, verdict: 1 / 0, False, "the question could not be asked"),
    ],
)
async def test_a_plain_function_answers(yard, approver, allowed, words):
    async with yard.open(yard.config("shell:command", permissions=ASK), approver=approver) as app:
        result = await run(app, "ls")
    assert (result.failure is None) is allowed
    assert words in result.text


async def test_a_function_that_waits_holds_up_nobody_else(yard):
    asked, go_on = threading.Event(), threading.Event()

    def wait(request):
        asked.set()
        return go_on.wait(PATIENCE)

    async with yard.open(yard.config("shell:command", permissions=ASK | {"allow": ["echo **"]}), approver=wait) as app:
        waiting = asyncio.ensure_future(run(app, "ls"))
        assert await asyncio.to_thread(asked.wait, PATIENCE)
        assert (await run(app, "echo hi")).data["stdout"] == "hi\n"
        go_on.set()
        assert (await waiting).ok
