"""A script with several commands is several tools, in the application too."""

from __future__ import annotations

import os

import pytest

from toolyard.kinds.bash_script.author import is_bash_tool
from toolyard.kinds.bash_script.check import preview_findings
from toolyard.kinds.bash_script.script_text import ScriptText
from toolyard.process.child import ChildOutcome
from toolyard.process.output import NO_OUTPUT, Captured
from yard import Yard

pytestmark = pytest.mark.anyio

TODO = """\
set -euo pipefail

# @cmd Add a thing to do
# @option --text! What
add_todo() { echo "added $argc_text"; }

# @cmd Say what there is
# @env TODO_API_KEY! The key of the service
# @env TODO_PLACE! Where it is
list_todos() { echo "listed with $TODO_API_KEY"; }

eval "$(argc --argc-eval "$0" "$@")"
"""


@pytest.fixture
def yard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Yard(tmp_path)


async def test_each_command_is_a_plugin_of_its_own(yard):
    yard.file("todo.sh", TODO)
    async with yard.app("bash:todo.sh", disabled_plugins=["list_todos"]) as app:
        assert app.problems() == []
        assert [spec.name for spec in app.tool_specs()] == ["add_todo"]
        assert (await app.call_tool("add_todo", {"text": "sleep"})).text == "added sleep\n"
    async with yard.app("bash:todo.sh") as app:  # from the cache of schemas this time
        assert [(spec.name, spec.description) for spec in app.tool_specs()] == [
            ("add_todo", "Add a thing to do"),
            ("list_todos", "Say what there is"),
        ]
        yard.file("todo.sh", TODO.replace("# @option", "# @optoin"))
        await app.refresh()
        (problem,) = app.problems()
        assert (problem.code, problem.message) == ("bash_schema_comments", "@optoin is no tag")
        assert "did you mean @option?" in problem.hint
        assert (await app.call_tool("add_todo", {"text": "go on"})).text == "added go on\n"


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("# @cmd Say where we are\nget_place() { pwd; }\n", ["get_place"]),
        ("# @cmd Say where we are\nmain() { pwd; }\n", ["my_tools"]),
        ("# @describe Say where we are\nmain() { pwd; }\n", ["my_tools"]),
        ("# @cmd One\nmain() { :; }\n# @cmd Two\nother() { :; }\n", ["main", "other"]),
        ("# @cmd Those that hold others\ndisk() { :; }\n# @cmd How much is free\ndisk::free() { :; }\n", ["disk_free"]),
    ],
)
async def test_a_command_has_the_name_of_its_function_and_a_whole_script_that_of_its_file(yard, script, names):
    yard.file("my-tools.sh", script)
    async with yard.app("bash:my-tools.sh") as app:
        assert [spec.name for spec in app.tool_specs()] == names


async def test_a_variable_that_was_withheld_is_named_as_that(yard, monkeypatch):
    monkeypatch.setenv("TODO_API_KEY", "abcdefghijkl")
    yard.file("todo.sh", TODO)
    async with yard.app("bash:todo.sh") as app:
        text = (await app.call_tool("list_todos", {})).text
        assert "required, but not set: TODO_PLACE; these are set, but withheld" in text
        assert "look like credentials: TODO_API_KEY (name them in plugin_policy.pass_env)" in text
        assert "abcdefghijkl" not in text
    monkeypatch.setenv("TODO_PLACE", "here")
    async with yard.app("bash:todo.sh", policy={"pass_env": ["TODO_API_KEY"]}) as app:
        assert (await app.call_tool("list_todos", {})).text.startswith("listed with ")


async def test_a_script_that_was_only_touched_has_the_same_tools(yard):
    yard.tool(run="echo on")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {})).text == "on\n"
        os.utime(yard.folder / "probe.bash", (1, 1))
        assert (await app.call_tool("probe", {})).text == "on\n"
        assert app.problems() == []


@pytest.mark.parametrize(
    ("name", "is_tool"), [("todo.sh", True), ("todo.bash", True), ("todo.md", False), ("todo", False)]
)
def test_only_a_script_is_taken_for_a_tool(tmp_path, name, is_tool):
    (tmp_path / name).write_text(TODO)
    assert is_bash_tool(tmp_path / name) is is_tool


@pytest.mark.parametrize(("code", "timed_out"), [(0, True), (4, False), (137, True)])
def test_a_preview_that_is_cut_off_has_failed_whatever_its_status(tmp_path, code, timed_out):
    (tmp_path / "a.bash").write_text(TODO)
    said = Captured(text="a line\n", total_bytes=7)
    shown = ChildOutcome(exit_code=code, signal=None, timed_out=timed_out, stdout=said, stderr=NO_OUTPUT, duration=2.0)
    (found,) = preview_findings(ScriptText(tmp_path / "a.bash", TODO), shown, {})
    assert found.code == "preview_fails"
