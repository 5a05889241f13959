"""A star stands for any text, and a rule of stars takes no longer than the text is long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.globs import star_pattern
from toolyard.permissions.decide import text_pattern
from toolyard.permissions.paths import PathIndex
from toolyard.permissions.patterns import as_word, fits
from toolyard.permissions.programs.awk_sed_jq import AWK_TOKEN

LETTERS = st.text("ab*", max_size=8)


@given(pattern=LETTERS, text=st.text("ab*\n/", max_size=12))
def test_it_matches_what_any_text_for_each_star_would_match(pattern, text):
    usual = re.compile(re.escape(pattern).replace(r"\*", ".*"), re.DOTALL)
    assert bool(star_pattern(pattern.split("*")).fullmatch(text)) is bool(usual.fullmatch(text))


@given(pattern=LETTERS, text=st.text("ab/", max_size=12))
def test_within_a_name_a_star_stops_at_a_slash(pattern, text):
    usual = re.compile(re.escape(pattern).replace(r"\*", "[^/]*"))
    assert bool(star_pattern(pattern.split("*"), "[^/]").fullmatch(text)) is bool(usual.fullmatch(text))


@pytest.mark.parametrize("pattern", ["*a" * 20 + "*!", "*a*a*a*a*a*a*b*", "a*" * 30 + "c"])
def test_a_rule_of_many_stars_is_answered_for_a_long_text(pattern):
    text = "a" * 5_000
    assert not text_pattern(pattern).fullmatch(text)
    assert not fits(as_word([(pattern, False)]), text)
    index: PathIndex[bool] = PathIndex()
    index.add(("", pattern), True)
    assert list(index.find(f"/{text}", "/work")) == []
    assert list(index.find(f"/{text}!b!c", "/work")) == ([True] if pattern.endswith(("c", "b*")) else [])


def test_a_star_in_quotes_is_a_star():
    word = as_word([("a*", True), ("b*", False), ("c", True)])
    assert fits(word, "a*bXc")
    assert not fits(word, "aXbXc")


def test_a_long_number_in_a_script_that_is_none_is_answered():
    """With two ways to split each row of digits, it would take minutes."""
    assert AWK_TOKEN.match("0" * 300_000 + "x") is None
    assert AWK_TOKEN.match("1.5e3;")["number"] == "1.5e3"
