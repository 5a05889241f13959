"""Verdicts on whole lines: which rule wins, what cannot be looked over, and what leads around paths."""

from __future__ import annotations

import pytest

from judged_workspace import make_workspace
from toolyard.core.tool import JsonInput, Plan, ToolSpec
from toolyard.permissions.decide import decide_line, decide_request, paths_of
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.presets import make_book
from toolyard.permissions.rules import RuleBook, RuleOrigin, parse_rule
from toolyard.permissions.section import Section
from toolyard.permissions.verdict import PermissionRequest

pytestmark = pytest.mark.anyio
HERE = RuleOrigin(label="test")


def rules(decision, *values):
    return [parse_rule(value, decision, HERE) for value in values]


async def decision(line, folder, book):
    return (await decide_line(line, book, CallSite(tool="bash", cwd=str(folder), workspace=str(folder)))).decision


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
async def test_a_users_own_rule_is_not_shadowed_by_a_narrower_one_of_a_preset(tmp_path, preset):
    section = Section(is_configured=True, preset=preset)
    assert await decision("cat /etc/hostname", tmp_path, make_book(section)) == "ask"
    book = make_book(section, rules("allow", "cat **", "git log --output=x **"))
    assert await decision("cat /etc/hostname", tmp_path, book) == "allow"
    assert await decision("head /etc/hostname", tmp_path, book) == "ask"
    assert await decision("cat src/a", tmp_path, book) == "allow"


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize(
    ("line", "fine"),
    [
        ("cd ..; git log", True),
        ("cd ..; cd ..; git log", False),
        ("for d in a; do git log; done; cd ..; git log", True),
        ("for d in a b; do cd ..; git log; done", False),
        ("for d in a b; do cd ..; ls; done", False),
        ("for d in a b; do cd ..; cat README.md; done", False),
        ("while read -r d; do cd ..; git log; done < list", False),
        ("until test -e x; do cd ..; ls; done", False),
        ("for ((i = 0; i < 2; i++)); do cd ..; git log; done", False),
        ("for d in a b; do for e in c; do cd ..; done; ls; done", False),
        ("for d in a b; do ls; done", True),
        ("for d in a b; do git log; done", True),
    ],
)
async def test_what_a_loop_does_it_may_do_again_in_the_next_folder(tmp_path, preset, line, fine):
    workspace = make_workspace(tmp_path)
    where = workspace / "src"
    (where / "list").write_text("a\nb\n")
    book = make_book(Section(is_configured=True, preset=preset))
    found = await decide_line(line, book, CallSite(tool="bash", cwd=str(where), workspace=str(workspace)))
    assert (found.decision == "allow") is fine, found.reason


CHAINS = {
    **{
        name: f"{name} " * 1000 + "ls"
        for name in ("nice", "env", "command", "nohup", "xargs", "npx", "eval", "time", "!")
    },
    "timeout": "timeout 5 " * 900 + "ls",
    "mixed": "env nice " * 700 + "ls",
    "sh": "sh -c " * 900 + "ls",
    "git": "git " + "-C .. " * 1000 + "log",
    "substitutions": "echo " + "$(" * 300 + "ls" + ")" * 300,
    "semicolons": "ls;" * 3000,
    "lines": "ls\n" * 3000,
    "pipes": "ls|" * 700 + "ls",
    "subshells": "( " * 300 + "ls" + ")" * 300,
    "loops": "for a in 1 2; do " * 100 + "ls;" + "done;" * 100,
    "exec": "find . " + "-exec env -exec " * 300 + "{} +",
}


