"""The bundled families: the shapes that their models know, and that the same code does the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import need_backend
from toolyard.app import AgentApplication
from yard import Yard

pytestmark = pytest.mark.anyio
PUBLISHED = {
    "codex-tools": {
        "shell": {
            "command": "array",
            "workdir": "string",
            "timeout_ms": "number",
            "sandbox_permissions": "string",
            "justification": "string",
        },
        "update_plan": {"explanation": "string", "plan": "array"},
        "apply_patch": {"input": "string"},
    },
    "gemini-tools": {
        "read_file": {"file_path": "string", "start_line": "number", "end_line": "number"},
        "write_file": {"file_path": "string", "content": "string"},
        "replace": {
            "file_path": "string",
            "instruction": "string",
            "old_string": "string",
            "new_string": "string",
            "allow_multiple": "boolean",
        },
        "glob": {
            "pattern": "string",
            "dir_path": "string",
            "case_sensitive": "boolean",
            "respect_git_ignore": "boolean",
            "respect_gemini_ignore": "boolean",
        },
        "search_file_content": {"pattern": "string", "dir_path": "string", "include": "string"},
        "list_directory": {"dir_path": "string", "ignore": "array", "file_filtering_options": "object"},
        "run_shell_command": {"command": "string", "description": "string", "dir_path": "string"},
    },
}
"""The names and types of the arguments in the definitions that the makers of these models publish."""
REQUIRED = {
    "shell": ["command"],
    "update_plan": ["plan"],
    "apply_patch": ["input"],
    "read_file": ["file_path"],
    "write_file": ["file_path", "content"],
    "replace": ["file_path", "old_string", "new_string"],
    "glob": ["pattern"],
    "search_file_content": ["pattern"],
    "list_directory": ["dir_path"],
    "run_shell_command": ["command"],
}


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yard = Yard(tmp_path / "work")
    yard.file("a.txt", "hello\n")
    return yard


def open_app(yard: Yard, *families: str, **rest) -> AgentApplication:
    config = yard.config(*(f"path:${{env:BUILTIN_PLUGINS}}/{family}" for family in families), **rest)
    return AgentApplication(config, yard.folder.parent / "sessions")


@pytest.mark.parametrize("family", PUBLISHED)
async def test_the_arguments_are_those_that_the_models_know(yard: Yard, family: str):
    async with open_app(yard, family) as app:
        assert app.get_config_errors() == []
        tools = {one["function"]["name"]: one["function"]["parameters"] for one in app.tool_specs(format="openai")}
    assert {
        name: {key: one["type"] for key, one in schema["properties"].items()} for name, schema in tools.items()
    } == (PUBLISHED[family])
    assert {name: schema["required"] for name, schema in tools.items()} == {name: REQUIRED[name] for name in tools}


async def test_a_patch_is_free_text_of_a_grammar_where_an_api_has_that(yard: Yard):
    async with open_app(yard, "codex-tools") as app:
        (patch,) = [one for one in app.tool_specs(format="responses") if one["name"] == "apply_patch"]
    assert (patch["type"], patch["format"]["type"], patch["format"]["syntax"]) == ("custom", "grammar", "lark")
    assert '"*** Begin Patch" LF' in patch["format"]["definition"]


async def test_claude_gets_its_tools_by_their_types_and_others_as_functions(yard: Yard):
    async with open_app(yard, "claude-tools") as app:
        assert app.tool_specs(format="anthropic") == [
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            {"type": "memory_20250818", "name": "memory"},
        ]
        tools = {one["name"]: one["inputSchema"]["properties"] for one in app.tool_specs(format="mcp")}
    commands = {name: set(properties["command"]["enum"]) for name, properties in tools.items()}
    both = {"view", "create", "str_replace", "insert"}
    assert commands == {"str_replace_based_edit_tool": both, "memory": both | {"delete", "rename"}}
    assert {"path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text"} <= {*tools["memory"]}


async def test_one_family_of_a_configuration_can_lose_a_tool(yard: Yard):
    async with open_app(yard, "codex-tools", disabled_plugins=["apply_patch"]) as app:
        assert {one["name"] for one in app.tool_specs(format="mcp")} == {"shell", "update_plan"}


async def test_they_look_and_change_by_the_same_rules_as_file_tools(yard: Yard):
    async with open_app(yard, "gemini-tools", "codex-tools", permissions={"preset": "read-only"}) as app:
        for tool, arguments in (
            ("read_file", {"file_path": "a.txt"}),
            ("list_directory", {"dir_path": "."}),
            ("search_file_content", {"pattern": "hello"}),
            ("run_shell_command", {"command": "cat a.txt"}),
            ("update_plan", {"plan": []}),
        ):
            result = await app.call_tool(tool, arguments)
            assert result.ok, (tool, result)
        patch = {"input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}
        for tool, arguments in (
            ("replace", {"file_path": "a.txt", "old_string": "hello", "new_string": "bye"}),
            ("apply_patch", patch),
            ("run_shell_command", {"command": "rm a.txt"}),
            ("shell", {"command": ["rm", "a.txt"]}),
        ):
            assert (await app.call_tool(tool, arguments)).failure == "denied", tool
        assert (yard.folder / "a.txt").read_text() == "hello\n"


async def test_what_a_family_changes_is_inside_the_sandbox(yard: Yard):
    need_backend("bubblewrap", "bubblewrap-pids")
    async with open_app(yard, "gemini-tools", "claude-tools") as app:
        for tool, arguments in (
            ("write_file", {"file_path": ".npmrc", "content": "evil"}),
            ("str_replace_based_edit_tool", {"command": "create", "path": ".npmrc", "file_text": "evil"}),
            ("run_shell_command", {"command": "echo evil > .npmrc"}),
        ):
            result = await app.call_tool(tool, arguments)
            assert not result.ok or result.exit_code, (tool, result)
    assert not (yard.folder / ".npmrc").exists()


async def test_a_model_that_read_by_one_tool_of_a_family_changes_by_another(yard: Yard):
    async with open_app(yard, "gemini-tools") as app:
        await app.call_tool("read_file", {"file_path": str(yard.folder / "a.txt")})
        change = {"file_path": "a.txt", "old_string": "hello", "new_string": "bye", "instruction": "be polite"}
        preview = await app.preview_tool("replace", change)
        assert preview == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello\n+bye"
        assert (await app.call_tool("replace", change)).ok
    assert (yard.folder / "a.txt").read_text() == "bye\n"


async def test_wrong_arguments_of_a_family_are_told_and_nothing_runs(yard: Yard):
    async with open_app(yard, "claude-tools", "gemini-tools") as app:
        for tool, arguments, said in (
            ("memory", {"command": "create", "path": "/etc/x", "file_text": "x"}, "not below /memories"),
            ("memory", {"command": "delete", "path": "/memories"}, "cannot be deleted"),
            ("str_replace_based_edit_tool", {"command": "view"}, "view needs path"),
            ("read_file", {"file_path": "a.txt", "start_line": 3, "end_line": 2}, "before start_line"),
        ):
            result = await app.call_tool(tool, arguments)
            assert (result.failure, said in result.text) == ("invalid_arguments", True), result


async def test_notes_of_one_conversation_are_there_in_the_next(yard: Yard):
    async with open_app(yard, "claude-tools") as app:
        note = {"command": "create", "path": "/memories/plan.md", "file_text": "one\n"}
        assert (await app.call_tool("memory", note, session="first")).ok
    async with open_app(yard, "claude-tools") as app:
        seen = await app.call_tool("memory", {"command": "view", "path": "/memories/plan.md"}, session="second")
        assert seen.text == "     1\tone"
        moved = {"command": "rename", "old_path": "/memories/plan.md", "new_path": "/memories/old/plan.md"}
        assert (await app.call_tool("memory", moved, session="second")).ok
        assert (await app.call_tool("memory", {"command": "view", "path": "/memories"})).text == "old/\nold/plan.md"
