"""`toolyard permissions`, and what a person who types a call, or is asked about one, sees."""

from __future__ import annotations

import json
import re

import pytest

from support import Terminal

RULES = {"allow": ["ls **"], "deny": ["rm **"]}
TRUSTED = {"permissions": {"preset": "trusted"}}
PERMISSIONS = {"preset": "ask-everything", **RULES}


@pytest.fixture
def rules(toolyard):
    return toolyard.file("rules.json", json.dumps(RULES))


@pytest.mark.parametrize(
    ("command", "decision", "part"),
    [
        ("ls -la", "allow", {"rule": "ls **", "doubt": None}),
        ("touch x", "ask", {"rule": None, "doubt": "no_rule"}),
        ("rm x", "deny", {"rule": "rm **", "doubt": None}),
    ],
)
def test_check_says_which_rule_or_doubt_decides_with_its_place(toolyard, rules, command, decision, part):
    ran = toolyard("permissions", "check", command, "--rules", rules, "--json")
    assert ran.code == 0
    record = ran.json
    assert record["verdict"] == decision
    assert {key: record["parts"][0][key] for key in part} == part
    if part["rule"]:
        assert record["parts"][0]["where"].startswith(f"{rules}:1:")


def test_check_tells_a_person_the_same(toolyard, rules):
    ran = toolyard("permissions", "check", "ls && touch x", "--rules", rules)
    assert ran.out.splitlines() == [
        "ask (reach work): touch x: no rule allows it",
        f"  allow ls: the rule 'ls **' ({rules.name}:1:12)",
        "  ask   touch x: no rule allows it",
        "  always would save: touch **",
    ]


def test_check_judges_by_the_configuration_and_the_grants(toolyard):
    toolyard.config("shell:command", permissions=PERMISSIONS, agents={"b": TRUSTED, "default": {}})
    assert toolyard("permissions", "check", "touch x", "--json").json["verdict"] == "ask"
    assert toolyard("permissions", "check", "touch x", "--agent", "b", "--json").json["verdict"] == "allow"
    assert toolyard("permissions", "allow", "touch **").code == 0
    assert toolyard("permissions", "check", "touch x", "--json").json["verdict"] == "allow"


def test_rules_are_those_of_the_agent_that_a_call_would_be_made_for(toolyard):
    toolyard.config("shell:command", permissions=PERMISSIONS, agents={"only": TRUSTED})
    assert toolyard("permissions", "check", "touch x", "--json").json["verdict"] == "allow"
    assert toolyard("call", "shell", '{"command": "touch x"}').code == 0
    ran = toolyard("permissions", "list", "--agent", "onyl")
    assert (ran.code, "there is no agent 'onyl'; known: only" in ran.err) == (2, True)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"allow": "ls"}', '{"deny": ["rm ** x"]}'])
def test_rules_that_cannot_be_read_are_said(toolyard, text):
    ran = toolyard("permissions", "check", "ls", "--rules", toolyard.file("rules.json", text))
    assert ran.code == 2
    assert "rules.json" in ran.err
    assert ran.out == ""


CASES = [
    {"id": "one", "command": "ls", "rules": RULES, "must": "auto_allow", "why": "looking", "tier": "core"},
    {"id": "two", "command": "ls; rm x", "rules": RULES, "must": "deny"},
    {"id": "three", "command": "ls > x", "rules": RULES, "must": "not_auto_allow"},
]


def cases(toolyard, *lines):
    return toolyard.file("cases.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))


def test_cases_that_are_as_they_must_be(toolyard):
    ran = toolyard("permissions", "test", cases(toolyard, *CASES))
    assert (ran.code, ran.out, ran.err) == (0, "", "3 as they must be, 0 not\n")
    records = toolyard("permissions", "test", cases(toolyard, *CASES), "--json").json
    verdicts = {record["id"]: record["verdict"] for record in records}
    assert verdicts == {"one": "allow", "two": "deny", "three": "ask"}
    assert all(record["reason"] and record["parts"] for record in records)


def test_cases_that_differ_are_printed(toolyard):
    wrong = [
        {**CASES[0], "must": "deny"},
        {**CASES[2], "must": "auto_allow"},
        {"command": "ls", "must": "not_auto_allow"},
    ]
    ran = toolyard("permissions", "test", cases(toolyard, CASES[1], *wrong))
    assert ran.code == 1
    assert "one: must be deny, is allow" in ran.out
    assert "three: must be auto_allow, is ask" in ran.out
    assert "line 4: must be not_auto_allow, is allow" in ran.out, "without rules of its own, those in force"
    assert "1 as they must be, 3 not" in ran.err


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"command": "ls"}',
        '{"command": "ls", "must": "x"}',
        '{"command": 1, "must": "deny"}',
        '{"command": "ls", "must": "deny", "rules": {"denny": []}}',
    ],
)
def test_a_line_that_is_no_case_is_named(toolyard, line):
    ran = toolyard("permissions", "test", toolyard.file("cases.jsonl", line))
    assert ran.code == 2
    assert "cases.jsonl:" in ran.err


