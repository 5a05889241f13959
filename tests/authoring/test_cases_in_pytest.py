"""One small file beside the cases of a tool, and pytest runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import toolyard as package
from support import CommandLine
from yard import script

BUILTIN = Path(package.__file__).parent / "builtin_plugins"
SMALL_FILE = "from toolyard.testing import pytest_generate_tests, test_case\n"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-c", "/dev/null"]


def run_pytest(toolyard: CommandLine, *places: Path) -> tuple[int, str]:
    ran = toolyard.run([*PYTEST, "--rootdir", places[0], *places])
    return ran.code, ran.out + ran.err


@pytest.mark.parametrize("name", ["template-bash-tool", "bash-read-line-range"])
def test_pytest_runs_the_cases_of_a_bundled_tool(toolyard: CommandLine, name):
    folder = BUILTIN / name / "tests"
    count = sum(len(json.loads(file.read_text())) for file in folder.glob("*.json"))
    code, said = run_pytest(toolyard, folder)
    assert code == 0, said
    assert f"{count} passed" in said


def test_pytest_tells_which_case_of_an_authors_tool_failed_and_how(toolyard: CommandLine):
    cases = [
        {"name": "says hello", "arguments": {"value": "x"}, "output": "hello"},
        {"name": "says more", "arguments": {"value": "x"}, "output": "goodbye"},
        {"nmae": "is none", "arguments": {}},
    ]
    toolyard.file("mine/greeting.bash", script("greeting", run="printf hello"))
    toolyard.file("mine/tests/greeting.json", json.dumps(cases, indent=1))
    toolyard.file("mine/tests/test_greeting.py", SMALL_FILE)
    code, said = run_pytest(toolyard, toolyard.folder / "mine" / "tests")
    assert code == 1
    assert "1 passed" in said
    assert "2 failed" in said
    assert "test_case[says more]" in said
    assert "output: expected 'goodbye', got 'hello'" in said
    assert "unknown field 'nmae'" in said


@pytest.mark.parametrize(
    ("tool", "cases", "words"),
    [
        (script("greeting", args_mode="none"), [{"arguments": {}}], "args_mode"),
        (script("greeting"), None, "there are no cases"),
    ],
)
def test_a_tool_that_cannot_be_tested_fails(toolyard: CommandLine, tool, cases, words):
    toolyard.file("mine/greeting.bash", tool)
    toolyard.file("mine/tests/test_greeting.py", SMALL_FILE)
    if cases is not None:
        toolyard.file("mine/tests/greeting.json", json.dumps(cases))
    code, said = run_pytest(toolyard, toolyard.folder / "mine" / "tests")
    assert code == 1
    assert words in said
