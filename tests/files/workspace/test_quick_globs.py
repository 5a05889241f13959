"""Patterns of paths take no longer for having many stars."""

from __future__ import annotations

import pytest

from toolyard.files.workspace.globs import path_pattern
from toolyard.files.workspace.ignores import IgnoreRules

LONG = "a" * 240


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["*a" * 25 + "b", "**/" * 30 + "*a" * 10 + "b", "{a,b}" * 20, "**/a*/" * 20 + "b"])
def test_a_pattern_that_fits_nothing_is_told_at_once(pattern: str):
    assert path_pattern(pattern).fullmatch("/".join([LONG] * 20)) is None
    assert IgnoreRules(pattern).verdict("/".join([LONG] * 20), is_folder=False) is None


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("a*b*c", "axbxbxc", True),
        ("a*b*c", "acb", False),
        ("*a*b", "aab", True),
        ("a/**/b/**/c", "a/x/b/b/y/c", True),
        ("a/**/b/**/c", "a/b/c", True),
        ("a/**/b/**/c", "a/x/c", False),
        ("**/x*y/**/z", "q/x1y/w/z", True),
        ("**/b/**", "a/b/c", True),
        ("a/**/b*/c", "a/b/b1/c", True),
        ("**/**/a", "a", True),
    ],
)
def test_each_part_is_found_where_it_fits(pattern: str, path: str, fits: bool):
    assert bool(path_pattern(pattern).fullmatch(path)) is fits
