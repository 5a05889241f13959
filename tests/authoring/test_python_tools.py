"""`tool new|check|test` for Python: what is written works, what is wrong is said at its line."""

from __future__ import annotations

import pytest

from support import CommandLine


@pytest.mark.parametrize("name", ["my_tool", "My-Tool2"])
def test_a_new_python_tool_passes_its_check_and_its_tests_and_can_be_called(toolyard: CommandLine, name):
    module = name.replace("-", "_")
    ran = toolyard("tool", "new", name, "--kind", "python")
    assert (ran.code, ran.out.split()) == (
        0,
        [f"{name}/{module}.py", f"{name}/agent_plugin.json", f"{name}/tests/{module}.json"],
    )
    checked = toolyard("tool", "check", name, "--strict")
    assert (checked.code, checked.out) == (0, "")
    tested = toolyard("tool", "test", name, "--json")
    assert [row for row in tested.json if not row["passed"]] == []
    assert len(tested.json) >= 5
    toolyard.config(f"path:./{name}")
    called = toolyard("call", module, '{"name": "Ada", "loud": true}')
    assert (called.code, called.out, called.err) == (0, "HELLO, ADA!\n", "")


def test_modes_are_for_bash_scripts(toolyard: CommandLine):
    ran = toolyard("tool", "new", "greet", "--kind", "python", "--mode", "json")
    assert ran.code == 2
    assert "a tool of kind python has no mode 'json'" in ran.err
    assert list(toolyard.folder.iterdir()) == []


def test_a_single_file_can_be_checked_and_tested(toolyard: CommandLine):
    module = """
from toolyard.plugins.contract import tool

@tool
def twice(word: str) -> str:
    \"\"\"Say a word twice.

    Args:
        word: The word.
    \"\"\"
    return word * 2
"""
    toolyard.file("twice.py", module)
    toolyard.file("tests/twice.json", '[{"arguments": {"word": "a"}, "output": "aa"}]')
    assert toolyard("tool", "check", "twice.py", "--strict").code == 0
    ran = toolyard("tool", "test", "twice.py", "--json")
    assert [row["passed"] for row in ran.json] == [True]


def test_what_a_model_will_miss_is_a_warning_at_its_line(toolyard: CommandLine):
    module = "from toolyard.plugins.contract import tool\n\n\n@tool\ndef probe(a, b: int):\n    return a\n"
    toolyard.file("probe.py", module)
    ran = toolyard("tool", "check", "probe.py", "--json")
    assert ran.code == 0
    found = sorted((row["line"], row["code"], row["severity"]) for row in ran.json)
    assert found == [(4, "no_description", "warning")] * 3 + [(4, "no_type", "warning")]
    assert toolyard("tool", "check", "probe.py", "--strict").code == 1


@pytest.mark.parametrize(
    ("module", "line", "words"),
    [
        ("x = 1\ndef (", 2, "invalid syntax"),
        ("\n\nraise ValueError('no')\n", 3, "ValueError: no"),
        ("import sys\nsys.exit(1)\n", 2, "sys.exit(1)"),
        ("from toolyard.plugins.contract import tool\n@tool\ndef f(*a: int): pass\n", 2, "*args"),
        ("x = 1\n", 1, "without plugins"),
    ],
)
def test_what_does_not_load_is_an_error_at_its_line(toolyard: CommandLine, module, line, words):
    toolyard.file("bad.py", module)
    ran = toolyard("tool", "check", "bad.py", "--json")
    assert ran.code == 1
    (row,) = ran.json
    assert (row["file"], row["line"], row["severity"]) == (str(toolyard.folder / "bad.py"), line, "error")
    assert words in row["message"]


def test_a_faulty_descriptor_is_an_error_at_its_line(toolyard: CommandLine):
    toolyard.file("mine/agent_plugin.json", '{\n  "entries": ["plugin.greet", 3]\n}\n')
    ran = toolyard("tool", "check", "mine", "--json")
    assert [(row["line"], row["severity"]) for row in ran.json] == [(2, "error")]


def test_what_a_tool_prints_is_not_in_the_answer(toolyard: CommandLine):
    toolyard.file("loud.py", "print('at import')\ndef loud() -> str:\n    print('in the call')\n    return 'answer'\n")
    toolyard.config({"path": "loud.py", "entry": "loud.loud"})
    ran = toolyard("call", "loud", "{}")
    assert (ran.code, ran.out, ran.err) == (0, "answer\n", "")


def test_a_tool_that_never_ends_does_not_hold_up_the_command(toolyard: CommandLine):
    module = "import threading\ndef stuck() -> str:\n    threading.Event().wait()\n"
    toolyard.file("stuck.py", module)
    toolyard.config({"path": "stuck.py", "entry": "stuck.stuck"}, policy={"python_timeout_seconds": 0.5})
    ran = toolyard("call", "stuck", "{}")
    assert ran.code == 1
    assert "timed out after 0.5 seconds" in ran.out + ran.err
