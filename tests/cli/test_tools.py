"""`toolyard tools`: what an agent has, where it comes from, and what is wrong."""

from __future__ import annotations

import json

import pytest

from support import CommandLine, Terminal
from yard import script

FROM_FILES = ["read_line_range"]
FILE_TOOLS = ["read", "glob", "grep", "list", "write", "edit", "multi_edit", "apply_patch"]
BUILTIN = [*FROM_FILES, "bash", "bash_job", "shell", *FILE_TOOLS]


def names(rows) -> list[str]:
    return [row["name"] for row in rows]


def test_without_a_configuration_the_built_in_tools_are_listed(toolyard: CommandLine):
    ran = toolyard("tools")
    assert [line.split()[0] for line in ran.out.splitlines()] == BUILTIN
    assert (ran.code, ran.err) == (0, "")


def test_json_has_the_rows_of_the_table(toolyard: CommandLine):
    rows = toolyard("tools", "--format", "json").json
    table = toolyard("tools").out.splitlines()
    assert [[row["name"], row["kind"], row["description"]] for row in rows] == [line.split(None, 2) for line in table]
    origins = {row["name"]: row["origin"] for row in rows}
    assert all(origins[name].endswith(f"{name}.bash") for name in FROM_FILES)
    assert [origins[name] for name in ("bash", "bash_job", "shell")] == ["shell:session"] * 2 + ["shell:command"]


@pytest.mark.parametrize(
    ("form", "name", "schema"),
    [
        ("openai", ["function", "name"], ["function", "parameters"]),
        ("responses", ["name"], ["parameters"]),
        ("anthropic", ["name"], ["input_schema"]),
        ("mcp", ["name"], ["inputSchema"]),
    ],
)
def test_every_wire_format_has_every_tool_with_its_schema(toolyard: CommandLine, form, name, schema):
    def at(value, path):
        for step in path:
            value = value[step]
        return value

    tools = toolyard("tools", "--format", form).json
    assert [at(tool, name) for tool in tools] == BUILTIN
    assert all(at(tool, schema)["type"] == "object" for tool in tools if tool.get("type") != "bash_20250124")


def test_a_tool_that_a_format_does_not_take_is_left_out_and_named(toolyard: CommandLine):
    toolyard.file("odd.bash", script("odd.name"))
    toolyard.config("bash:odd.bash")
    ran = toolyard("tools", "--format", "openai")
    assert ran.json == []
    assert "odd.name: " in ran.err
    assert "left out" in ran.err
    assert "hint: rename it, for example to 'odd_name'" in ran.err


def test_the_configuration_is_the_one_named_else_the_folders_else_the_users_else_the_built_in_one(
    toolyard: CommandLine,
):
    def configured(file: str, name: str) -> None:
        tool = toolyard.file(f"{name}.bash", script(name))
        config = {"plugins": [f"bash:{tool}"], "plugin_policy": {"allow_bash_tools": True}}
        toolyard.file(file, json.dumps(config))

    def listed(*options: str) -> list[str]:
        return names(toolyard(*options, "tools", "--format", "json").json)

    assert listed() == BUILTIN
    configured("../home/config/toolyard/toolyard.json", "of_the_user")
    assert listed() == ["of_the_user"]
    configured("toolyard.json", "of_the_folder")
    assert listed() == ["of_the_folder"]
    configured("other.json", "named")
    assert listed("--config", "other.json") == ["named"]


def test_paths_that_were_typed_are_meant_from_where_they_were_typed(toolyard: CommandLine):
    toolyard.file("elsewhere/seen.txt", "")
    toolyard.file("probe.bash", script("probe", run="ls"))
    toolyard.config("bash:probe.bash")
    ran = toolyard("--config", "toolyard.json", "--sessions", "kept", "--workspace", "elsewhere", "call", "probe")
    assert ran.out == "seen.txt\n"
    assert list((toolyard.folder / "kept" / "audit").glob("*.ndjson"))


