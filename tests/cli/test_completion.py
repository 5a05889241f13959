"""Completion in the shells themselves: commands, options, and the tools that are configured."""

from __future__ import annotations

import pytest

from support import CommandLine, Terminal, need
from yard import script

WORDS = [
    (["to"], ["tools", "tool", "tour"]),
    (["she"], ["shell"]),
    (["call", "se"], ["search_all", "search_one"]),
    (["preview", ""], ["search_all", "search_one", "other"]),
    (["--config", "elsewhere.json", "call", ""], ["elsewhere"]),
    (["--config", "none.json", "call", "se"], ["search_all", "search_one"]),
    (["tools", "--agent", ""], ["writer", "reader"]),
    (["tools", "--format", "r"], ["responses"]),
    (["tool", ""], ["new", "check", "test"]),
    (["tool", "new", "x", "--mode", "j"], ["json"]),
    (["--wor"], ["--workspace"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
]

BASH = """
eval "$(toolyard completion bash)"
[[ $(complete -p toolyard) =~ -F\\ ([^ ]+) ]]
COMP_WORDS=(toolyard "$@") COMP_CWORD=$#
"${BASH_REMATCH[1]}" toolyard
printf '%s\\n' "${COMPREPLY[@]}"
"""

# A shell on a terminal is the only one that completes; a bare prompt makes what it writes easy to read.
ZSH = """
PS1='> ' PROMPT_EOL_MARK=''
autoload -U compinit; compinit -u -D
eval "$(toolyard completion zsh)"
print ready
"""


@pytest.fixture(autouse=True)
def tools(toolyard: CommandLine) -> None:
    for name in ("search_all", "search_one", "other", "elsewhere"):
        toolyard.file(f"{name}.bash", script(name, function={"description": f"First, {name}:\nand then, more."}))
    toolyard.config("bash:elsewhere.bash").rename(toolyard.folder / "elsewhere.json")
    toolyard.config(
        "bash:search_all.bash", "bash:search_one.bash", "bash:other.bash", agents={"writer": {}, "reader": {}}
    )


@pytest.mark.parametrize(("words", "completions"), WORDS)
def test_bash_completes(toolyard: CommandLine, words, completions):
    ran = toolyard.run([need("bash"), "-c", BASH, "-", *words])
    assert ran.out.split() == completions
    assert ran.err == ""


@pytest.mark.parametrize(("words", "completions"), WORDS[:7])
def test_fish_completes(toolyard: CommandLine, words, completions):
    line = " ".join(["toolyard", *words])
    ran = toolyard.run([need("fish"), "-c", f'toolyard completion fish | source; complete -C "{line}"'])
    assert sorted(line.split("\t")[0] for line in ran.out.splitlines()) == sorted(completions)


def test_fish_shows_the_whole_first_sentence_of_a_tool(toolyard: CommandLine):
    ran = toolyard.run([need("fish"), "-c", 'toolyard completion fish | source; complete -C "toolyard call o"'])
    assert ran.out == "other\tFirst, other: and then, more.\n"


def test_zsh_takes_the_script(toolyard: CommandLine):
    written = toolyard("completion", "zsh").out
    assert toolyard.run([need("zsh"), "-n"], stdin=written).code == 0


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("toolyard prev\t", r"toolyard preview "),
        ("toolyard call oth\t", r"toolyard call other "),
        ("toolyard call search_o\t", r"toolyard call search_one "),
        ("toolyard tools --format resp\t", r"toolyard tools --format responses "),
    ],
)
def test_zsh_completes_at_its_prompt(toolyard: CommandLine, typed, completed):
    toolyard.file("start.zsh", ZSH)
    with Terminal(toolyard, need("zsh"), "-f", "-i") as terminal:
        terminal.type("source start.zsh\n")
        terminal.read_until("ready\n")
        terminal.type(typed)
        terminal.read_until(completed)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_help_says_how_to_install_it(toolyard: CommandLine, shell):
    assert f"toolyard completion {shell}" in toolyard("completion", "--help").out


def test_completion_in_a_folder_with_a_broken_configuration_says_nothing(toolyard: CommandLine):
    toolyard.file("toolyard.json", "{broken")
    ran = toolyard.run([need("bash"), "-c", BASH, "-", "call", ""])
    assert (ran.out.strip(), ran.err) == ("", "")