@pytest.mark.parametrize("line", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("kind", ["preset", "deny", "trusted"])
async def test_a_chain_of_any_length_is_asked_about_and_breaks_nothing(tmp_path, line, kind):
    against = rules("deny", "rm **", {"read": "secrets/**"})
    book = {
        "preset": make_book(Section(is_configured=True, preset="read-only")),
        "deny": RuleBook([*rules("allow", "ls **"), *against]),
        "trusted": RuleBook(against, trusts=True),
    }[kind]
    found = await decision(line, tmp_path, book)
    assert found == "ask" or (kind == "trusted" and line.startswith("git"))


async def test_other_rights_are_refused_behind_any_number_of_wrappers(tmp_path):
    assert await decision("nice " * 500 + "sudo ls", tmp_path, RuleBook([], trusts=True)) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        *("cat /proc/$PPID/environ", "cat /proc/$x/environ", 'cat "/proc/$$/environ"', "cat //proc/self/environ"),
        *(
            "cat /proc/../proc/1/environ",
            "cd /proc/self && cat environ",
            "cd /proc/self/root && ls",
            "ls /proc/self/fd",
        ),
        *("cat /proc/self/task/1/environ", "cat /./proc/1/mem", "grep --file=/proc/1/environ x", "cat /proc/*/environ"),
        *("cat {/proc/1/environ,x}", "cat /proc/{1,2}/environ", "ls /proc/self/cwd/..", "cat /proc/thread-self/maps"),
    ],
)
async def test_no_rule_for_a_program_covers_what_looks_into_a_process(tmp_path, line):
    book = RuleBook(rules("allow", "cat **", "cd **", "ls **", "grep **"))
    assert await decision(line, tmp_path, book) == "ask"
    for other in ("cat /proc/cpuinfo", "cat /proc/self/status", "cat /etc/hostname", "ls processes"):
        assert await decision(other, tmp_path, book) == "allow"


def test_the_paths_of_a_call_are_found_however_deep_they_are():
    deep = {"path": "secret"}
    for _ in range(5000):
        deep = {"x": [deep]}
    assert paths_of(deep) == ["secret"]
    assert sorted(paths_of({"path": "a", "more": [{"file_path": ["b", 1]}, {"dest": "c"}], "text": "d"})) == [
        "a",
        "b",
        "c",
    ]


async def test_secrets_are_in_no_verdict_on_a_tool_either(tmp_path):
    async def preview():
        return ""

    request = PermissionRequest(
        call_id="1",
        tool=ToolSpec(name="write_file", description="", input=JsonInput(schema={})),
        kind="python_function",
        plan=Plan(arguments={"path": "kept/tok-123"}),
        preview=preview,
        redact=lambda text: text.replace("tok-123", "***"),
    )
    site = CallSite(tool="write_file", cwd=str(tmp_path), workspace=str(tmp_path), protected=(str(tmp_path / "kept"),))
    verdict = await decide_request(request, RuleBook([]), site)
    assert verdict.decision == "ask"
    assert "holds the rules themselves" in verdict.reason
    assert "tok-123" not in str(verdict)


@pytest.mark.parametrize(
    ("tool", "decision", "doubt"),
    [(None, "ask", "may_be_refused"), ("bash", "ask", "may_be_refused"), ("other", "allow", None)],
)
async def test_a_rule_that_may_be_meant_counts_only_for_its_own_tool(tmp_path, tool, decision, doubt):
    denied = {"command": "docker rm **"} | ({"tool": tool} if tool else {})
    book = RuleBook([*rules("allow", "docker --debug rm x"), *rules("deny", denied)])
    found = await decide_line(
        "docker --debug rm x", book, CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    )
    assert (found.decision, found.parts[0].doubt) == (decision, doubt), found.reason


@pytest.mark.parametrize(
    ("rule", "line", "decision"),
    [
        ("python3 -m pytest **", "python3 -m pytest -q tests", "allow"),
        ("python3 run.py **", "python3 run.py --fast", "allow"),
        ("python3 -X dev **", "python3 -X dev other.py", "ask"),
        ("python3 -W ignore **", "python3 -W ignore -c 'import os'", "ask"),
        ("python3 -m **", "python3 -m http.server", "ask"),
        ("node --trace-warnings --no-deprecation **", "node --trace-warnings --no-deprecation -e 1", "ask"),
        ("node server.js **", "node server.js --port 1", "allow"),
        ("bash -e -u **", "bash -e -u other.sh", "ask"),
    ],
)
async def test_a_rule_for_an_interpreter_covers_more_words_only_where_it_names_the_code(tmp_path, rule, line, decision):
    site = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    assert (await decide_line(line, RuleBook(rules("allow", rule)), site)).decision == decision