def test_a_workspace_does_not_bring_its_own_configuration(toolyard: CommandLine):
    toolyard.file("probe.bash", script("planted"))
    toolyard.config("bash:probe.bash").rename(toolyard.folder.parent / "toolyard.json")
    assert names(toolyard("--workspace", "..", "tools", "--format", "json").json) == BUILTIN


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('{\n  "plugins": [\n    "bash:./x",\n  ]\n}', ":3:15: ", "trailing comma before ']'"),
        ('{\n  // mine\n  "plugins": []}', ":2:3: ", "comments are not part of JSON"),
        ("{'plugins': []}", ":1:2: ", "strings take double quotes"),
        ('{"plugins": [', ":1:14: ", "the file ends here"),
        ("[]", ":1:1: ", "a configuration is a JSON object"),
        ('{\n  "plugins": "x"}', ":2:14: ", "'plugins' must be a list"),
    ],
)
def test_a_broken_configuration_is_shown_with_its_place_and_without_other_advice(
    toolyard: CommandLine, text, where, message
):
    toolyard.file("toolyard.json", text)
    ran = toolyard("tools")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("toolyard.json" + where)
    assert message in ran.err
    assert "no tools" not in ran.err


def test_every_problem_is_shown_with_a_hint_and_the_good_tools_are_listed(toolyard: CommandLine):
    toolyard.file("good.bash", script("good"))
    toolyard.file("bad.bash", script("bad", args_mode="flagz"))
    toolyard.file("folder/tool.bash", script("tool"))
    toolyard.config("bash:good.bash", "bash:bad.bash", "bash:folder", "bash:missing.bash", "path:x", 17)
    ran = toolyard("tools")
    assert ran.code == 2
    assert ran.out.split()[0] == "good"
    assert "bad.bash:" in ran.err
    assert 'hint: create it: {"bash_tools": [{"file": "tool.bash"}]}' in ran.err
    assert "missing.bash: no such file" in ran.err
    assert f"there is no folder {toolyard.folder / 'x'}" in ran.err
    assert ": 'plugins[5]' must be a string or an object, not 17" in ran.err


def test_all_also_lists_what_did_not_load_and_why(toolyard: CommandLine):
    toolyard.file("good.bash", script("good"))
    toolyard.file("twice.bash", script("good"))
    toolyard.config("bash:good.bash", "bash:twice.bash", "bash:missing.bash")
    ran = toolyard("tools", "--all", "--format", "json")
    assert [(row["name"], row["state"], row["reason"].split(":")[0]) for row in ran.json] == [
        ("good", "on", "on by default"),
        ("good", "off", f"a plugin with this id comes from {toolyard.folder}/good.bash already"),
        ("", "off", "bash_file_missing"),
    ]
    assert f"{toolyard.folder}/missing.bash: no such file" in ran.json[-1]["reason"]
    assert ran.json[-1]["where"].startswith(f"{toolyard.folder}/toolyard.json:1:")
    table = toolyard("tools", "--all").out.splitlines()
    assert [line.split()[2] for line in table] == ["on", "off", "off"]


def test_all_shows_what_is_off_why_and_where_that_was_decided(toolyard: CommandLine):
    toolyard.file("good.bash", script("good"))
    text = """{"plugins": ["bash:good.bash", "shell:session"],
  "plugin_policy": {"allow_bash_tools": true},
  "agents": {"writer": {
    "disabled_plugins": ["shell:session"]}, "reader": {}}}"""
    config = toolyard.file("toolyard.json", text)
    rows = toolyard("tools", "--all", "--format", "json").json
    assert [(row["name"], row["plugin"], row["state"], row["reason"], row["where"]) for row in rows] == [
        ("good", "good", "on", "on by default", f"{config}:1:14"),
        ("bash", "shell:session", "off", "listed in disabled_plugins", f"{config}:4:26"),
        ("bash_job", "shell:session", "off", "listed in disabled_plugins", f"{config}:4:26"),
    ]
    table = toolyard("tools", "--all").out
    assert "listed in disabled_plugins (toolyard.json:4:26)" in table
    assert names(toolyard("tools", "--format", "json").json) == ["good"]
    assert names(toolyard("tools", "--agent", "reader", "--format", "json").json) == ["good", "bash", "bash_job"]