def test_every_bad_line_is_named_and_the_others_are_judged(toolyard):
    lines = ["{", '{"command": "ls", "must": "deny", "id": "mine"}', "", '{"command": "ls"}', "[]"]
    ran = toolyard("permissions", "test", toolyard.file("cases.jsonl", "\n".join(lines)))
    assert ran.code == 2
    assert [line for line in ("cases.jsonl:1:", "cases.jsonl:4:", "cases.jsonl:5:") if line not in ran.err] == []
    assert "mine: must be deny" in ran.out
    assert "3 that are no case" in ran.err


def test_a_rule_about_a_whole_tool_is_in_the_check(toolyard):
    toolyard.config("shell:command", permissions={"preset": "trusted", "deny": [{"tool": "bash", "reason": "ask me"}]})
    denied = toolyard("permissions", "check", "ls", "--json").json
    assert (denied["verdict"], denied["reason"]) == ("deny", "ask me")
    assert toolyard("permissions", "check", "ls", "--tool", "shell", "--json").json["verdict"] == "allow"


def test_a_file_that_may_be_written_names_its_rule_and_that_of_the_rules_is_none(toolyard):
    toolyard.config("shell:command", permissions={"preset": "ask-everything", "allow": ["ls", {"write": "**"}]})
    parts = toolyard("permissions", "check", "ls > out", "--json").json["parts"]
    assert [part["rule"] for part in parts] == ["ls", "write=**"]
    assert "toolyard.json:1:" in parts[1]["where"]
    assert toolyard("permissions", "check", "ls > toolyard.json", "--json").json["verdict"] == "ask"


def test_the_file_of_the_rules_is_known_from_another_workspace(toolyard):
    allow = ["ls", {"write": f"{toolyard.folder}/**"}]
    toolyard.config("shell:command", permissions={"preset": "ask-everything", "allow": allow})
    (toolyard.folder / "below").mkdir()
    ran = toolyard("--workspace", "below", "permissions", "check", "ls > ../toolyard.json", "--json")
    assert "holds the rules themselves" in ran.json["reason"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("python3 **", "spell the command out"),
        ("sudo **", "whatever the rules say"),
        ("sudo ls", "whatever the rules say"),
        ("python3 -c pass", ""),
        ("python3 -m pytest **", ""),
        ("ls **", ""),
    ],
)
def test_a_grant_that_allows_nothing_says_so(toolyard, rule, says):
    ran = toolyard("permissions", "allow", rule)
    assert ran.code == 0
    assert says in ran.err
    assert ("allows nothing" in ran.err) is bool(says)


def test_grants_are_given_listed_and_revoked(toolyard):
    toolyard.config("shell:command", permissions=PERMISSIONS)
    given = toolyard("permissions", "allow", "git status **")
    assert given.out.endswith(f"allow git status ** in {toolyard.folder}\n")
    assert toolyard("permissions", "deny", '{"tool": "greet"}').code == 0
    rows = toolyard("permissions", "list", "--json").json
    granted = [(row["decision"], row["rule"]) for row in rows if row["id"]]
    assert granted == [("allow", "git status **"), ("deny", "tool=greet")]
    assert ("deny", "rm **") in [(row["decision"], row["rule"]) for row in rows]
    assert "toolyard.json:1:" in toolyard("permissions", "list").out
    assert toolyard("permissions", "revoke", given.out.split()[0]).code == 0
    assert toolyard("permissions", "revoke", "tool=greet").code == 0
    assert toolyard("permissions", "revoke", "tool=greet").code == 2
    assert [row for row in toolyard("permissions", "list", "--json").json if row["id"]] == []
    file = toolyard.home / "state" / "toolyard" / "permissions.json"
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("where", "told"), [([], " in "), (["--everywhere"], ", everywhere")])
def test_a_grant_of_everything_warns_and_says_how_to_take_it_back(toolyard, where, told):
    ran = toolyard("permissions", "allow", "**", *where)
    assert ran.code == 0
    assert f"this allows every command that no rule denies{told}" in ran.err
    (undo,) = re.findall(r"hint: toolyard (permissions revoke \S+)", ran.err)
    assert toolyard(*undo.split()).code == 0
    assert toolyard("permissions", "deny", "**").err == "", "which does no harm"


def test_ones_own_rules_are_listed_before_a_presets(toolyard):
    toolyard.config("shell:command", permissions={"preset": "read-only", "deny": ["rm **"]})
    assert toolyard("permissions", "allow", "git fetch **").code == 0
    rows = toolyard("permissions", "list", "--json").json
    assert [row["rule"] for row in rows][:2] == ["rm **", "git fetch **"]
    assert all(row["where"] == "preset read-only" for row in rows[2:])
    assert len(rows) > 50
    assert toolyard("permissions", "list").out.startswith("deny")


