"""A star stands for any text, in time in proportion to it; and a pattern is compiled when it is first used."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolyard
from toolyard.core.regexes import LatePattern, late_pattern, star_pattern
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


def test_a_late_pattern_is_compiled_when_something_is_first_asked_of_it():
    wrong = late_pattern("(")

    with pytest.raises(re.error):
        wrong.match("")


@pytest.mark.parametrize(("text", "flags", "searched"), [("a+", re.IGNORECASE, "xAAx"), (b"a+", 0, b"xaax")])
def test_a_late_pattern_answers_as_one_that_was_compiled(text, flags, searched):
    late, compiled = late_pattern(text, flags), re.compile(text, flags)

    for _ in range(2):  # the second time it has the answer by itself
        assert late.search(searched).span() == compiled.search(searched).span()
        assert late.sub(searched[:1], searched) == compiled.sub(searched[:1], searched)
        assert (late.pattern, late.flags) == (compiled.pattern, compiled.flags)


def test_every_late_pattern_of_the_package_can_be_compiled():
    root = Path(toolyard.__file__).parent
    files = [file for file in root.rglob("*.py") if " = late_pattern(" in file.read_text()]
    assert len(files) > 20
    for file in files:
        module = importlib.import_module(".".join(("toolyard", *file.relative_to(root).with_suffix("").parts)))
        for value in vars(module).values():
            if isinstance(value, LatePattern):
                assert value.match  # type: ignore[truthy-function]
