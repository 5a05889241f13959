"""What we say that words become is what bash makes of them, for lines put together at random."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from toolyard.bash.syntax.parse import read_line
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.expansion.shell_state import FRESH

PATIENCE = 20
NAMES = ["a.py", "b.py", "src/c.py", "src/d.txt", "my file", ".hidden", "[x]", "-n", "src/deep/e.py"]
SETTERS = [
    *("x=a", "x='a b'", "x='*.py'", "x=", "y=src", 'y="$x"', "y=${x%a}", "x=$(echo a)", "x=$(printf '%s\\n' a b)"),
    *(
        "x=~",
        "x=$((1 + 2))",
        "y=$x$x",
        "x=src/c.py",
        'y="${x##*/}"',
        'y="${x%/*}"',
        "y=${x:-z}",
        "x=$PWD",
        "y=${x/a/b}",
    ),
    *("x=Ab", "y=${x^^}", "y=${x,,}", "y=${x:1:1}", "y=$(basename src/c.py .py)", "y=$(dirname src/c.py)", "x=$(pwd)"),
]
PIECES = [
    *(
        "a",
        "b",
        "src",
        "/",
        ".",
        "{a,b}",
        "{1..3}",
        "{",
        "}",
        ",",
        "{a,{b,c}}",
        "*",
        "?",
        "[ab]",
        "[!a]",
        "*.py",
        "~",
        "~/",
    ),
    *(
        "'q r'",
        '"q  r"',
        "''",
        '""',
        "\\ ",
        "\\*",
        "\\{",
        "$x",
        '"$x"',
        "${y}",
        '"${y}z"',
        "$y",
        "$PWD",
        "x=",
        "-",
        "[x]",
    ),
    *('"$(echo c)"', "$(echo a b)", "{01..03}", "{c..a}", "[[:alpha:]]", "src/*", "*/", "{x,}", "src/{c,d}.*"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("files")
    for name in NAMES:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).touch()
    return where


@st.composite
def lines(draw) -> str:
    setters = draw(st.lists(st.sampled_from(SETTERS), max_size=3))
    words = draw(
        st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), min_size=1, max_size=3)
    )
    moves = draw(st.sampled_from(["", "", "", "cd src", "cd nothing", "cd src; cd .."]))
    return "; ".join([*setters, *([moves] if moves else []), f"printf '<%s>' {' '.join(words)}"])


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(line=lines())
def test_words_become_what_bash_makes_of_them(folder, line):
    reading = read_line(line)
    if re.search(r"\.[*?[]", line):
        return  # which versions of bash differ about: some of them find `..`, so that we do as well
    if reading.doubts:
        event("a doubt")
        return
    commands = ExpandedLine(reading, str(folder), str(folder), FRESH).reading().commands
    printf = next(command for command in commands if command.text.startswith("printf '<%s>'"))
    values = [word.value for word in printf.words[2:]]
    if None in values:
        event("not certain")
        return
    event("certain")
    ran = subprocess.run(
        ["bash", "--norc", "-c", line], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, env=environment()
    )
    assert ran.stdout == ("".join(f"<{value}>" for value in values) or "<>"), line


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.path.expanduser("~"), "LC_ALL": "C.UTF-8"}
