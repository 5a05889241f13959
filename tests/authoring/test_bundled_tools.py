"""Every tool that comes with Toolyard, and every example, passes what we ask of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolyard as package
from support import ROOT, CommandLine, need

BUILTIN = Path(package.__file__).parent / "builtin_plugins"
EXAMPLES = ROOT / "examples"
DESCRIPTORS = ("*/agent_plugin.json", "*/tools.json", "*/package.json")
FOLDERS = sorted(
    {path.parent for place in (BUILTIN, EXAMPLES) for pattern in DESCRIPTORS for path in place.glob(pattern)}
)


def has_tools(folder: Path) -> bool:
    """Whether a folder may have tools, by the kinds that its descriptor names."""
    descriptor = folder / "agent_plugin.json"
    kinds = json.loads(descriptor.read_text()).get("kinds", ["tools"]) if descriptor.exists() else ["tools"]
    return "tools" in kinds


WITHOUT_TOOLS = [folder for folder in FOLDERS if not has_tools(folder)]
"""Features and providers, and so without cases of tools."""


@pytest.mark.parametrize("folder", WITHOUT_TOOLS, ids=lambda folder: folder.name)
def test_a_bundled_feature_or_provider_passes_its_strict_check(toolyard: CommandLine, folder: Path):
    checked = toolyard("tool", "check", folder, "--strict")
    assert (checked.code, checked.out) == (0, "")


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f not in WITHOUT_TOOLS], ids=lambda folder: folder.name)
def test_a_bundled_tool_passes_its_strict_check_its_tests_and_shellcheck(toolyard: CommandLine, folder: Path):
    if (folder / "package.json").exists():
        need("node")
    checked = toolyard("tool", "check", folder, "--strict")
    assert (checked.code, checked.out) == (0, "")
    tested = toolyard("tool", "test", folder, "--json")
    assert [row for row in tested.json if not row["passed"]] == []
    assert (tested.code, tested.err) == (0, "")
    assert len(tested.json) >= 5
    if scripts := list(folder.glob("*.bash")):
        assert toolyard.run([need("shellcheck"), *scripts]).out == ""


PROGRAMS = [EXAMPLES / "clients", EXAMPLES / "frameworks"]
"""Examples of programs that use the tools, and are no tools themselves."""


def test_nothing_is_bundled_without_a_descriptor():
    folders = [path for place in (BUILTIN, EXAMPLES) for path in place.iterdir() if path.is_dir()]
    assert sorted(path for path in folders if path.name != "__pycache__") == sorted([*FOLDERS, *PROGRAMS])


def test_the_examples_load_and_are_all_there(toolyard: CommandLine):
    need("node")
    ran = toolyard("--config", EXAMPLES / "toolyard.json", "tools", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    listed = {Path(row["origin"]).parent for row in ran.json}
    assert listed == {folder for folder in FOLDERS if folder.parent == EXAMPLES and has_tools(folder)}


def test_an_example_of_a_node_package_streams_what_it_finds(toolyard: CommandLine):
    need("node")
    toolyard.file("a.md", "# One\n## Two\n")
    ran = toolyard("--config", EXAMPLES / "toolyard.json", "call", "markdown_outline", '{"file": "a.md", "depth": 1}')
    assert (ran.code, ran.out, ran.err) == (0, "- One (1)\n", "")


def test_an_example_gets_its_setting_from_the_configuration(toolyard: CommandLine):
    toolyard.file("node_modules/a.txt", "needle\n")
    toolyard.file("src/a.txt", "needle\n")
    ran = toolyard("--config", EXAMPLES / "toolyard.json", "call", "search_text", '{"pattern": "needle"}')
    assert ran.out == "./src/a.txt:1:needle\n"


def test_an_example_of_a_manifest_runs_alone_and_gets_the_variable_that_it_names(toolyard: CommandLine):
    ran = toolyard(
        "--config",
        EXAMPLES / "text-tools" / "tools.json",
        "call",
        "common_words",
        '{"text": "the cat and the dog", "most": 1}',
        env={"IGNORED_WORDS": "the and"},
    )
    assert (ran.code, ran.out, ran.err) == (0, '[{"word": "cat", "times": 1}]\n', "")


def test_the_template_can_be_copied_and_called(toolyard: CommandLine):
    text = (BUILTIN / "template-bash-tool" / "template_bash_echo.bash").read_text()
    toolyard.file("mine.bash", text.replace("template_bash_echo", "mine"))
    toolyard.config("bash:mine.bash")
    assert toolyard("call", "mine", '{"value": "hello"}').out == "hello\n"


def test_reading_says_how_to_get_by_when_it_takes_too_long(toolyard: CommandLine):
    script = BUILTIN / "bash-read-line-range" / "read_line_range.bash"
    env = {"AGENT_TOOL_TIMED_OUT": "1", "AGENT_TOOL_TIMEOUT_SECONDS": "60"}
    ran = toolyard.run(["bash", script, "error", "124", "file", "1", "2"], env=env)
    assert (ran.code, ran.out) == (0, "Error: reading took longer than 60 seconds; ask for fewer lines.\n")
