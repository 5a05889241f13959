"""`tool new`, `tool check` and `tool test` for Node tools."""

from __future__ import annotations

import json

import pytest

from support import CommandLine, need

TOOL = {"id": "probe", "entry": "index.js"}


@pytest.fixture(autouse=True)
def node() -> str:
    return need("node")


def write(toolyard: CommandLine, module: str, **package) -> None:
    toolyard.file("pkg/index.js", module)
    toolyard.file("pkg/package.json", json.dumps({"type": "module", "agent": {"tools": [TOOL]}, **package}, indent=1))


def findings(toolyard: CommandLine, path: str = "pkg") -> list[tuple[str, int, str]]:
    rows = toolyard("tool", "check", path, "--json").json
    return [(row["file"].rpartition("/")[2], row["line"], row["code"]) for row in rows]


@pytest.mark.parametrize("name", ["greet", "My-Tool2", "_x"])
def test_a_new_tool_passes_its_check_and_its_tests_and_can_be_called(toolyard: CommandLine, name):
    ran = toolyard("tool", "new", name, "--kind", "node")
    assert (ran.code, ran.out.split()) == (
        0,
        [f"{name}/package.json", f"{name}/index.js", f"{name}/tests/{name}.json"],
    )
    checked = toolyard("tool", "check", name, "--strict")
    assert (checked.code, checked.out) == (0, "")
    tested = toolyard("tool", "test", name, "--json")
    assert [row for row in tested.json if not row["passed"]] == []
    assert len(tested.json) >= 5
    toolyard.config(f"node:{name}")
    called = toolyard("call", name, '{"name": "Ada", "loud": true}')
    assert (called.code, called.out, called.err) == (0, "HELLO, ADA!\n", "")


def test_modes_are_for_bash_scripts(toolyard: CommandLine):
    ran = toolyard("tool", "new", "greet", "--kind", "node", "--mode", "json")
    assert (ran.code, "a tool of kind node has no mode 'json'" in ran.err) == (2, True)


SPEAKING = "description: 'A probe.', "


@pytest.mark.parametrize(
    ("module", "found"),
    [
        (f"export default {{ {SPEAKING} run() {{}} }};", []),
        ("export default {\n run() {} };", [("index.js", 1, "no_description")]),
        (
            f"export default {{ {SPEAKING}\n parameters: {{ properties: {{\n  a: {{}} }} }}, run() {{}} }};",
            [("index.js", 3, "no_description")],
        ),
        (
            f"export default {{ {SPEAKING}\n preview() {{ throw 1 }},\n run() {{}} }};",
            [("index.js", 2, "preview_empty")],
        ),
        ("export default {\n", [("index.js", 2, "node_import")]),
        ("export const x = 1;", [("index.js", 1, "node_export")]),
    ],
)
def test_every_fault_is_found_at_its_line(toolyard: CommandLine, module, found):
    write(toolyard, module)
    assert findings(toolyard) == found


def test_a_faulty_package_is_found_where_it_is_declared(toolyard: CommandLine):
    write(toolyard, "", agent={"tools": [{"id": "x"}]})
    assert findings(toolyard) == [("package.json", 5, "node_package")]
    toolyard.file("pkg/package.json", "{")
    assert [code for _, _, code in findings(toolyard)] == ["config_syntax"]


def test_checking_runs_no_run(toolyard: CommandLine):
    write(toolyard, f"export default {{ {SPEAKING} run() {{ require('fs').writeFileSync('ran', '') }} }};")
    toolyard("tool", "check", "pkg")
    assert not list(toolyard.folder.rglob("ran"))


def test_a_single_module_can_be_checked_and_tested(toolyard: CommandLine):
    toolyard.file(
        "probe.mjs", f"export default {{ {SPEAKING} run: (args, context) => process.cwd() === context.cwd }};"
    )
    assert findings(toolyard, "probe.mjs") == []
    toolyard.file("tests/probe.json", json.dumps([{"arguments": {}, "output": "true"}] * 2))
    assert [row["passed"] for row in toolyard("tool", "test", "probe.mjs", "--json").json] == [True, True]
    toolyard.file("tests/probe.json", json.dumps([{"arguments": {}, "output": "false"}]))
    assert toolyard("tool", "test", "probe.mjs").code == 1


def test_without_node_it_says_so(toolyard: CommandLine, tmp_path):
    toolyard.file("probe.mjs", "export default { run() {} };")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(need("bash"))
    ran = toolyard("tool", "check", "probe.mjs", env={"PATH": str(tmp_path / "bin")})
    assert (ran.code, "there is no Node on PATH" in ran.out) == (1, True)


def test_calling_a_tool_shows_what_it_prints_beside_the_answer(toolyard: CommandLine):
    toolyard.file("probe.mjs", "export default { run() { console.log('to see %d', 1); return 'the answer' } };")
    toolyard.config("node:probe.mjs")
    ran = toolyard("call", "probe")
    assert (ran.code, ran.out, ran.err) == (0, "the answer\n", "to see 1\n")
