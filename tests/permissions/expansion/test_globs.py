"""Patterns of files are found as bash finds them, links included, and within bounds."""

from __future__ import annotations

import pytest

from toolyard.bash.syntax.words import WordPiece
from toolyard.permissions.expansion import globs
from toolyard.permissions.expansion.globs import files_matching

FILES = ["a.py", "b.py", "c.txt", ".env", "src/a.py", "src/deep/x.py", "[x]", "B.md", "a b", "-rf"]


def live(text):
    return [WordPiece(kind="live", text=text, quoted=False)]


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "way").symlink_to("/etc")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "b.py"]),
        ("?.py", ["a.py", "b.py"]),
        ("[ab].py", ["a.py", "b.py"]),
        ("[!a].py", ["b.py"]),
        ("[^a].py", ["b.py"]),
        ("[a-c].*", ["a.py", "b.py", "c.txt"]),
        ("[[:upper:]]*", ["B.md"]),
        ("[x]*", []),
        (".e*", [".env"]),
        ("*env", []),
        (".*", [".", "..", ".env"]),
        ("s*/*.py", ["src/a.py"]),
        ("src/*/", ["src/deep/"]),
        ("src/**", ["src/a.py", "src/deep"]),
        ("./*.txt", ["./c.txt"]),
        ("src/../*.txt", ["src/../c.txt"]),
        ("way/passw?", ["way/passwd"]),
        ("nothing/*", []),
        ("-*", ["-rf"]),
        ("a*b", ["a b"]),
        ("[", []),
    ],
)
def test_a_pattern_matches_what_bash_would_match(folder, pattern, found):
    assert files_matching(live(pattern), str(folder)) == found


def test_what_is_quoted_in_a_pattern_stands_for_itself(folder):
    pieces = [WordPiece(kind="text", text="[x]"), *live("*")]
    assert files_matching(pieces, str(folder)) == ["[x]"]


def test_an_absolute_pattern_is_matched_where_it_begins(folder):
    assert files_matching(live(f"{folder}/*.txt"), "/") == [f"{folder}/c.txt"]


@pytest.mark.parametrize("bound", ["MOST_MATCHES", "MOST_ENTRIES", "MOST_FOLDERS"])
def test_beyond_its_bounds_nothing_is_said(folder, monkeypatch, bound):
    assert files_matching(live("*/*"), str(folder)) is not None
    monkeypatch.setattr(globs, bound, 1)
    assert files_matching(live("*/*"), str(folder)) is None


@pytest.mark.parametrize("pattern", ["[[=a=]]*", "[[:nonsense:]]*", "[a[.b.]]*"])
def test_a_pattern_that_is_not_understood_says_nothing(folder, pattern):
    assert files_matching(live(pattern), str(folder)) is None
