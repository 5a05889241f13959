"""Before anything beyond plain words is allowed, shfmt has to see the same commands."""

from __future__ import annotations

import os
import resource

import msgspec
import pytest

from toolyard.bash.syntax import cross_check
from toolyard.bash.syntax.cross_check import same_reading
from toolyard.bash.syntax.parse import read_line
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.rules import RuleBook, RuleOrigin, parse_rule
from toolyard.process import shfmt

pytestmark = pytest.mark.anyio

LINES = [
    "ls && cat x | grep y",
    "echo \"a $x b\" 'c d' $(id -u) `pwd` *.py",
    "A=1 B= ls 2>&1 >out <in",
    "cat <<'E' | wc\nx $y\nE",
    "cat <<-E\n\thi $x\n\tE",
    "cat <<E\nE",
    "[[ -f x && ! ( $a == b* ) ]]",
    'for f in *.py; do wc -l "$f"; done',
    "case $x in a|b) ls;; *) pwd;; esac",
    "if a; then b; elif c; then d; else e; fi",
    "time -p ls; ! ls & (ls); { ls; }",
    "echo ${x:-y} ${x%.py} $((1+2)) $'a\\tb' {a,b}",
    "git commit -m \"$(cat <<'E'\nmessage\nE\n)\"",
    "timeout 5 ls | xargs -n1 echo",
    "diff <(ls a) <(ls b) 2>&-",
]


def tree_of(line: str):
    tree = shfmt.parse_with_shfmt(line.encode())
    assert tree is not None
    return msgspec.json.decode(tree)


@pytest.mark.parametrize("line", LINES)
def test_both_readers_see_the_same(line):
    assert same_reading(read_line(line), tree_of(line))


@pytest.mark.parametrize("line", LINES)
def test_a_command_more_or_less_is_a_difference(line):
    assert not same_reading(read_line(line), tree_of(f"{line}\ntrue"))
    assert not same_reading(read_line(f"{line}\ntrue"), tree_of(line))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ls 'a' b", "ls 'c' b"),
        ("ls a b", "ls a_b"),
        ("ls >a", "ls <a"),
        ("ls >a", "ls a"),
        ("ls 2>a", "ls 3>a"),
        ("a | b", "a | bc"),
        ("[[ -f x ]]", "[[ -f y ]]"),
        ("for i in a; do b; done", "for j in a; do b; done"),
    ],
)
def test_another_word_redirection_or_name_is_a_difference(ours, theirs):
    assert not same_reading(read_line(ours), tree_of(theirs))


async def decide(line):
    rules = [parse_rule(pattern, "allow", RuleOrigin(label="test")) for pattern in ("ls **", "cat **")]
    return await decide_line(line, RuleBook(rules), CallSite(tool="bash", cwd="/", workspace="/"))


async def test_without_shfmt_only_plain_words_are_allowed(monkeypatch):
    monkeypatch.setattr(cross_check, "REMEMBERED", {})
    monkeypatch.setattr(cross_check, "parse_with_shfmt", lambda text: None)
    assert (await decide("ls -la")).decision == "allow"
    asked = await decide("ls | cat")
    assert asked.decision == "ask"
    assert [part.doubt for part in asked.parts if part.doubt] == ["second_reader"]


async def test_what_it_said_is_remembered(monkeypatch):
    monkeypatch.setattr(cross_check, "REMEMBERED", {})
    assert (await decide("ls | cat -n")).decision == "allow"
    monkeypatch.setattr(cross_check, "parse_with_shfmt", lambda text: None)
    assert (await decide("ls | cat -n")).decision == "allow"


def test_text_that_is_no_bash_has_no_tree():
    assert shfmt.parse_with_shfmt(b"if (") is None


def test_a_program_that_takes_too_long_is_ended(monkeypatch, tmp_path):
    slow = tmp_path / "shfmt"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setattr(shfmt, "find_shfmt", lambda: str(slow))
    assert shfmt.parse_with_shfmt(b"ls", patience=0.05) is None


def test_shfmt_is_asked_also_by_a_process_with_thousands_of_open_files():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)]
    try:
        while opened[-1] < 1100:
            opened.append(os.dup(opened[0]))
        assert shfmt.parse_with_shfmt(b"echo hello") is not None
    finally:
        for fd in opened:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
