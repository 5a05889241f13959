"""How much room a text takes, and how it is made to fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.visible_text import columns, fitting


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("שלום", 4), ("a\u200db", 2), ("", 0)]
)
def test_a_line_takes_as_many_columns_as_a_terminal_gives_it(text: str, width: int):
    assert columns(text) == width


@given(st.text(alphabet="ab日👍e\u0301ש", max_size=30), st.integers(1, 20))
def test_what_is_made_to_fit_fits_and_loses_no_more_than_it_must(text: str, most: int):
    made = fitting(text, most)
    assert columns(made) <= most
    assert made == text or (made.endswith("…") and text.startswith(made[:-1]) and columns(made) >= most - 1)