def test_calling_a_tool_that_is_off_says_why(toolyard: CommandLine):
    toolyard.config("shell:command", disabled_plugins=["shell:command"])
    for verb in ("call", "preview"):
        ran = toolyard(verb, "shell", '{"command": "true"}')
        assert ran.code == 2
        assert "'shell' of the plugin 'shell:command' is off: listed in disabled_plugins (toolyard.json:1:" in ran.err


def test_bash_tools_that_are_not_allowed_are_not_run_and_the_key_is_named(toolyard: CommandLine):
    toolyard.file("probe.bash", "touch ran\n")
    toolyard.config("bash:probe.bash", policy={"allow_bash_tools": False})
    ran = toolyard("tools")
    assert 'hint: set "plugin_policy": {"allow_bash_tools": true}' in ran.err
    assert not (toolyard.folder / "ran").exists()


def test_a_configuration_without_tools_says_how_to_begin(toolyard: CommandLine):
    toolyard.config()
    ran = toolyard("tools")
    assert (ran.code, ran.out) == (0, "")
    assert "toolyard tool new" in ran.err


def test_an_unknown_agent_is_wrong_usage_that_names_the_known_ones(toolyard: CommandLine):
    toolyard.config(agents={"writer": {}, "reader": {}})
    ran = toolyard("tools", "--agent", "reeder")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no agent 'reeder'; known: writer, reader" in ran.err
    assert toolyard("tools", "--agent", "reader").code == 0


def test_a_description_of_several_lines_is_one_row(toolyard: CommandLine):
    toolyard.file("probe.bash", script("probe", function={"description": "First.\n\nSecond \x1b[31mline.\n"}))
    toolyard.config("bash:probe.bash")
    assert toolyard("tools").out == "probe  bash_script  First. Second \N{REPLACEMENT CHARACTER}[31mline.\n"


def test_on_a_terminal_rows_are_cut_to_its_width_and_in_a_pipe_they_are_whole(toolyard: CommandLine):
    toolyard.file("probe.bash", script("probe", function={"description": "long " * 60}))
    toolyard.config("bash:probe.bash")
    with Terminal(toolyard, toolyard.path, "tools") as terminal:
        assert terminal.finish() == 0
    assert terminal.text.endswith("…\n")
    assert len(terminal.text.splitlines()) == 1
    assert len(toolyard("tools").out) > 250


def test_watching_lists_the_tools_again_when_they_change_and_ctrl_c_ends_it(toolyard: CommandLine):
    toolyard.file("probe.bash", script("before"))
    toolyard.config("bash:probe.bash")
    with Terminal(toolyard, toolyard.path, "tools", "--watch") as terminal:
        assert terminal.read_until("watching").startswith("before ")
        new = toolyard.file("new.bash", script("after"))
        new.rename(toolyard.folder / "probe.bash")  # at once, so that no half is seen
        assert "before" not in terminal.read_until("after +bash_script").partition("something changed")[2]
        toolyard.file("new.json", "{").rename(toolyard.folder / "toolyard.json")
        terminal.read_until("the last good configuration stays in use")
        terminal.type("\x03")
        assert terminal.finish() == 130


def test_all_lists_a_plugin_whose_descriptor_is_no_json_and_names_the_agent_it_is_about(toolyard: CommandLine):
    toolyard.file("mine/agent_plugin.json", '{"entries": ["a.b"],}')
    toolyard.config("path:mine", agents={"one": {}, "two": {}})
    ran = toolyard("tools", "--all", "--format", "json")
    assert [(row["name"], row["state"]) for row in ran.json] == [("mine/agent_plugin.json", "off")]
    assert "agent 'one'; others with --agent: two" in toolyard("tools", "--all").err
