"""Braces become the words that bash makes of them, or a doubt."""

from __future__ import annotations

import subprocess

import pytest

from toolyard.bash.syntax.expansion import UNKNOWN, expand_word
from toolyard.bash.syntax.parse import read_line

PATIENCE = 20
BRACES = [
    *(
        "{a,b}",
        "x{a,b}y",
        "{a,b}{c,d}",
        "{a,{b,c}}",
        "a{b,c{d,e}f}g",
        "{,a}",
        "{a,}",
        "{a,b,}",
        "{,}",
        "{}",
        "{a}",
        "a{}b",
    ),
    *(
        "{1..3}",
        "{3..1}",
        "{01..10}",
        "{1..10..3}",
        "{10..1..4}",
        "{-2..2}",
        "{a..e}",
        "{e..a}",
        "{A..C}",
        "x{1..2}y{a,b}",
    ),
    *(
        '{"a,b",c}',
        "{'a b',c}",
        "{a\\,b,c}",
        "\\{a,b}",
        "'{a,b}'",
        '"{a,b}"',
        "{a,b}.{c,d}",
        "{{a,b},c}",
        "{a{b}c,d}",
        "{1..1}",
    ),
]


@pytest.mark.parametrize("text", BRACES)
def test_braces_become_what_bash_makes_of_them(text):
    line = f"printf '<%s>' {text}"
    reading = read_line(line)
    assert not reading.doubts
    (command,) = reading.commands
    words = [found.value for word in command.words[2:] for found in expand_word(word, lambda _: UNKNOWN)]
    ran = subprocess.run(["bash", "--norc", "-c", line], capture_output=True, text=True, timeout=PATIENCE)
    assert ("".join(f"<{word}>" for word in words) or "<>") == ran.stdout


@pytest.mark.parametrize(
    "text", ["{1..99999}", "{a,b}" * 12, "{1..500}{1..500}", "{1..x}", "{a..Z}", "$x{a,b}", "{a,{b,c}"]
)
def test_braces_that_are_too_many_or_not_certain_are_a_doubt(text):
    assert read_line(f"echo {text}").doubts
