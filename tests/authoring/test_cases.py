"""`tool test`: cases run along the real call path, and what differs is said in words."""

from __future__ import annotations

import json

import pytest

from support import CommandLine
from toolyard.authoring.cases import test_tools
from yard import script

RUN = r"""
    [ "${1-}" = --value ] || { echo "no value" >&2; exit 3; }
    printf 'got %s\n' "$2"
    """


def write_probe(toolyard: CommandLine, cases: str) -> None:
    """A tool that says what it got, and a file of cases."""
    toolyard.file("probe.bash", script("probe", run=RUN, cases='preview) echo "show $2" ;;'))
    toolyard.file("tests/probe.json", cases)


GIVEN = {"arguments": {"value": "x"}}


@pytest.mark.parametrize(
    ("case", "differences"),
    [
        (GIVEN, []),
        (GIVEN | {"output": "got x\n", "exit": 0, "preview": "show x"}, []),
        (GIVEN | {"output": "got x"}, ["output: expected 'got x', got 'got x\\n'"]),
        (GIVEN | {"output": "got x\nand y\n"}, ["output: line 2: expected 'and y\\n', got nothing more"]),
        (GIVEN | {"output_contains": "ot"}, []),
        (GIVEN | {"output_contains": "z"}, ["output: expected to contain 'z', got 'got x\\n'"]),
        (GIVEN | {"output_matches": "^got .$"}, []),
        (GIVEN | {"output_matches": "^x"}, ["output: expected to match '^x', got 'got x\\n'"]),
        (GIVEN | {"attached": []}, []),
        (GIVEN | {"attached": ["image/png"]}, ["attached: expected ['image/png'], got []"]),
        (GIVEN | {"output_matches": "("}, ["output_matches: '(' is not a regular expression"]),
        (GIVEN | {"preview": "y"}, ["preview: expected 'y', got 'show x'"]),
        (GIVEN | {"exit": 3}, ["exit: expected 3, got 0"]),
        (GIVEN | {"failure": "timeout"}, ["failure: expected timeout, got success"]),
        ({"arguments": {}}, ["expected success, got exit_code"]),
        ({"arguments": {}, "exit": 3, "output_contains": "no value"}, []),
        ({"arguments": {}, "failure": "exit_code"}, []),
        ({"arguments": {"value": [1]}, "failure": "invalid_arguments"}, []),
        ({"arguments": {"value": [1]}, "exit": 3}, ["exit: expected 3, got no exit, since it never ran"]),
        (
            {"arguments": {"value": [1]}, "failure": "invalid_arguments", "preview": "x"},
            ["preview: line 1: expected 'x'"],
        ),
        ({"arguments": {}, "tool": "none"}, ["expected success, got unknown_tool"]),
    ],
)
@pytest.mark.anyio
async def test_a_case_compares_what_it_gives_and_that_the_call_succeeds(toolyard: CommandLine, case, differences):
    write_probe(toolyard, json.dumps([case]))
    (outcome,), problems = await test_tools(toolyard.folder)
    assert len(outcome.differences) == len(differences), outcome
    assert all(map(str.startswith, outcome.differences, differences)), outcome
    assert (outcome.passed, problems) == (not differences, [])


def test_outcomes_are_lines_with_the_place_of_a_failing_case(toolyard: CommandLine):
    cases = [GIVEN | {"name": "passes"}, GIVEN | {"output": "y\n"}]
    write_probe(toolyard, json.dumps(cases, indent=1))
    ran = toolyard("tool", "test")
    assert ran.out.splitlines() == [
        "ok   passes",
        "FAIL case at line 8",
        "     tests/probe.json:8: output: expected 'y\\n', got 'got x\\n'",
    ]
    assert (ran.code, ran.err) == (1, "1 passed, 1 failed\n")
    rows = toolyard("tool", "test", "--json").json
    assert [(row["name"], row["line"], row["passed"]) for row in rows] == [
        ("passes", 2, True),
        ("case at line 8", 8, False),
    ]


def test_a_long_text_is_told_by_its_first_line_at_odds(toolyard: CommandLine):
    toolyard.file("probe.bash", script("probe", run="seq 1000"))
    expected = "".join(f"{number}\n" for number in range(1, 1001)).replace("500\n", "five hundred\n")
    toolyard.file("tests/a.json", json.dumps([{"arguments": {}, "output": expected}]))
    (row,) = toolyard("tool", "test", "--json").json
    assert row["differences"] == ["output: line 500: expected 'five hundred\\n', got '500\\n'"]


