"""What a line leaves behind in a live shell, and which later words it makes uncertain."""

from __future__ import annotations

import pytest

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.expansion.shell_state import FRESH, ShellStates, facts_after

UNKNOWN_AFTER = [
    *(
        "source x",
        ". x",
        ". ./x",
        "eval ls",
        'eval "$x"',
        "$x",
        '"$x" y',
        "trap 'ls' EXIT",
        "trap id DEBUG",
        "enable -f ./x y",
    ),
    *(
        "set -o posix",
        "set -k",
        "set -a",
        "set +B",
        "shopt -s sourcepath",
        "hash -p ./x $y",
        "alias $x",
        "command source x",
    ),
    *(
        "builtin . x",
        "BASH_ALIASES[$x]=y",
        "declare $x",
        "read $x",
        "fc -s",
        "ls 'x",
        "PATH[0]=x",
        "if true; then source x; fi",
    ),
]
CHANGES_A_WORD = {
    "ls() { id; }": "ls",
    "function ls { id; }": "ls",
    "function ls() { id; }": "ls",
    "ls ( ) { id; }": "ls",
    "alias ls=id": "ls",
    "alias x=y ls='id -u'": "ls",
    "shopt -s expand_aliases; alias ls=id": "ls",
    "BASH_ALIASES[ls]=id": "ls",
    "BASH_ALIASES['ls']=id": "ls",
    "BASH_CMDS[ls]=./x": "ls",
    "hash -p ./x ls": "ls",
    "enable -n echo": "echo",
    "if true; then ls() { id; }; fi": "ls",
    "PATH=.": "ls",
    "PATH=$PWD:$PATH": "ls",
    "export PATH=x:$PATH": "ls",
    'export PATH="$x:$PATH"': "ls",
    "unset PATH": "ls",
    "read PATH": "ls",
    "for PATH in x; do :; done": "ls",
    "printf -v PATH x": "ls",
    "export LD_PRELOAD=./x": "ls",
    "LD_PRELOAD=./x": "ls",
    "export HOME=.": "git",
    "export GIT_PAGER=id": "git",
    "GIT_DIR=x": "git",
    "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=id": "git",
    "export PAGER=id": "git",
    "declare -x GIT_PAGER=id": "git",
    "export RIPGREP_CONFIG_PATH=x": "rg",
    "export BASH_ENV=x": "echo",
    "PROMPT_COMMAND=id": "echo",
    "PS4='$(id)'": "echo",
    "typeset GIT_EDITOR=x": "git",
    "readonly GIT_SSH_COMMAND=x": "git",
    "mapfile LD_PRELOAD < x": "ls",
}
CHANGES_NOTHING = [
    *(
        "ls",
        "x=1",
        "export FOO=bar",
        "n=$(wc -l x)",
        "cd src",
        "set -e",
        "set -euo pipefail",
        "set -x",
        "(source x)",
        "x=y; echo $x",
    ),
    *(
        "ls | while read f; do echo $f; done",
        "bash -c 'PATH=.'",
        "GIT_PAGER=id git log",
        "echo $(source x)",
        "unset x",
        "wait",
    ),
    *(
        "LANG=C",
        "export NO_COLOR=1",
        "a=(1 2)",
        "i=$((i+1))",
        "((i++))",
        "for f in *; do :; done",
        "trap",
        "trap - EXIT",
        "hash -r",
    ),
    *("shopt -s checkwinsize", "python3 -c 'x'", "exec 2>&1", "unalias x", "source x &", "x=1 | y=2", "GIT_PAGER=cat"),
]


def after(*lines):
    facts = FRESH
    for line in lines:
        facts = facts_after(facts, read_line(line))
    return facts


@pytest.mark.parametrize("line", UNKNOWN_AFTER)
@pytest.mark.parametrize("later", ["ls", "echo", "cd", "git"])
def test_after_a_line_that_cannot_be_followed_no_word_is_certain(line, later):
    why = after(line, "ls").why_changed([literal_word(later)])
    assert why is not None
    assert "until a restart" in why


@pytest.mark.parametrize(("line", "later"), CHANGES_A_WORD.items())
def test_a_word_is_not_certain_any_more_after_a_line_that_changes_what_it_runs(line, later):
    assert after(line).why_changed([literal_word(later)]) is not None


@pytest.mark.parametrize("line", CHANGES_NOTHING)
@pytest.mark.parametrize("later", ["ls", "echo", "git", "python3"])
def test_a_line_that_changes_no_word_leaves_all_of_them_certain(line, later):
    assert after(line).why_changed([literal_word(later)]) is None


def test_only_the_programs_that_obey_a_variable_are_not_certain():
    facts = after("export GIT_PAGER=id RIPGREP_CONFIG_PATH=x")
    changed = {name for name in ("git", "rg", "ls", "grep", "echo") if facts.why_changed([literal_word(name)])}
    assert changed == {"git", "rg"}


def test_a_folder_before_the_others_changes_only_the_programs_that_are_in_it(tmp_path):
    (tmp_path / "ls").touch()
    facts = after(f"export PATH={tmp_path}:$PATH")
    changed = {name for name in ("ls", "cat", "echo") if facts.why_changed([literal_word(name)])}
    assert changed == {"ls"}
    (tmp_path / "cat").touch()
    assert facts.why_changed([literal_word("cat")]), "it is looked at each time"


def test_what_was_taken_back_is_certain_again():
    assert after("ls() { id; }", "unset -f ls").why_changed([literal_word("ls")]) is None
    assert after("alias ls=id", "unalias ls").why_changed([literal_word("ls")]) is None
    assert after("enable -n echo", "enable echo").why_changed([literal_word("echo")]) is None


def test_variables_with_attributes_are_remembered():
    facts = after("declare -i n", "declare -n r=PATH", "readonly z=1", "declare -r y", "local -u w")
    assert facts.odd_variables == {"n", "r", "z", "y", "w"}


@pytest.mark.parametrize(
    ("line", "splits", "globs", "folders"),
    [
        ("IFS=,", True, False, False),
        ("IFS=,; IFS=$' \\t\\n'", False, False, False),
        ("IFS=,; unset IFS", False, False, False),
        ("shopt -s nullglob", False, True, False),
        ("shopt -s globstar dotglob", False, True, False),
        ("set -f", False, True, False),
        ("set -o noglob", False, True, False),
        ("CDPATH=/etc", False, False, True),
        ("export CDPATH=/etc", False, False, True),
    ],
)
def test_what_changes_how_words_are_expanded_is_remembered(line, splits, globs, folders):
    facts = after(*line.split("; "))
    assert (facts.splits_oddly, facts.globs_oddly, facts.finds_folders_elsewhere) == (splits, globs, folders)


def test_each_shell_has_its_own_state_and_a_restart_ends_it():
    states = ShellStates()
    states.learn("one", "ls() { id; }")
    assert states.of("one").changed == {"ls"}
    assert states.of("other") == FRESH
    states.forget("one")
    assert states.of("one") == FRESH
