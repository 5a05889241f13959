"""Rules: what a pattern means, from which level it comes, and what becomes of one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from toolyard.bash.syntax.parse import read_line
from toolyard.config.document import Document
from toolyard.core.problems import Problem
from toolyard.permissions.decide import ToolUse, judge_tool
from toolyard.permissions.paths import PathIndex, parse_path_pattern
from toolyard.permissions.patterns import CommandPattern, parse_pattern, quoted_token
from toolyard.permissions.rules import (
    CommandIndex,
    Rule,
    RuleBook,
    RuleOrigin,
    kept_rules,
    parse_rule,
    valid_rules,
)
from toolyard.permissions.section import Sections, read_permissions

HERE = RuleOrigin(label="test")


def found_by(pattern: str, command: str) -> list[bool]:
    parsed = parse_pattern(pattern)
    assert isinstance(parsed, CommandPattern)
    index: CommandIndex[str] = CommandIndex()
    index.add(parsed, pattern)
    return [found.certain for found in index.find(read_line(command).commands[0].words)]


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("ls **", "ls", True),
        ("ls **", "ls -la /tmp", True),
        ("ls **", "lsof", False),
        ("ls", "ls", True),
        ("ls", "ls -l", False),
        ("git status **", "git status -s", True),
        ("git status **", "git log", False),
        ("git status **", "git", False),
        ("npm run *", "npm run a", True),
        ("npm run *", "npm run", False),
        ("npm run *", "npm run a b", False),
        ("npm run test:*", "npm run test:unit", True),
        ("npm run test:*", "npm run lint", False),
        ("cat *.txt **", "cat a.txt b", True),
        ("**", "anything at all", True),
        ("echo 'a b'", "echo 'a b'", True),
        ("echo 'a b'", "echo a b", False),
        ("echo '*'", "echo '*'", True),
        ("echo '*'", "echo x", False),
        ("echo \\*", "echo '*'", True),
        ("[ **", "[ -f x ]", True),
        ("./run.sh **", "./run.sh a", True),
        ("./run.sh **", "run.sh a", False),
    ],
)
def test_a_pattern_is_met_word_by_word(pattern, command, fits):
    assert found_by(pattern, command) == ([True] if fits else [])


@pytest.mark.parametrize(
    ("pattern", "command", "found"),
    [
        ("rm -rf **", 'rm "$x" y', [False]),
        ("rm **", 'rm "$x"', [True]),
        ("rm **", "$x y", [False]),
        ("git push **", "git $x", [False]),
        ("npm run *", 'npm run "$x"', [True, False]),
        ("npm run *", "npm run $x", [False]),
        ("ls a", "ls $x", [False]),
    ],
)
def test_what_only_bash_knows_may_fit(pattern, command, found):
    assert sorted(found_by(pattern, command)) == sorted(found)


@pytest.mark.parametrize("text", ["", "   ", "ls ** x", "** ls", "*", "l* x", "ls a**", "ls 'x", 'ls "x', "ls \\"])
def test_a_text_that_is_no_pattern_says_why(text):
    assert isinstance(parse_pattern(text), Problem)


@pytest.mark.parametrize("value", ["plain", "a b", "it's", "*", "**", "", 'a"b', "a\\b", "$(x)", "a\nb", "{}"])
def test_every_word_has_a_pattern_for_nothing_but_itself(value):
    parsed = parse_pattern(f"cmd {quoted_token(value)}")
    assert isinstance(parsed, CommandPattern)
    assert parsed.words == ("cmd", value)
    assert parsed.is_exact


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "/w/src/a/b.py", True),
        ("src/**", "/w/src", True),
        ("src/**", "/w/srcs/a", False),
        ("src/*.py", "/w/src/a.py", True),
        ("src/*.py", "/w/src/a/b.py", False),
        ("**/*.py", "/w/a/b/c.py", True),
        ("**/*.py", "/w/c.py", True),
        ("**", "/w/x", True),
        ("**", "/other", False),
        ("/etc/*", "/etc/hosts", True),
        ("/etc/**", "/w/etc/x", False),
        ("a.txt", "/w/a.txt", True),
        ("./a.txt", "/w/a.txt", True),
        ("src/../a.txt", "/w/a.txt", True),
        (".", "/w", True),
    ],
)
def test_a_path_pattern_is_met_folder_by_folder(pattern, path, fits):
    index: PathIndex[str] = PathIndex()
    segments = parse_path_pattern(pattern)
    assert not isinstance(segments, Problem)
    index.add(segments, "rule")
    assert bool(list(index.find(path, "/w"))) is fits


@pytest.mark.parametrize("text", ["", "../x", "a**b", "src/**x"])
def test_a_text_that_is_no_path_pattern_says_why(text):
    assert isinstance(parse_path_pattern(text), Problem)


@pytest.mark.parametrize(
    "value",
    [
        7,
        [],
        {},
        {"comand": "ls"},
        {"command": ""},
        {"command": 3},
        {"command": "ls", "write": "x"},
        {"command": "ls", "path": "x"},
        {"path": "x"},
        {"tool": "x", "arguments": []},
        {"tool": "x", "arguments": {"a": 1}},
        {"tool": "x", "path": "../y"},
        {"reason": "because"},
        {"server": "one"},
        {"tool": "x", "server": ""},
        {"tool": "x", "server": "one", "command": "ls"},
        {"host": "example.com", "server": "one"},
    ],
)
def test_an_object_that_is_no_rule_says_why(value):
    assert isinstance(parse_rule(value, "deny", HERE), Problem)


def section(config, agent="default"):
    text = json.dumps(config, indent=1)
    return read_permissions(config, Document(Path("/x/toolyard.json"), text, config), agent)


def test_rules_of_all_levels_add_up_and_the_nearest_preset_holds():
    config = {
        "permissions": {"preset": "trusted", "deny": ["rm **"]},
        "providers": {"p": {"permissions": {"allow": ["ls **"]}}, "q": {"permissions": {"allow": ["cat **"]}}},
        "agents": {"a": {"provider": "p", "permissions": {"preset": "read-only", "ask": [{"tool": "greet"}]}}, "b": {}},
    }
    of_a, of_b = section(config, "a"), section(config, "b")
    assert (of_a.preset, [(rule.decision, rule.text) for rule in of_a.rules]) == (
        "read-only",
        [("deny", "rm **"), ("allow", "ls **"), ("ask", "tool=greet")],
    )
    assert (of_b.preset, [rule.text for rule in of_b.rules]) == ("trusted", ["rm **"])
    assert str(of_a.rules[0].origin).startswith("/x/toolyard.json:5:")
    assert not section({}).is_configured
    assert section({"permissions": {}}).preset is None
    named = {"permissions": {"preset": "trusted"}, "agents": {"a": {"permissions": {"preset": None}}}}
    assert section(named, "a").preset is None


@pytest.mark.parametrize(
    "permissions",
    [
        [],
        {"preset": "everything"},
        {"denny": ["rm **"]},
        {"deny": "rm **"},
        {"deny": ["rm ** x"]},
        {"deny": [{"command": "rm **", "tool": ""}]},
        {"allow": ["ls **"], "deny": [7]},
        {"allowed_commands": "ls"},
        {"ask_timeout_seconds": 0},
    ],
)
def test_a_section_that_cannot_be_read_allows_nothing(permissions):
    read = section({"permissions": permissions})
    assert read.problems
    assert read.problems[0].where.line is not None
    assert read.broken
    book = RuleBook(read.rules, trusts=True, tools_otherwise="allow", broken=read.broken)
    assert not book.trusts
    assert not [rule for rule in book.rules if rule.decision == "allow"]
    assert judge_tool(ToolUse(tool="greet", arguments={}, cwd="/w", workspace="/w"), book).decision == "ask"


def use(tool="write_file", folder="/w", **arguments):
    return ToolUse(tool=tool, arguments=arguments, cwd=str(folder), workspace=str(folder))


def book(otherwise="ask", **lists):
    rules = [parse_rule(value, decision, HERE) for decision, values in lists.items() for value in values]
    assert all(isinstance(rule, Rule) for rule in rules)
    return RuleBook(rules, tools_otherwise=otherwise)


def test_a_tool_is_judged_by_name_path_and_arguments():
    rules = book(
        allow=[
            {"tool": "write_file", "path": "src/**"},
            {"tool": "greet"},
            {"tool": "move", "arguments": {"to": {"path": "out/**"}}},
        ],
        ask=[{"tool": "greet", "arguments": {"name": "A*"}}],
        deny=[{"tool": "write_file", "path": "src/secret/**"}, {"tool": "drop"}],
    )
    decisions = [
        (use(path="src/a.py"), "allow"),
        (use(path="a.py"), "ask"),
        (use(path="src/../a.py"), "ask"),
        (use(path="src/secret/x"), "deny"),
        (use(path="/w/src/a.py"), "allow"),
        (use(), "ask"),
        (use(paths=["src/a", "b"]), "ask"),
        (use(paths=["src/a", "src/b"]), "allow"),
        (use(path="src/a", destination="/etc/x"), "ask"),
        (use(path="src/a", new_path="src/b"), "allow"),
        (use(edits=[{"filePath": "src/a"}, {"filePath": "b"}]), "ask"),
        (use(edits=[{"filePath": "src/secret/a"}]), "deny"),
        (use("greet", name="Bo"), "allow"),
        (use("greet", name="Ada"), "ask"),
        (use("move", to="out/x"), "allow"),
        (use("move", to="out/../x"), "ask"),
        (use("drop"), "deny"),
        (use("other"), "ask"),
    ]
    assert [(call.arguments, judge_tool(call, rules).decision) for call, _ in decisions] == [
        (call.arguments, decision) for call, decision in decisions
    ]


@pytest.mark.parametrize(
    ("server", "fitting"),
    [
        ("", {"any", "none"}),
        ("honest#1", {"any", "honest", "honest#1"}),
        ("honest#2", {"any", "honest"}),
        ("other#1", {"any"}),
    ],
)
def test_a_rule_may_be_about_the_tool_of_one_server(server, fitting):
    spelled = {"any": {}, "honest": {"server": "honest"}, "honest#1": {"server": "honest#1"}}
    rules = {name: valid_rules([{"tool": "deploy", **more}], "allow", HERE) for name, more in spelled.items()}
    rules["none"] = kept_rules([{"tool": "deploy"}], "allow", HERE)
    call = replace(use("deploy"), server=server)
    assert {name for name, found in rules.items() if judge_tool(call, RuleBook(found)).decision == "allow"} == fitting


def test_a_rule_about_a_path_may_be_about_the_tool_of_one_server():
    paths = valid_rules([{"tool": "write_file", "server": "one", "path": "src/**"}], "allow", HERE)
    call = use(path="/w/src/a")
    found = [judge_tool(replace(call, server=server), RuleBook(paths)).decision for server in ("one#1", "two#1", "")]
    assert found == ["allow", "ask", "ask"]


def test_a_symbolic_link_does_not_lead_around_a_rule(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "src" / "way").symlink_to(tmp_path / "secret")
    rules = book(allow=[{"tool": "write_file", "path": "src/**"}])
    assert judge_tool(use(folder=tmp_path, path="src/way/x"), rules).decision == "ask"
    denied = book("allow", deny=[{"tool": "write_file", "path": "secret/**"}])
    assert judge_tool(use(folder=tmp_path, path="src/way/x"), denied).decision == "deny"


def test_files_that_hold_the_rules_are_asked_about(tmp_path):
    own = str(tmp_path / "toolyard.json")
    call = ToolUse(
        tool="write_file",
        arguments={"path": "toolyard.json"},
        cwd=str(tmp_path),
        workspace=str(tmp_path),
        protected=(own,),
    )
    assert judge_tool(call, book("allow")).decision == "ask"
    assert judge_tool(call, book(allow=[{"tool": "write_file", "path": "**"}])).decision == "ask"


def test_what_a_person_reads_about_a_tool_hides_nothing():
    use = ToolUse(tool="edit", arguments={"path": "/w/a\u202eb"}, cwd="/w", workspace="/w", protected=("/w/a\u202eb",))
    judged = judge_tool(use, RuleBook([]))
    assert (judged.decision, judged.reason) == ("ask", "'/w/a\\u{202e}b' holds the rules themselves")


def test_a_configuration_that_cannot_be_read_counts_as_one_with_permissions(tmp_path):
    document = Document(tmp_path / "toolyard.json", "{}", {})
    damage = [Problem(code="config_syntax", message="broken")]
    assert not Sections({}, document).of("default").is_configured
    section = Sections({}, document, damage).of("default")
    assert (section.is_configured, section.problems) == (True, damage)


FOLDERS = {
    "the top of the workspace, without a word": ({}, {"/w": True, "/w/sub": False, "/elsewhere": False}),
    "one folder": ({"folder": "sub"}, {"/w": False, "/w/sub": True, "/w/sub/below": False}),
    "all of the workspace": ({"folder": "**"}, {"/w": True, "/w/sub/below": True, "/elsewhere": False}),
    "one elsewhere": ({"folder": "/srv/*"}, {"/w": False, "/srv/site": True, "/srv": False}),
}


@pytest.mark.parametrize(("more", "folders"), FOLDERS.values(), ids=FOLDERS.keys())
def test_a_rule_for_outside_holds_in_its_folder(more, folders):
    rules = book(allow=[{"command": "git push", "reach": "outside", **more}, "ls"])
    for folder, holds in folders.items():
        left = [rule.text.partition(" (")[0] for rule in rules.holding_in([folder], "/w").rules]
        assert left == [*(["git push"] if holds else []), "ls"], folder
    both = list(folders)[:2]
    assert len(rules.holding_in(both, "/w").rules) == 1 + all(folders[each] for each in both), "in each of several"
    assert len(rules.holding_in(None, "/w").rules) == 1, "where it is not certain"


def test_rules_that_reach_no_further_than_the_sandbox_hold_wherever_a_line_runs():
    rules = book(allow=["ls", {"command": "touch x", "reach": "work"}], deny=[{"command": "rm **", "reach": "outside"}])
    assert rules.bound == ()
    assert rules.holding_in(None, "/w") is rules


@pytest.mark.parametrize(
    ("value", "decision"),
    [
        ({"command": "ls", "folder": "sub"}, "allow"),
        ({"command": "ls", "folder": "sub", "reach": "work"}, "allow"),
        ({"command": "ls", "folder": "sub", "reach": "outside"}, "deny"),
        ({"command": "ls", "folder": "../up", "reach": "outside"}, "allow"),
        ({"command": "ls", "folder": "", "reach": "outside"}, "allow"),
    ],
)
def test_a_folder_that_says_nothing_or_would_be_overlooked_is_a_mistake(value, decision):
    found = parse_rule(value, decision, RuleOrigin(label="test"))
    assert isinstance(found, Problem)
    assert "folder" in found.message


@pytest.mark.parametrize("host", ["https://a.example", "a.example/", "up*.example", ".example.com", "::1", "a b"])
def test_a_host_that_nobody_could_be_is_a_problem_and_no_rule(host):
    problem = parse_rule({"host": host}, "deny", RuleOrigin(label="here"))
    assert isinstance(problem, Problem)
    assert "is no host" in problem.message


@pytest.mark.parametrize("host", ["a.example", "*.a.example", "a.example:8443", "[::1]:80", "10.0.0.1", "@python"])
def test_every_spelling_of_a_host_that_sandbox_hosts_takes_is_one(host):
    assert not isinstance(parse_rule({"host": host}, "deny", RuleOrigin(label="here")), Problem)