def test_each_case_has_a_folder_of_its_own_with_its_files_and_configuration(toolyard: CommandLine):
    toolyard.file(
        "probe.bash",
        script("probe", run='cat sub/a.txt; echo "$AGENT_TOOL_CONFIG_GREETING"; touch left', config_keys=["greeting"]),
    )
    case = {"files": {"sub/a.txt": "ü\n"}, "config": {"greeting": "hi"}, "arguments": {}, "output": "ü\nhi\n"}
    toolyard.file("tests/a.json", json.dumps([case, {"arguments": {}, "exit": 1, "output_contains": "sub/a.txt"}]))
    before = sorted(toolyard.folder.rglob("*"))
    assert toolyard("tool", "test").code == 0
    assert sorted(toolyard.folder.rglob("*")) == before
    assert not list(toolyard.folder.parent.glob("toolyard-case-*"))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("[{]", "1:3", "expected a key in double quotes"),
        ("{}", "1:1", "a file of cases is a list"),
        ('[\n{"arguments": {}},\n{"argument": {}}]', "3:1", "unknown field 'argument'"),
        ('[{"arguments": []}]', "1:2", "Expected 'object', got 'array'"),
        ('[{"arguments": {}, "exit": "3"}]', "1:2", "Expected 'int | null', got 'str'"),
        ('[{"arguments": {}, "files": {"../x": ""}}]', "1:38", "'../x' is outside"),
        ('[{"arguments": {}, "files": {"/x": ""}}]', "1:36", "'/x' is outside"),
    ],
)
@pytest.mark.anyio
async def test_a_file_of_cases_at_fault_has_a_problem_at_its_place(toolyard: CommandLine, text, place, message):
    write_probe(toolyard, text)
    _, (problem,) = await test_tools(toolyard.folder)
    assert str(problem.where) == f"{toolyard.folder}/tests/probe.json:{place}"
    assert message in problem.message


def test_a_faulty_case_does_not_keep_the_others_from_running(toolyard: CommandLine):
    write_probe(toolyard, json.dumps([GIVEN | {"name": "sound"}, {"argumentz": {}}]))
    ran = toolyard("tool", "test")
    assert (ran.code, ran.out) == (1, "ok   sound\n")
    assert "tests/probe.json:1:50: Object contains unknown field 'argumentz'" in ran.err
    assert "hint: a case may have arguments, name, tool" in ran.err


def test_a_tool_at_fault_is_shown_at_its_line(toolyard: CommandLine):
    toolyard.file("probe.bash", script("probe").replace('"1.0.0"', '""'))
    toolyard.file("tests/probe.json", '[{"arguments": {}}]')
    ran = toolyard("tool", "test")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("probe.bash:9: 'version' must be a non-empty string")


def test_a_file_that_is_missing_is_named_and_faults_come_in_order(toolyard: CommandLine):
    toolyard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "gone.bash"}, {"file": "a.bash"}]}')
    toolyard.file("repo/a.bash", "echo '{}'\n")
    ran = toolyard("tool", "test", "repo")
    places = [line.partition(": ")[0] for line in ran.err.splitlines() if not line.startswith(" ")]
    assert (ran.code, places) == (1, ["repo/a.bash:1"] * 4 + ["repo/gone.bash"])


def test_without_cases_it_says_where_to_write_some(toolyard: CommandLine):
    toolyard.file("probe.bash", script("probe"))
    ran = toolyard("tool", "test")
    assert (ran.code, ran.out) == (2, "")
    assert "no cases: write some in tests/NAME.json" in ran.err


@pytest.fixture
def two_tools(toolyard: CommandLine) -> CommandLine:
    """Two tools; cases in a file for each of them, and in one for both."""
    for name in ("one", "two"):
        toolyard.file(f"{name}.bash", script(name, run=f"echo {name}"))
        toolyard.file(
            f"tests/{name}.json", json.dumps([{"name": f"of {name}", "arguments": {}, "output": f"{name}\n"}])
        )
    both = [{"name": f"names {name}", "tool": name, "arguments": {}, "output": f"{name}\n"} for name in ("one", "two")]
    toolyard.file("tests/zboth.json", json.dumps(both))
    return toolyard


def names(ran) -> list[str]:
    assert all(row["passed"] for row in ran.json), ran.json
    return [row["name"] for row in ran.json]


def test_in_a_folder_of_several_tools_a_file_or_a_case_says_which(two_tools: CommandLine):
    assert names(two_tools("tool", "test", "--json")) == ["of one", "of two", "names one", "names two"]


def test_for_a_single_file_its_own_cases_are_run(two_tools: CommandLine):
    assert names(two_tools("tool", "test", "two.bash", "--json")) == ["of two"]
    (two_tools.folder / "tests" / "two.json").unlink()
    (two_tools.folder / "tests" / "one.json").unlink()
    assert names(two_tools("tool", "test", "two.bash", "--json")) == ["names two"]


def test_a_case_that_says_of_no_tool_is_asked_which(two_tools: CommandLine):
    two_tools.file("tests/other.json", '[{"name": "lost", "arguments": {}}]')
    ran = two_tools("tool", "test")
    assert ran.code == 1
    assert "FAIL lost" in ran.out
    assert "which tool? the case names none, and there are: one, two" in ran.out


def test_cases_stand_beside_a_tool_wherever_its_folder_keeps_it(toolyard: CommandLine):
    toolyard.file("agent_plugin.json", '{"bash_tools": [{"file": "bin/probe.bash"}]}')
    toolyard.file("bin/probe.bash", script("probe", run="echo here"))
    toolyard.file("bin/tests/any.json", '[{"name": "found", "arguments": {}, "output": "here\\n"}]')
    assert names(toolyard("tool", "test", "--json")) == ["found"]


def test_a_test_records_nothing_and_caches_nothing(toolyard: CommandLine):
    toolyard("tool", "new", "greet")
    toolyard("tool", "check", "greet")
    toolyard("tool", "test", "greet")
    assert [path for path in toolyard.home.rglob("*") if not path.is_dir()] == []
