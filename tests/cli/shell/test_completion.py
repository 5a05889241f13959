"""What `toolyard shell` completes at the end of a line, and what it takes for a whole command."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from toolyard.cli.shell.completion import Completion, Vocabulary, complete
from toolyard.cli.shell.grammar import Grammar


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("my file", "my folder/inner", "notes.txt", ".hidden", "it's", "run-me", "bin/tool-a", "bin/tool-b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode=0o755 if name.startswith(("run", "bin")) else 0o644)
    os.mkfifo(tmp_path / "a$b")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "insert", "choices"),
    [
        ("cat no", "tes.txt ", []),
        ("cat my\\ fi", "le ", []),
        ('cat "my fi', 'le" ', []),
        ("cat 'my fi", "le' ", []),
        ("cat m", "y\\ f", []),
        ("cat my\\ f", "", ["my file", "my folder/"]),
        ("cat my\\ folder/", "inner ", []),
        ("cat my\\ fo", "lder/", []),
        ("cat ~/no", "tes.txt ", []),
        ("cat <no", "tes.txt ", []),
        ("cat --file=no", "tes.txt ", []),
        ("cat it", "\\'s ", []),
        ("cat 'it", "'\\''s' ", []),
        ("cat a", "\\$b ", []),
        ('cat "a', '\\$b" ', []),
        ("cat .h", "idden ", []),
        ("cat nothing", "", []),
        ("cat none/x", "", []),
        ("too", "l-", []),
        ("tool-", "", ["tool-a", "tool-b"]),
        ("x=1 tool-a; if bu", "iltin ", []),
        ("echo $(bu", "iltin ", []),
        ("true | bu", "iltin ", []),
        ("./no", "", []),
        ("./ru", "n-me ", []),
        ("echo bu", "", []),
        ("", "", []),
        ("echo $HO", "ME", []),
        ("echo ${HO", "ME}", []),
        ('echo "${HO', "ME}", []),
        ("echo '$HO", "", []),
        ("echo $mi", "ne", []),
        ("my_f", "unction ", []),
    ],
)
def test_a_line_is_completed_as_its_quotes_and_its_place_need(folder: Path, line, insert, choices):
    vocabulary = Vocabulary(words=["builtin"], variables=["HOME"])
    vocabulary.learn("mine=1; my_function() { true; }")
    assert complete(line, vocabulary, str(folder)) == Completion(insert=insert, choices=tuple(choices))


@pytest.mark.parametrize(
    ("command", "unfinished"),
    [
        ("true", False),
        ("", False),
        ("echo 'a", True),
        ('echo "a\nb', True),
        ("echo 'a\nb'", False),
        ("echo a \\", True),
        ("echo a\\", True),
        ("echo a \\\\", False),
        ("# not a command \\", False),
        ("true; # \\", False),
        ("if true; then", True),
        ("if true; then true; fi", False),
        ("f() {", True),
        ("(true", True),
        ("echo $(", True),
        ("true &&", True),
        ("true |", True),
        ("case x in", True),
        ("cat <<END", True),
        ("cat <<END\nbody", True),
        ("cat <<END\nbody\nEND", False),
        ("cat <<'END' \\\n", True),
        (")", False),
        (") unexpected end of file", False),
        (": bash: unexpected EOF )", False),
        ("echo ü\udcff", False),
    ],
)
def test_bash_itself_says_whether_a_command_goes_on(command, unfinished):
    async def ask() -> bool:
        async with Grammar() as grammar:
            return await grammar.is_unfinished(command)

    assert asyncio.run(ask()) is unfinished


def test_the_words_of_bash_are_known():
    async def ask() -> tuple[frozenset[str], frozenset[str]]:
        async with Grammar() as grammar:
            return await grammar.words(), await grammar.variables()

    words, variables = asyncio.run(ask())
    assert {"cd", "if", "export"} <= words
    assert {"HOME", "RANDOM"} <= variables
