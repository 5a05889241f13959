"""Presets: what holds before any rule of one's own."""

from __future__ import annotations

import pytest

from toolyard.permissions.decide import ToolUse, decide_line, judge_tool
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.presets import make_book, preset_in_force
from toolyard.permissions.section import Section

pytestmark = pytest.mark.anyio

LINES = {
    # command: read-only, workspace, ask-everything, allowlist, trusted
    "ls -la": "allow allow ask allow allow",
    "git status && git diff": "allow allow ask deny allow",
    "cat src/a.py | grep x": "allow allow ask allow allow",
    "cat /etc/passwd": "ask ask ask allow allow",
    "cat ../x": "ask ask ask allow allow",
    "cat ~/.ssh/id_rsa": "ask ask ask allow allow",
    'cat "$x"': "ask ask ask allow allow",
    "grep -f/etc/passwd x": "ask ask ask allow allow",
    "echo x > a.txt": "ask allow ask deny allow",
    "echo x > /tmp/y": "ask ask ask deny allow",
    "echo x > .git/hooks/pre-commit": "ask ask ask deny allow",
    "echo x > toolyard.json": "ask ask ask deny allow",
    "mkdir -p a/b": "ask allow ask deny allow",
    "touch ../x": "ask ask ask deny allow",
    "cp a .git/hooks/x": "ask ask ask deny allow",
    "sort -o out in": "ask allow ask deny allow",
    "rm x": "ask ask ask deny allow",
    "sed -i s/a/b/ x": "ask allow ask deny allow",
    "sed -n 1,5p x": "allow allow ask deny allow",
    "find . -name x": "allow allow ask allow allow",
    "find . -delete": "ask ask ask deny allow",
    "find /etc -name x": "ask ask ask allow allow",
    "python3 x.py": "ask ask ask deny allow",
    "curl http://x": "ask ask ask deny allow",
    "cd src && ls": "allow allow ask deny allow",
    "cd /tmp && ls": "ask ask ask deny allow",
    "x=1; eval $x": "ask ask ask deny allow",
    "ls '": "ask ask ask deny allow",
    "sudo ls": "deny deny deny deny deny",
    "set -euo pipefail; ls": "allow allow ask deny allow",
    "for f in *.py; do wc -l": "ask ask ask deny allow",
}
PRESETS = ("read-only", "workspace", "ask-everything", "allowlist", "trusted")


@pytest.mark.parametrize(
    ("command", "preset", "decision"),
    [
        (line, preset, word)
        for line, words in LINES.items()
        for preset, word in zip(PRESETS, words.split(), strict=True)
    ],
)
async def test_what_a_preset_says_of_a_line(tmp_path, command, preset, decision):
    book = make_book(Section(is_configured=True, preset=preset), [])
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    found = await decide_line(command, book, where)
    assert found.decision == decision, found.reason


@pytest.mark.parametrize("command", LINES)
async def test_in_a_sandbox_everything_runs_that_no_rule_is_against(tmp_path, command):
    book = make_book(Section(is_configured=True), [], kept="wholly")
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    found = await decide_line(command, book, where)
    assert found.decision == ("deny" if "sudo" in command else "allow"), found.reason


@pytest.mark.parametrize(
    ("named", "not_kept", "partly", "wholly"),
    [
        (None, "workspace", "workspace", "sandboxed"),
        ("sandboxed", "workspace", "sandboxed", "sandboxed"),
        ("read-only", "read-only", "read-only", "read-only"),
        ("trusted", "trusted", "trusted", "trusted"),
    ],
)
def test_which_preset_holds_depends_on_what_keeps_calls_in(named, not_kept, partly, wholly):
    assert [preset_in_force(named, kept) for kept in ("not", "partly", "wholly")] == [not_kept, partly, wholly]


async def test_in_a_sandbox_rules_are_about_the_lines_that_are_seen(tmp_path):
    from toolyard.permissions.rules import RuleOrigin, parse_rule

    section = Section(is_configured=True, preset="sandboxed")
    for rule, decision in (("curl **", "deny"), ("git push **", "ask"), ({"write": "keep/**"}, "deny")):
        section.rules.append(parse_rule(rule, decision, RuleOrigin(label="test")))
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    lines = {
        **dict.fromkeys(("pytest -q", "make test", "npm test", "rm -rf build", "sed -i s/a/b/ x"), "allow"),
        **dict.fromkeys(
            ("bash build.sh", "./configure", "x=1 make", "name=value; make $name", "python3 -c 1"), "allow"
        ),
        **dict.fromkeys(
            ("f() { make; }; f", "while :; do make; done", "[ -f x ] && ./x", "echo x > y", "git -C . status"), "allow"
        ),
        **dict.fromkeys(("git push origin main", "git -C . push", "$x y", "echo x > $y"), "ask"),
        **dict.fromkeys(("curl x", "bash -c 'curl x'", "make && curl x", "echo x > keep/y", "sudo make"), "deny"),
    }
    book = make_book(section, [], kept="wholly")
    assert {line: (await decide_line(line, book, where)).decision for line in lines} == lines


