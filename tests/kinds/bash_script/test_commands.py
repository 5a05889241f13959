"""A script with several commands is several tools, in the application too."""

from __future__ import annotations

import pytest

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
