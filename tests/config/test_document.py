"""A JSON file knows where each of its values stands, and says what is wrong with it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.config.configuration import resolve
from toolyard.config.document import Document, parse_document, read_document
from toolyard.config.placeholders import Names
from toolyard.core.problems import Problem, sort_problems
from toolyard.kinds import KINDS
from toolyard.plugins.entries import settings_of

TEXT = """{
  "plugins": [
    "one",
    {"a": 1, "é": "ü", "b": [true]}
  ],
  "twice": 1, "twice": 2
}
"""


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ((), 1, 1),
        (("plugins",), 2, 14),
        (("plugins", 0), 3, 5),
        (("plugins", 1, "a"), 4, 11),
        (("plugins", 1, "é"), 4, 19),
        (("plugins", 1, "b", 0), 4, 30),
        (("twice",), 6, 24),
        (("plugins", 7), 2, 14),
        (("plugins", 1, "a", "deeper"), 4, 11),
        (("missing",), 1, 1),
    ],
)
def test_every_value_has_its_place_and_a_missing_one_that_of_what_is_around_it(tmp_path, pointer, line, column):
    document = parse_document(tmp_path / "c.json", TEXT)
    assert isinstance(document, Document)
    where = document.position(pointer)
    assert (where.line, where.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{\n  "a": 1,\n}', 2, 9, "trailing comma before '}'"),
        ("[1, 2,]", 1, 6, "trailing comma before ']'"),
        ('{"a": 1 // no\n}', 1, 9, "comments"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ('{"a": }', 1, 7, "expected a value; found '}'"),
        ('{"a": 1', 1, 8, "the file ends here"),
        ("", 1, 1, "the file ends here"),
        ('{"a": NaN}', 1, 7, "NaN"),
        ('{"NaN":\n [-Infinity]}', 2, 3, "-Infinity is not a JSON value"),
        ("[" * 101 + "]" * 101, 1, 101, "nested more than 100 levels deep"),
        ('{"[[":\n' + '{"a":' * 100_000, 2, 496, "nested more than 100 levels deep"),
        ('{"a" 1}', 1, 6, "expected ':' after the key; found '1'"),
        ('{"a": [1,\n 2', 2, 3, "expected ',' or ']'; the file ends here"),
        ('{"a": 1 "b"}', 1, 9, "expected ',' or '}'"),
        ('{"a": True}', 1, 7, "'True' is not a JSON value"),
        ('{"a": "C:\\dir"}', 1, 10, "'\\d' means nothing in a string"),
        ('{"a": "x\n"}', 1, 9, "a line end or tab inside a string"),
    ],
)
def test_a_syntax_error_says_where_and_what(tmp_path, text, line, column, words):
    problem = parse_document(tmp_path / "c.json", text)
    assert isinstance(problem, Problem)
    assert problem.code == "config_syntax"
    assert words in problem.message
    assert problem.where is not None
    assert (problem.where.line, problem.where.column) == (line, column)
    assert str(problem).startswith(f"{tmp_path}/c.json:{line}:{column}: ")


def test_a_byte_order_mark_is_no_syntax_error(tmp_path):
    (tmp_path / "c.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    document = read_document(tmp_path / "c.json")
    assert isinstance(document, Document)
    assert document.value == {"a": 1}


def test_what_is_not_text_or_not_there_is_a_problem(tmp_path):
    (tmp_path / "c.json").write_bytes(b'{"a": "\xff"}')
    assert read_document(tmp_path / "c.json").code == "config_not_text"
    assert read_document(tmp_path / "none.json").code == "config_unreadable"
    assert read_document(tmp_path).code == "config_unreadable"


@given(st.text())
def test_no_text_whatever_raises(text):
    found = parse_document(__file__, text)  # the path is only carried along
    assert isinstance(found, Document | Problem)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_the_text_at_a_position_begins_the_value(value):
    text = json.dumps(value, indent=2, ensure_ascii=False)
    document = parse_document(__file__, text)

    def check(part, pointer):
        where = document.position(pointer)
        rest = "\n".join(text.split("\n")[where.line - 1 :])[where.column - 1 :]
        decoded, _ = json.JSONDecoder().raw_decode(rest)
        assert decoded == part
        children = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, child in children:
            check(child, (*pointer, key))

    check(value, ())


def test_a_key_that_stands_twice_is_a_warning_at_the_one_that_does_not_count(tmp_path):
    text = '{"a": {"x": 1,\n "y": 2,\n "x": 3}, "agents": {}, "plugins": [],\n "plugins": [{"path": "x", "path": "y"}]}'
    names = Names(config_env={}, overrides={}, builtin={}, process={})
    found = resolve(parse_document(tmp_path / "c.json", text), names, settings_of(KINDS))
    assert found.value["a"]["x"] == 3
    problems = sort_problems(found.problems)
    places = [(problem.where.line, problem.where.column) for problem in problems]
    assert places == [(1, 8), (3, 25), (4, 15)]
    assert {(problem.code, problem.severity) for problem in problems} == {("config_repeated_key", "warning")}
    assert "again, at line 3" in problems[0].message