@pytest.mark.parametrize(
    ("preset", "tool", "arguments", "decision"),
    [
        ("read-only", "greet", {}, "ask"),
        ("workspace", "greet", {}, "allow"),
        ("ask-everything", "greet", {}, "ask"),
        ("allowlist", "greet", {}, "allow"),
        ("trusted", "greet", {}, "allow"),
        ("workspace", "bash_job", {"action": "read", "id": "1"}, "allow"),
        ("workspace", "bash_job", {"action": "write", "id": "1", "text": "rm x\n"}, "ask"),
        ("allowlist", "bash_job", {"action": "write", "id": "1", "text": "rm x\n"}, "deny"),
        ("trusted", "bash_job", {"action": "write", "id": "1", "text": "rm x\n"}, "allow"),
    ],
)
def test_what_a_preset_says_of_other_tools(preset, tool, arguments, decision):
    book = make_book(Section(is_configured=True, preset=preset), [])
    assert judge_tool(ToolUse(tool=tool, arguments=arguments, cwd="/w", workspace="/w"), book).decision == decision


async def test_in_trust_a_rule_against_something_makes_doubts_count(tmp_path):
    from toolyard.permissions.rules import RuleOrigin, parse_rule

    section = Section(is_configured=True, preset="trusted")
    section.rules.append(parse_rule("rm **", "deny", RuleOrigin(label="test")))
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    decisions = {
        command: (await decide_line(command, make_book(section, []), where)).decision
        for command in (
            "touch x",
            "rm x",
            "$x",
            "bash y.sh",
            "./y.sh",
            "echo x > y",
            "name=value",
            "PATH=.",
            "fakeroot rm x",
            "git -c alias.x='!rm x' x",
            "git push --force",
            "find . -exec ls {} +",
            "ls | xargs wc",
        )
    }
    assert decisions == {
        "touch x": "allow",
        "rm x": "deny",
        "$x": "ask",
        "bash y.sh": "ask",
        "./y.sh": "ask",
        "echo x > y": "allow",
        "name=value": "allow",
        "PATH=.": "ask",
        "fakeroot rm x": "ask",
        "git -c alias.x='!rm x' x": "ask",
        "git push --force": "allow",
        "find . -exec ls {} +": "allow",
        "ls | xargs wc": "allow",
    }


INSIDE = [
    *('for f in src/*.py; do wc -l "$f"; done', "for f in a b; do cat $f; done", 'for f in *.md; do head "${f}"; done'),
    *("diff <(ls a) <(ls b)", "find src -name '*.ts' -exec grep -l foo {} +", "find -name x -exec wc -l {} +"),
    *("python3 --version", 'while IFS= read -r line; do echo "$line"; done < src/a'),
]
PERHAPS_OUTSIDE = [
    *('for f in /etc/*; do cat "$f"; done', "for f in ../*; do cat $f; done", 'for f in $x; do cat "$f"; done'),
    *(
        'for f in a; do cat "$f/../../x"; done',
        'for f in a; do read f; cat "$f"; done',
        "for f in ~/x; do cat $f; done",
    ),
    *(
        "for f in {/etc/passwd,a}; do cat $f; done",
        'for f in a; do cat "$g"; done',
        'for f in a; do cd /; cat "$f"; done',
    ),
    *(
        'for f in way/x; do cat "$f"; done',
        'for f in a; do :; done; f=/etc/x; cat "$f"',
        "for f in a/../../x; do cat $f; done",
    ),
    *('for f in a; do cat "$f"; done; for f in /etc/x; do :; done', "diff <(cat /etc/passwd) x", "cat <(ls)/../x"),
    *(
        "find /etc -exec cat {} +",
        "find src /etc -exec cat {} +",
        "find -L src -exec cat {} +",
        "find $x -exec cat {} +",
    ),
    *("find src -exec cat ../{} \\;", "find way/ -exec cat {} +", "find src -follow -exec cat {} +", "ls | xargs cat"),
]


@pytest.mark.parametrize(
    ("line", "decision"), [*((line, "allow") for line in INSIDE), *((line, "ask") for line in PERHAPS_OUTSIDE)]
)
async def test_a_preset_knows_what_stays_inside_the_workspace(line, decision, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "way").symlink_to("/etc")
    book = make_book(Section(is_configured=True, preset="workspace"), [])
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    assert (await decide_line(line, book, where)).decision == decision


@pytest.mark.parametrize(
    ("line", "is_allowed"),
    [
        *((line, True) for line in ("cat src/*.py", "wc -l *.py", "cat b.py", "cat src/**")),
        *(
            (line, False)
            for line in ("cat s*/key", "cat */key", "cat .e*", "cat .[a-z]*", "cat {secrets/key,x}", "cat */*")
        ),
        *((line, False) for line in ("find . -exec cat {} +", "cat [s]ecrets/key", "cat secrets/*")),
    ],
)
async def test_a_pattern_of_files_does_not_lead_around_a_rule_against_one(line, is_allowed, tmp_path):
    from toolyard.permissions.rules import RuleOrigin, parse_rule

    for name in ("secrets/key", "src/a.py", "b.py", ".env"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    section = Section(is_configured=True, preset="ask-everything")
    for value, decision in (("cat **", "allow"), ("wc **", "allow"), ("find **", "allow")):
        section.rules.append(parse_rule(value, decision, RuleOrigin(label="test")))
    for path in ("secrets/**", ".env"):
        section.rules.append(parse_rule({"read": path}, "deny", RuleOrigin(label="test")))
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))
    verdict = await decide_line(line, make_book(section, []), where)
    assert (verdict.decision == "allow") is is_allowed, verdict.reason
