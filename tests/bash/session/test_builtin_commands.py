"""Builtins that bash runs by itself, which print to the shell's own output: nothing else about them is different."""

from __future__ import annotations

import asyncio

import pytest

from console import Console, Session

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("command", ["printf %99999d 5", "echo " + "x" * 900])
async def test_however_much_it_prints_it_is_all_there(shell: Session, command: str) -> None:
    expected = "5".rjust(99999) if command.startswith("printf") else "x" * 900 + "\n"
    for _ in range(3):
        assert await shell.answer(command, timeout=20) == (expected, 0)


async def test_the_limit_of_output_holds(console: Console) -> None:
    shell = await console.open_prepared(output_limit=100)
    for _ in range(3):
        assert (await shell.run("echo " + "x" * 500)).truncated


async def test_it_waits_for_its_turn(shell: Session) -> None:
    order: list[str] = []

    async def run(*commands: str) -> None:
        for command in commands:
            order.append((await shell.run(command)).output.strip())

    for _ in range(20):
        order.clear()
        await asyncio.gather(run("echo 1", "echo 4"), run("echo 2", "echo 5"), run("echo 3", "echo 6"))
        assert sorted(order) == ["1", "2", "3", "4", "5", "6"]
        assert [name for name in order if name in "123"] == ["1", "2", "3"]


async def test_it_hears_what_has_changed(shell: Session) -> None:
    for folder in ("/usr", "/", "/usr"):
        for _ in range(3):
            assert (await shell.run(f"cd {folder}")).cwd == folder
            assert await shell.answer("pwd") == (f"{folder}\n", 0)


async def test_a_shell_killed_meanwhile_is_replaced(shell: Session) -> None:
    for _ in range(5):
        await shell.run("true")
        await shell.run("kill -9 $$")
        assert await shell.answer("echo here") == ("here\n", 0)
