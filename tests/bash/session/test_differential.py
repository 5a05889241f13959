"""What a session answers is what `bash -c` answers: the same bytes and the same status, for hundreds of commands.

The commands are in `differential/`: those of a file run one after the other in one session, each in a folder of its
own; those of `differential/fresh/` change the shell or end it and have a session each. A line that begins with `%%`
begins a command; `%% since 5.2` or `%% before 5.3` one in which other versions of bash disagree with themselves: what
an interactive shell or one with an EXIT trap says differs from what `bash -c` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from console import BASH_VERSION, Console, Session, normalised, version_of

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "differential"
AT_ONCE = 4
LIMIT = 10.0
"""A command that hangs costs its session a difference, not the test all the others."""
REMEMBER = "KNOWN=$({ compgen -v; printf '%s\\n' KNOWN FUNCNAME BASH_REMATCH; } | sort -u)"
TIDY = r"""
trap - USR1 USR2 INT TERM ERR DEBUG RETURN
unset -v IFS TIMEFORMAT $(comm -13 <(echo "$KNOWN") <(compgen -v | sort)) 2>/dev/null
unset -f $(compgen -A function); unalias -a; set --; OPTIND=1
"""
"""Between two commands of one session: each begins with no variables, functions or arguments of the one before."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and where it is written."""

    where: str
    text: str
    is_meant: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, without what may differ."""

    output: str
    status: int | None


def commands_in(path: Path) -> list[Command]:
    commands: list[Command] = []
    lines: list[str] = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("%%"):
            lines = []
            commands.append(Command(f"{path.name}:{number + 1}", "", is_meant(line)))
        else:
            lines.append(line)
            commands[-1] = replace(commands[-1], text="\n".join(lines).removesuffix("\n"))
    return [command for command in commands if command.is_meant]


def is_meant(line: str) -> bool:
    """Whether a command is for this version of bash."""
    match line.split():
        case [_, "since", version]:
            return version_of(version) <= BASH_VERSION
        case [_, "before", version]:
            return version_of(version) > BASH_VERSION
    return True


def differences(commands: Iterable[Command], expected: list[Answer], found: list[Answer]) -> str:
    """One paragraph for each command that was not answered as bash answers it."""
    return "\n\n".join(
        f"{command.where}: {command.text}\n  bash -c: {wanted}\n  session: {got}"
        for command, wanted, got in zip(commands, expected, found, strict=True)
        if wanted != got
    )


async def judge(console: Console, commands: Sequence[Command]) -> list[Answer]:
    """What `bash -c` answers to each, in a folder of its own."""

    async def one(number: int, command: Command) -> Answer:
        output, status = await console.bash_c(command.text, cwd=console.folder_of("judge", number))
        return Answer(normalised(output), status)

    return await for_each(commands, one)


async def in_one_session(console: Console, commands: Sequence[Command]) -> list[Answer]:
    shell = await console.open()
    await shell.run(REMEMBER)
    answers = []
    for number, command in enumerate(commands):
        await shell.run(f"{TIDY}cd {console.folder_of('session', number)}")
        answers.append(await answer_of(shell, command))
    return answers


async def in_fresh_sessions(console: Console, commands: Sequence[Command]) -> list[Answer]:
    async def one(number: int, command: Command) -> Answer:
        shell = await console.open(cwd=console.folder_of("session", number))
        answer = await answer_of(shell, command)
        assert (await shell.output("/bin/echo usable", timeout=LIMIT)).endswith("usable\n"), command
        await shell.close()
        return answer

    return await for_each(commands, one)


async def answer_of(shell: Session, command: Command) -> Answer:
    output, status = await shell.answer(command.text, timeout=LIMIT)
    return Answer(normalised(output), status)


async def for_each(commands: Sequence[Command], ask: Callable[[int, Command], Awaitable[Answer]]) -> list[Answer]:
    """Ask for all answers, some at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, command: Command) -> Answer:
        async with room:
            return await ask(number, command)

    return list(await asyncio.gather(*(one(number, command) for number, command in enumerate(commands))))


def files(folder: Path) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(folder.glob("*.txt"))])


@files(FOLDER)
async def test_one_session_answers_as_bash_does(console: Console, path: Path) -> None:
    commands = commands_in(path)
    expected = await judge(console, commands)
    found = await in_one_session(console, commands)
    assert not (text := differences(commands, expected, found)), f"\n{text}"


@files(FOLDER / "fresh")
async def test_a_fresh_session_answers_as_bash_does(console: Console, path: Path) -> None:
    commands = commands_in(path)
    expected = await judge(console, commands)
    found = await in_fresh_sessions(console, commands)
    assert not (text := differences(commands, expected, found)), f"\n{text}"
