"""Wrong usage is explained, right usage is documented, and our own bugs are owned up to."""

from __future__ import annotations

import re
import sys

import click
import pytest

from support import ROOT, CommandLine
from toolyard.cli.call import EXIT_CODES
from toolyard.cli.main import COMMANDS, main

REFERENCE = ROOT / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cal"], "no such command 'cal'. Did you mean 'call'?"),
        (["xyz"], "no such command 'xyz'."),
        (["tool", "chek"], "'chek'"),
        (["call"], "Missing argument 'TOOL'."),
        (["call", "x", "{}", "more"], "unexpected extra argument"),
        (["tools", "--format", "yaml"], "'yaml' is not one of 'table', 'json'"),
        (["--nonsense"], "--nonsense"),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
        (["tool", "check", "none"], "Path 'none' does not exist."),
        (["tool", "test", "none"], "Path 'none' does not exist."),
        (["tool", "new"], "Missing argument 'PATH'."),
        (["tool", "new", "x", "--mode", "yaml"], "'yaml' is not one of 'flags'"),
    ],
)
def test_wrong_usage_says_what_is_wrong_beside_an_empty_answer(toolyard: CommandLine, words, message):
    ran = toolyard(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize("words", [[], ["tool"]])
def test_a_command_that_is_not_whole_shows_its_help(toolyard: CommandLine, words):
    ran = toolyard(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == toolyard(*words, "--help").out


def test_every_help_is_an_answer_in_whole_sentences(toolyard: CommandLine):
    for path, _ in every_command():
        ran = toolyard(*path, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert "..." not in ran.out.partition("\n")[2].replace("[ARGS]...", ""), path


def test_the_reference_has_every_command_option_and_exit_status():
    text = REFERENCE.read_text()
    for path, command in every_command():
        assert not path or f"`{' '.join(path)}" in text
        for parameter in command.params:
            for name in parameter.opts + parameter.secondary_opts if isinstance(parameter, click.Option) else []:
                assert name in text or name in ("--version", "-h", "--help"), (path, name)
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == {0, 1, 70, *EXIT_CODES.values()}


def test_a_bug_of_ours_is_owned_up_to_with_all_that_a_report_needs(toolyard: CommandLine):
    toolyard.file("broken/toolyard/cli/tools.py", "raise RuntimeError('broken on purpose')\n")
    program = (
        "import toolyard.cli; toolyard.cli.__path__.insert(0, 'broken/toolyard/cli');"
        "from toolyard.cli.main import run; run(['tools'])"
    )
    ran = toolyard.run([sys.executable, "-c", program])
    assert (ran.code, ran.out) == (70, "")
    assert "RuntimeError: broken on purpose" in ran.err
    assert ran.err.endswith("This is a bug in toolyard; please report it with the lines above.\n")


def every_command(command: click.Command = main, path: tuple[str, ...] = ()):
    """Each command with the words that lead to it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from every_command(command.get_command(context, name), (*path, name))


def test_every_command_is_what_its_name_says():
    for name, command in ((path[0], command) for path, command in every_command() if len(path) == 1):
        assert command.name == name
        assert name in COMMANDS
