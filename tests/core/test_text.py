"""Values and limits in the words of results and previews."""

from __future__ import annotations

import pytest

from toolyard.core.text import (
    PREVIEW_LENGTH,
    as_word,
    call_line,
    encode_json,
    first_line,
    joined,
    limit_hit,
    one_line,
    seconds,
)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b"), "a\nb"),
        (("a\n", "b"), "a\nb"),
        (("a\n\n", "b\n"), "a\n\nb\n"),
        (("a", None, "", "b"), "a\nb"),
        ((None, "a"), "a"),
        (("\n", "a"), "\na"),
    ],
)
def test_parts_begin_their_own_lines_and_no_more(parts, text):
    assert joined(*parts) == text


@pytest.mark.parametrize(
    ("text", "line", "command"),
    [
        ("ls", "ls", "ls"),
        ("ls  \n", "ls", "ls"),
        ("\n\nls\nrm x", "ls", "ls …"),
        ("", "", ""),
    ],
)
def test_the_first_line_stands_for_a_text_and_says_when_a_command_has_more(text, line, command):
    assert (one_line(text), first_line(text)) == (line, command)


def test_a_line_is_cut_to_what_a_list_has_room_for():
    assert one_line("x" * PREVIEW_LENGTH) == "x" * PREVIEW_LENGTH
    assert len(one_line("x" * (PREVIEW_LENGTH + 1))) <= PREVIEW_LENGTH


def test_a_call_in_one_line_quotes_what_a_shell_would_split():
    assert call_line("greet", {"name": "Ada L", "loud": True, "times": 2, "of": ["x"]}) == (
        "greet name='Ada L' loud=true times=2 of='[\"x\"]'"
    )


@pytest.mark.parametrize(
    ("value", "word"),
    [("a b", "a b"), (True, "true"), (False, "false"), (None, "null"), (1.5, "1.5"), ({"ü": 1}, '{"ü":1}')],
)
def test_values_as_words(value, word):
    assert as_word(value) == word


def test_half_a_character_is_written_as_an_escape():
    assert encode_json({"a": "\ud800ü"}) == '{"a":"\\ud800\\u00fc"}'


def test_seconds_and_signals_in_words():
    assert [seconds(number) for number in (1, 1.0, 0.5, 2, 60)] == [
        *("1 second", "1 second", "0.5 seconds", "2 seconds", "60 seconds")
    ]
    assert limit_hit(24) == ", its processor time was used up"
    assert limit_hit(25) == ", a file grew beyond its limit"
    assert limit_hit(9) == ""
