"""Every line of the contracts page has a test named after it, and every such test has its line."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LINE = re.compile(r"^- ([A-Z]\d\d) ", re.MULTILINE)
TEST = re.compile(r"^(?:async )?def test_([A-Z]\d\d)_", re.MULTILINE)


def test_lines_and_tests_correspond():
    lines = LINE.findall((ROOT / "docs" / "contracts.md").read_text())
    tests = {number for file in Path(__file__).parent.glob("test_*.py") for number in TEST.findall(file.read_text())}
    assert len(lines) == len(set(lines)), "a number stands twice"
    assert set(lines) == tests
    assert len(lines) >= 22
