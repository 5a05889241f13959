"""Patterns that look at whole lines take time in proportion to them."""

from __future__ import annotations

import pytest

from toolyard.permissions.expansion.shell_state import FUNCTION, SUBSCRIPT, UNSET
from toolyard.permissions.programs.builtins import EVALUATED
from toolyard.permissions.refusals import AT_A_COMMAND, privileged_word

MANY = 300_000
"""What takes more than linear time would take hours for so many characters."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece", ["{", ";", "(", "[", "a", " ", "/", "a(", "a (", "function ", "f ( ", "a/", "su/", "!"]
)
def test_no_line_is_too_long_to_be_looked_at(piece):
    text = piece * (MANY // len(piece))
    for pattern in (FUNCTION, EVALUATED, AT_A_COMMAND, UNSET):
        pattern.search(text)
        sum(1 for _ in pattern.finditer(text))
    SUBSCRIPT.match(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [("x; sudo ls", "sudo"), ("/usr/bin/sudo x", "sudo"), ("(su)", "su"), ("a\nsu -c x", "su"), ("`doas x`", "doas")],
)
def test_a_word_that_gives_privileges_is_found(text, name):
    assert privileged_word(text) == name


@pytest.mark.parametrize("text", ["pseudo x", "sudo-x", "suspend", "result"])
def test_a_word_that_only_looks_like_one_is_not(text):
    assert privileged_word(text) is None


def test_functions_are_found_in_every_spelling():
    text = "ls() { x; }; function git { y; }\nif true; then cat ( ) { z; }; fi; a=1"
    assert [found[1] or found[2] for found in FUNCTION.finditer(text)] == ["ls", "git", "cat"]
