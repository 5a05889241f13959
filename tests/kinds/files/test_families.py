"""The bundled families: the shapes that their models know, and that the same code does the work."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from support import need_backend
from toolyard.app import AgentApplication
from yard import Yard

pytestmark = pytest.mark.anyio
SEARCH = {
    "pattern": "string",
    "dir_path": "string",
    "case_sensitive": "boolean",
    "fixed_strings": "boolean",
    "context": "integer",
    "after": "integer",
    "before": "integer",
    "no_ignore": "boolean",
}
PUBLISHED = {
    "codex-tools": {
        "shell": {
            "command": "array",
            "workdir": "string",
            "timeout_ms": "number",
            "sandbox_permissions": "string",
            "justification": "string",
            "prefix_rule": "array",
        },
        "update_plan": {"explanation": "string", "plan": "array"},
        "apply_patch": {"input": "string"},
    },
    "gemini-tools": {
        "read_file": {"file_path": "string", "start_line": "integer", "end_line": "integer"},
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
        "search_file_content": {**SEARCH, "include": "string"},
        "list_directory": {"dir_path": "string", "ignore": "array", "file_filtering_options": "object"},
        "run_shell_command": {
            "command": "string",
            "description": "string",
            "dir_path": "string",
            "is_background": "boolean",
            "delay_ms": "integer",
        },
        "list_background_processes": {},
        "read_background_output": {"pid": "integer", "lines": "integer", "delay_ms": "integer"},
    },
}
"""The names and types of the arguments in the definitions that the makers of these models publish: `codex-rs/tools/src`
of openai/codex (`local_tool.rs`, `plan_tool.rs`, `apply_patch_tool.rs`), and @google/gemini-cli-core 0.61.0, but for
`search_file_content`, which is of 0.20.0: it has been `grep_search` since."""
GREP_SEARCH = {
    **SEARCH,
    "include_pattern": "string",
    "exclude_pattern": "string",
    "names_only": "boolean",
    "max_matches_per_file": "integer",
    "total_max_matches": "integer",
}
EDITOR = "str_replace_based_edit_tool"
TWICE = {"old_string": "y", "new_string": "z"}
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
    "list_background_processes": [],
    "read_background_output": ["pid"],
}
"""As published, but that `replace` works without `instruction`, which is only for people to read."""
PLAN_STATES = ["pending", "in_progress", "completed"]
EDITOR_COMMANDS = {
    "view": {"path", "view_range"},
    "create": {"path", "file_text"},
    "str_replace": {"path", "old_str", "new_str"},
    "insert": {"path", "insert_line", "insert_text"},
}
"""What each command of `text_editor_20250728` comes with; the API gives models no more of it than its type."""


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


async def test_the_search_of_later_versions_can_be_turned_on(yard: Yard):
    yard.file("b.txt", "hello you\nhello me\n")
    async with open_app(yard, "gemini-tools", enabled_plugins=["grep_search"]) as app:
        (search,) = [one for one in app.tool_specs(format="mcp") if one["name"] == "grep_search"]
        found = await app.call_tool(
            "grep_search", {"pattern": "HELLO", "exclude_pattern": "you", "include_pattern": "b*"}
        )
        names = await app.call_tool("grep_search", {"pattern": "hello", "names_only": True})
        one_each = await app.call_tool("grep_search", {"pattern": "hello", "max_matches_per_file": 1})
        wrong = await app.call_tool("grep_search", {"pattern": "hello", "exclude_pattern": "("})
    assert {name: one["type"] for name, one in search["inputSchema"]["properties"].items()} == GREP_SEARCH
    assert found.text == "b.txt:2:hello me"
    assert sorted(names.text.split()) == ["a.txt", "b.txt"]
    assert sorted(one_each.text.split("\n")) == ["a.txt:1:hello", "b.txt:1:hello you"]
    assert "exclude_pattern: " in wrong.text


async def test_a_command_in_the_background_is_a_job_of_the_conversation(yard: Yard):
    (yard.folder / "sub").mkdir()
    os.mkfifo(yard.folder / "sub" / "go")
    async with open_app(yard, "gemini-tools") as app:
        await app.call_tool("run_shell_command", {"command": "export SEEN=1; cd /"}, session="one")
        started = await app.call_tool(
            "run_shell_command",
            {"command": "echo ${SEEN-fresh} $PWD; cat < go; echo over", "is_background": True, "dir_path": "sub"},
            session="one",
        )
        assert started.text == "job 1 runs in the background; see it with read_background_output"
        await app.call_tool("run_shell_command", {"command": "echo go on > sub/go"}, session="one")
        read = await app.call_tool("read_background_output", {"pid": 1, "delay_ms": 60_000}, session="one")
        listed = await app.call_tool("list_background_processes", {}, session="one")
        elsewhere = await app.call_tool("list_background_processes", {}, session="other")
        again = await app.call_tool("read_background_output", {"pid": 1, "lines": 1}, session="one")
        unknown = await app.call_tool("read_background_output", {"pid": 9}, session="one")
    stands, *printed = read.text.split("\n")
    assert stands.startswith("1: ended with status 0"), read
    assert printed == [f"fresh {yard.folder / 'sub'}", "go on", "over"]
    assert listed.text.startswith("1: ended")
    assert elsewhere.text == "no jobs"
    assert again.text.endswith("\n(no output)")
    assert "there is no job 9" in unknown.text


async def test_what_runs_in_the_background_is_judged_as_what_runs_now(yard: Yard):
    async with open_app(yard, "gemini-tools", permissions={"deny": ["curl **"]}) as app:
        for call in ({"command": "curl x"}, {"command": "curl x", "is_background": True}):
            assert (await app.call_tool("run_shell_command", call)).failure == "denied", call


async def test_the_steps_of_a_plan_have_the_states_that_codex_knows(yard: Yard):
    async with open_app(yard, "codex-tools") as app:
        (plan,) = [one for one in app.tool_specs(format="mcp") if one["name"] == "update_plan"]
        step = plan["inputSchema"]["properties"]["plan"]["items"]
        said = await app.call_tool("update_plan", {"plan": [{"step": one, "status": one} for one in PLAN_STATES]})
        asked = {"command": ["true"], "sandbox_permissions": "use_default", "prefix_rule": ["true"]}
        assert (await app.call_tool("shell", asked)).ok
    assert (step["properties"]["status"]["enum"], step["required"]) == (PLAN_STATES, ["step", "status"])
    assert said.text == "Plan updated\n[ ] pending\n[~] in_progress\n[x] completed"


async def test_each_command_of_the_memory_is_as_the_official_package_types_it(yard: Yard):
    from anthropic.types import beta

    names = [name for name in dir(beta) if re.fullmatch("BetaMemoryTool20250818[A-Z].+Command", name)]
    typed = {name: getattr(beta, name).model_fields for name in names}
    commands = {fields["command"].annotation.__args__[0]: set(fields) - {"command"} for fields in typed.values()}
    values = {"path": "/memories/a", "old_path": "/memories/a", "new_path": "/memories/b", "file_text": "old\n"}
    values |= {"old_str": "old", "new_str": "new", "insert_line": 0, "insert_text": "first\n", "view_range": [1, 1]}
    async with open_app(yard, "claude-tools") as app:
        (memory,) = [one for one in app.tool_specs(format="mcp") if one["name"] == "memory"]
        known = memory["inputSchema"]["properties"]
        assert set(known["command"]["enum"]) == set(commands)
        assert set(known) == {"command", *set().union(*commands.values())}
        for command in ("create", "view", "str_replace", "insert", "rename", "delete"):
            path = {"path": "/memories/b"} if command == "delete" else {}
            given = {name: values[name] for name in commands[command]} | path
            result = await app.call_tool("memory", {"command": command, **given})
            assert result.ok, (command, result)


async def test_each_command_of_the_editor_works_with_what_it_comes_with(yard: Yard):
    values = {"path": "new.txt", "file_text": "old\n", "view_range": [1, -1], "old_str": "old", "new_str": "new"}
    values |= {"insert_line": 1, "insert_text": "last\n"}
    async with open_app(yard, "claude-tools") as app:
        (editor,) = [one for one in app.tool_specs(format="mcp") if one["name"] == "str_replace_based_edit_tool"]
        known = editor["inputSchema"]["properties"]
        assert set(known) == {"command", *set().union(*EDITOR_COMMANDS.values())}
        for command in ("create", "view", "str_replace", "insert"):
            given = {name: values[name] for name in EDITOR_COMMANDS[command]}
            result = await app.call_tool("str_replace_based_edit_tool", {"command": command, **given})
            assert result.ok, (command, result)
    assert (yard.folder / "new.txt").read_text() == "new\nlast\n"


async def test_a_patch_is_free_text_of_a_grammar_where_an_api_has_that(yard: Yard):
    async with open_app(yard, "codex-tools") as app:
        (patch,) = [one for one in app.tool_specs(format="responses") if one["name"] == "apply_patch"]
    assert (patch["type"], patch["format"]["type"], patch["format"]["syntax"]) == ("custom", "grammar", "lark")
    marks = ("Begin Patch", "Add File: ", "Delete File: ", "Update File: ", "Move to: ", "End of File", "End Patch")
    assert all(f'"*** {mark}"' in patch["format"]["definition"] for mark in marks)


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
            ("read_file", {"file_path": "a.txt", "limit": 1}, "limit: unknown property"),
            ("read_file", {"absolute_path": "/a.txt"}, "absolute_path: unknown property, did you mean 'file_path'"),
        ):
            result = await app.call_tool(tool, arguments)
            assert (result.failure, said in result.text) == ("invalid_arguments", True), result


@pytest.mark.parametrize(
    ("family", "tool", "arguments", "said"),
    [
        ("codex-tools", "shell", {"command": ["sleep", "60"], "timeout_ms": 100}, "Give a higher `timeout_ms` if"),
        ("codex-tools", "shell", {"command": ["true"], "timeout_ms": -1}, "timeout_ms: must be more than 0"),
        ("gemini-tools", "read_file", {"file_path": "long.txt"}, "go on with start_line 2001]"),
        ("gemini-tools", "replace", {"file_path": "two.txt", **TWICE}, "or say allow_multiple"),
        ("gemini-tools", "search_file_content", {"pattern": "1"}, "; narrow the search]"),
        ("gemini-tools", "grep_search", {"pattern": "1"}, "or raise total_max_matches]"),
        ("claude-tools", EDITOR, {"command": "view", "path": "long.txt"}, "go on with view_range [2001, -1]]"),
        ("claude-tools", EDITOR, {"command": "str_replace", "path": "a.txt", "old_str": "x"}, "old_str was not found"),
        ("claude-tools", EDITOR, {"command": "str_replace", "path": "two.txt", "old_str": "y"}, "around it"),
        ("claude-tools", "memory", {"command": "create", "path": "/memories/a", "file_text": ""}, "Made /memories/a:"),
        ("claude-tools", "memory", {"command": "delete", "path": "/memories/none"}, "Error: /memories/none: No such"),
    ],
)
async def test_advice_names_the_arguments_that_the_model_was_given(yard: Yard, family, tool, arguments, said):
    yard.file("long.txt", "".join(f"{number}\n" for number in range(1, 5001)))
    yard.file("two.txt", "y\ny\n")
    async with open_app(yard, family, enabled_plugins=["grep_search"] if tool == "grep_search" else []) as app:
        for name in ("a.txt", "two.txt"):
            if tool == EDITOR:
                await app.call_tool(EDITOR, {"command": "view", "path": name})
            elif tool == "replace":
                await app.call_tool("read_file", {"file_path": name})
        result = await app.call_tool(tool, arguments)
    assert said in result.text
    ours = "\n".join([*result.text.split("\n")[:2], result.text.split("\n")[-1]])
    assert not re.search(r"\boffset\b|replace_all|old_string was|raise limit|in seconds|\.memories", ours)


async def test_what_files_say_is_not_put_into_other_words(yard: Yard):
    yard.file("words.txt", "go on with offset 7\n[go on with offset 7]\n")
    async with open_app(yard, "gemini-tools") as app:
        read = await app.call_tool("read_file", {"file_path": "words.txt"})
    assert read.text.count("go on with offset 7") == 2


@pytest.mark.parametrize(
    ("family", "tool", "arguments", "advice"),
    [
        ("codex-tools", "shell", {"command": ["touch", "/usr/made"]}, ', or ask for "sandbox_permissions": "require_'),
        ("gemini-tools", "run_shell_command", {"command": "touch /usr/made"}, "sandbox.writable]"),
        ("gemini-tools", "write_file", {"file_path": "toolyard.json", "content": "x"}, "sandbox.writable]"),
    ],
)
async def test_more_reach_is_advised_only_as_the_tool_takes_it(yard: Yard, family, tool, arguments, advice):
    need_backend("bubblewrap", "bubblewrap-pids")
    async with open_app(yard, family) as app:
        result = await app.call_tool(tool, arguments, by_person=True)
    note = result.text.split("\n")[-1]
    assert (note.startswith("[sandbox: "), advice in note, '"reach"' in note) == (True, True, False), note


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
