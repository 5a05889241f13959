"""The tables of options against the programs themselves: what `--help` says of a value, the table says, too."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from support import need
from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.git_options import table_of
from toolyard.permissions.programs.operands import TABLES
from toolyard.permissions.programs.options import Options

PATIENCE = 20
PROGRAMS = names("""
    ls cat head tail wc grep stat du df readlink realpath diff cmp comm cut sort uniq nl tac rev fold fmt paste column
    od hexdump md5sum sha256sum cksum base64 tee cp mv mkdir touch ln install rm rmdir chmod chown tar gzip xargs date
    env file truncate shuf split csplit expand pr sed
""")
COMMANDS = names("""
    log status diff blame grep ls-files ls-tree describe cat-file show-ref merge-base branch tag add config
""")
DIFFERENT = {
    ("xargs", "max-lines"),  # the help shows a value, but takes it only when it is glued
    ("sort", "check"),
    ("du", "time"),
    ("file", "parameter"),  # the help does not show the value
    ("gzip", "synchronous"),  # the help repeats the name behind it
    ("git branch", "merged"),  # takes the next word only when that is the last one
    ("git branch", "no-merged"),
    ("git tag", "merged"),
    ("git tag", "no-merged"),
    ("git diff", "abbrev"),  # takes a value only when it is glued
    ("git cat-file", "path"),  # the help shows what the value names, not that it is one
}
LINE = re.compile(r"\s{1,12}(-\S.*)")


def options_in(text: str) -> dict[str, bool]:
    """The long options that a help text names, and whether they take the next word for their value."""
    found: dict[str, bool] = {}
    for match in filter(None, map(LINE.match, text.splitlines())):
        shown = re.split(r"\s{2,}|\t", match[1])[0]
        takes = "[=" not in shown and bool(re.search(r"=\S| [<A-Z(+]", shown))
        found.update(dict.fromkeys(re.findall(r"--([a-z][\w-]+)", shown), takes))
    return found


def disagreements(program: str, table: Options, text: str) -> list[str]:
    return [
        name
        for name, takes in options_in(text).items()
        if name in table.named and (table.named[name].takes == "next") != takes and (program, name) not in DIFFERENT
    ]


def help_of(*argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_table_knows_which_options_take_a_value(program):
    table = TABLES[program]
    text = help_of(need(program), "--help")
    assert isinstance(table, Options)
    assert set(options_in(text)) & set(table.named), text
    assert disagreements(program, table, text) == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_table_of_git_knows_which_options_take_a_value(command):
    help_of(need("git"), "init", "--quiet", ".")  # elsewhere `git diff` is another command
    text = help_of(need("git"), command, "-h")
    assert disagreements(f"git {command}", table_of(command), text) == []
