"""What agents run all day, and what must come of it in every way that we have of running it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from console import PATIENCE, Console
from toolyard.app import AgentApplication
from yard import Yard

pytestmark = pytest.mark.anyio

Answer = tuple[int, str]
"""The status, and both streams."""
Run = Callable[[str], Awaitable[Answer]]

LINES = "\n".join(f"print('row {number}')" for number in range(120))
ROWS = "".join(f"row {number}\n" for number in range(120))
PADDED = "".join(f"{number:<1000}\n" for number in range(1, 14))
FLIPS = """n=0
while [ $n -lt 3 ]; do side=$(echo up); n=$((n+1)); echo "$n: $side"
  if [ "$side" = up ]; then won=$((won+1)); else won=0; fi
done; echo "won $won";"""
NESTED_LOOPS = """mkdir -p notes && \\
for month in {01..03}; do
    for day in {08..10}; do
        touch "notes/1999-${month}-${day}.md"
    done
done && ls notes | wc -l
"""
RENAMES = """mkdir -p old && touch old/a.txt old/b.txt
for file in old/*.txt; do
    new=$(echo "$file" | sed -E 's/(a|b)\\.txt$/\\1.md/;s/old/old/')
    mv "$file" "$new"
done && ls old
"""
EVERYDAY: dict[str, tuple[str, int, str]] = {
    "a word": ("echo 'good day'", 0, "good day\n"),
    "no line end": ("printf READY", 0, "READY"),
    "not found": ("no_such_program_here", 127, "bash: line 1: no_such_program_here: command not found\n"),
    "and": ("false && true", 1, ""),
    "or": ("false || true", 0, ""),
    "nothing": ("", 0, ""),
    "a line end": ("\n", 0, ""),
    "blank lines": ("\n\n \n", 0, ""),
    "a blank": (" ", 0, ""),
    "a comment": ("# echo nobody", 0, ""),
    "blank lines around": ("\n\n\n echo one \n  \n \n echo two \n\n\n", 0, "one\ntwo\n"),
    "one after another": ("echo one; echo two && echo three", 0, "one\ntwo\nthree\n"),
    "several lines": ("echo \"it's\"\necho \\\n  -n \\\n  me\necho -e '\\nyou\\tthere?'", 0, "it's\nme\nyou\tthere?\n"),
    "a line end in quotes": ("echo 'one\n\ntwo \"'", 0, 'one\n\ntwo "\n'),
    "blanks are kept": ("echo 'a   b    c'; echo -e 'a\\n\\n\\nz'", 0, "a   b    c\na\n\n\nz\n"),
    "a loop over lines": ("for i in {1..3};\n do echo again;\n done", 0, "again\n" * 3),
    "a condition over lines": ("if true; then\necho inside\nfi", 0, "inside\n"),
    "a loop that counts": (FLIPS, 0, "1: up\n2: up\n3: up\nwon 3\n"),
    "nested loops": (NESTED_LOOPS, 0, "9\n"),
    "a loop that renames": (RENAMES, 0, "a.md\nb.md\n"),
    "a test of what is unset": ("[[ $nothing == $nothing ]]", 0, ""),
    "an empty array": ("echo a;A=();echo b", 0, "a\nb\n"),
    "an empty array and a failure": ("A=(); false", 1, ""),
    "an exclamation mark": ('echo a!b "c!d"', 0, "a!b c!d\n"),
    "a backslash for find": ("mkdir -p d; echo x >d/f; find d -type f -exec grep -l x {} \\;", 0, "d/f\n"),
    "a semicolon for find": ('mkdir -p d; echo x >d/f; find d -type f -exec grep -l x {} ";"', 0, "d/f\n"),
    "a here-document": ("cat << EOF\nline 1\nline 2\nEOF", 0, "line 1\nline 2\n"),
    "a here-document and a line end": ("cat <<'EOF'\n$HOME `id`\nEOF\n", 0, "$HOME `id`\n"),
    "a here-document for python": ("python3 <<EOF\nprint('a')\nprint('b')\nEOF", 0, "a\nb\n"),
    "a here-document of many lines": (f"cat >rows.py <<'EOF'\n{LINES}\nEOF\npython3 rows.py", 0, ROWS),
    "a here-document that is only checked": ("/usr/bin/env bash -n <<'EOF'\necho 'no'\nEOF", 0, ""),
    "another shell's status": ("/bin/sh -c 'exit 42'", 42, ""),
    "long lines": ("seq 13 | awk '{printf \"%-1000s\\n\", $0}'", 0, PADDED),
    "many lines": ("seq 300", 0, "".join(f"{number}\n" for number in range(1, 301))),
    "no terminal": ("python3 -c 'import sys; print(sys.stdin.isatty(), sys.stdout.isatty())'", 0, "False False\n"),
    "left in the background": ("(sleep 30) &", 0, ""),
    "a folder of one's own": ('(mkdir here && cd here && basename "$PWD")', 0, "here\n"),
    "no pager": ('echo "$PAGER $GIT_PAGER"; echo page | less -+F', 0, "cat cat\npage\n"),
    "git's remotes": ("git init -q . && git remote add o https://a.invalid/b && git remote", 0, "o\n"),
}
NOT_BASH = ["(a", 'echo "a" > > file', "if then", "echo 'open"]


class Everyday:
    """The three ways: a session, the tool that keeps one, and the tool that is a new shell each time."""

    def __init__(self, console: Console, app: AgentApplication) -> None:
        self.console = console
        self.app = app

    async def session(self) -> Run:
        shell = await self.console.open()

        async def run(command: str) -> Answer:
            reply = await shell.run(command)
            assert reply.exit_code is not None, reply
            return reply.exit_code, reply.output

        return run

    async def tool(self, name: str) -> Run:
        async def run(command: str) -> Answer:
            async with asyncio.timeout(PATIENCE):
                result = await self.app.call_tool(name, {"command": command, "timeout": 30})
            data = result.data
            assert isinstance(data, dict), result
            streams = data["stdout"] + data["stderr"] if name == "shell" else without_notes(result.text)
            return data["exitCode"], streams

        return run

    async def way(self, name: str) -> Run:
        return await (self.session() if name == "session" else self.tool(name))


def without_notes(text: str) -> str:
    """What was printed, of a text that is never empty."""
    return "" if text.startswith("(no output)") else text


@pytest.fixture
async def everyday(console: Console, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Everyday]:
    monkeypatch.chdir(console.folder)
    monkeypatch.delenv("PAGER", raising=False)
    monkeypatch.delenv("GIT_PAGER", raising=False)
    config = Yard(console.folder).app(
        "shell:session", "shell:command", permissions={"preset": "trusted"}, sandbox={"mode": "off"}
    )
    async with config as app:
        assert app.get_config_errors() == []
        yield Everyday(console, app)


@pytest.mark.parametrize("way", ["session", "bash", "shell"])
async def test_everyday_commands_give_what_bash_gives(everyday: Everyday, way: str) -> None:
    run = await everyday.way(way)
    given = {name: await run(command) for name, (command, _, _) in EVERYDAY.items()}
    wanted = {name: (status, output) for name, (_, status, output) in EVERYDAY.items()}
    assert {name: answer for name, answer in given.items() if answer != wanted[name]} == {}


@pytest.mark.parametrize("way", ["session", "bash", "shell"])
async def test_what_is_no_bash_fails_at_once_in_bashs_words_and_the_next_command_runs(
    everyday: Everyday, way: str
) -> None:
    run = await everyday.way(way)
    for command in NOT_BASH:
        status, output = await run(command)
        assert (status, "bash: " in output) == (2, True), (command, output)
        assert await run("echo next") == (0, "next\n")