@pytest.mark.parametrize("rule", ["ls ** x", "", "{", '{"tol": "x"}'])
def test_a_rule_that_is_none_is_not_kept(toolyard, rule):
    ran = toolyard("permissions", "deny", rule)
    assert ran.code == 2
    assert not (toolyard.home / "state" / "toolyard" / "permissions.json").exists()


def test_damaged_grants_are_said_loudly(toolyard):
    assert toolyard("permissions", "deny", "rm **").code == 0
    toolyard.home.joinpath("state", "toolyard", "permissions.json").write_text("{")
    ran = toolyard("permissions", "list")
    assert "cannot be used" in ran.err
    assert "rm **" in ran.out, "the last good denies hold"


def test_who_types_a_call_has_decided_unless_a_rule_denies(toolyard):
    toolyard.config("shell:command", "shell:session", permissions=PERMISSIONS)
    assert toolyard("exec", "echo typed > file").code == 0
    assert toolyard("call", "shell", '{"command": "echo typed"}').code == 0
    assert toolyard("call", "shell", '{"command": "echo typed"}', "--yes").code == 0
    assert toolyard("call", "shell", '{"command": "echo typed"}', "--no").code == 3
    assert toolyard("exec", "rm file").code == 3
    assert toolyard("exec", "sudo true").code == 3
    assert toolyard("shell", stdin="echo at the session\n").out == "at the session\n"
    assert "rm **" in toolyard("shell", stdin="rm file\n").err
    assert (toolyard.folder / "file").exists()


def test_who_wants_to_be_asked_needs_a_terminal(toolyard):
    toolyard.config("shell:command", permissions=PERMISSIONS)
    ran = toolyard("call", "shell", '{"command": "echo x"}', "--ask")
    assert ran.code == 3
    assert "nobody is at a terminal" in ran.err
    assert toolyard("call", "shell", '{"command": "ls"}', "--ask").code == 0
    assert toolyard("call", "shell", '{"command": "ls"}', "--ask", "--yes").code == 2


@pytest.mark.parametrize(
    ("typed", "code"),
    [("y\n", 0), ("n\n", 3), ("\n", 3), ("because I say so\n", 3), ("\x04", 3), ("a\n", 0), ("s\n", 0)],
)
def test_a_person_at_a_terminal_is_asked(toolyard, typed, code):
    toolyard.config("shell:command", permissions=PERMISSIONS)
    arguments = json.dumps({"command": "echo \u202e; touch \u001b[2Kran"})
    plain = json.dumps({"command": "touch ran"})
    with Terminal(toolyard, toolyard.path, "call", "shell", plain if code == 0 else arguments, "--ask") as terminal:
        shown = terminal.read_until("why not: ")
        assert "no rule allows it" in shown
        assert "\u202e" not in shown
        if code == 0:
            assert "always would save: touch **" in shown
        terminal.type(typed)
        assert terminal.finish() == code
    assert (toolyard.folder / "ran").exists() is (code == 0)
    granted = (toolyard.home / "state" / "toolyard" / "permissions.json").exists()
    assert granted is (typed == "a\n")
    if "because" in typed:
        assert "because I say so" in terminal.text


def test_a_person_can_ask_back_before_they_answer(toolyard):
    toolyard.config("shell:command", permissions=PERMISSIONS)
    with Terminal(toolyard, toolyard.path, "call", "shell", '{"command": "touch ran"}', "--ask") as terminal:
        terminal.read_until("why not: ")
        terminal.type("?\n")
        shown = terminal.read_until(r"(?s)why not: .*why not: ")
        for words in ("runs this call", "this session", "permissions revoke", "touch **", "as the reason"):
            assert words in shown
        assert not (toolyard.folder / "ran").exists()
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert (toolyard.folder / "ran").exists()


def test_a_rule_for_outside_is_listed_with_its_folder(toolyard):
    toolyard.config("shell:command")
    for folder in ({}, {"folder": "sub"}):
        rule = {"command": "git push", "reach": "outside", **folder}
        assert toolyard("permissions", "allow", json.dumps(rule)).code == 0
    rows = [row for row in toolyard("permissions", "list", "--json").json if row["id"]]
    assert [(row["rule"], row["folder"]) for row in rows] == [
        ("git push (outside)", "."),
        ("git push (outside in sub)", "sub"),
    ]
    listed = toolyard("permissions", "list").out
    assert "git push (outside), in the top of the workspace" in listed
    assert "git push (outside in sub)" in listed
    for folder, verdict in ((".", "allow"), ("sub", "ask")):
        line = f"cd {folder} && git push"
        record = toolyard("permissions", "check", line, "--reach", "outside", "--json").json
        push = [part for part in record["parts"] if part["text"] == "git push"]
        assert [part["decision"] for part in push] == [verdict]
