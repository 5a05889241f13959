"""Calls that are cancelled at the worst moment: the next command finds the shell, and the place, that it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console import PATIENCE, Console, Session
from support import until
from toolyard.bash import BashSession
from toolyard.process.child import Children

pytestmark = pytest.mark.anyio

MUCH_STATE = "many=({1..300000})"
"""What takes a shell so long to save that we can look on."""
DEBUGGING = "trap -p DEBUG ERR; shopt -p extdebug; shopt -po errtrace functrace errexit"


@pytest.fixture
async def other() -> AsyncIterator[Children]:
    children = Children()
    yield children
    await children.aclose()


@pytest.fixture
async def waiting(console: Console, other: Children) -> Session:
    """A session of which a command elsewhere waits for input, and does not care for SIGINT."""
    shell = await console.open_prepared()
    asked = await shell.run(
        f"trap '' INT; read -p 'name? ' name; exec sleep {shell.mark}", interactive=True, within=other
    )
    assert asked.waiting_for_input
    return shell


async def cancelled_when(call: Any, claim: Any) -> None:
    """Cancel a call as soon as something is so."""
    task = asyncio.ensure_future(call)
    await until(claim)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled()


@pytest.mark.parametrize("command", ["exit 4", "echo some | cat; exit 4"])
async def test_a_signal_while_a_shell_saves_its_state_is_no_part_of_that_state(
    shell: Session, tmp_path: Path, command: str
) -> None:
    options = await shell.output(DEBUGGING)
    await shell.run(MUCH_STATE)

    await cancelled_when(shell.run(command), lambda: [*tmp_path.glob("private/**/leaving")])
    reply = await shell.run(f"{DEBUGGING}; echo ${{#many[@]}}")
    assert (reply.output, reply.exit_code, reply.restarted) == (f"{options}300000\n", 0, True)


async def test_a_signal_meets_no_child_of_a_shell_in_the_shells_place(shell: Session) -> None:
    for pause in (0.0005, 0.001, 0.002, 0.003, 0.004, 0.005) * 5:
        task = asyncio.ensure_future(shell.run("echo some | cat; exit 4"))
        await asyncio.wait([task], timeout=pause)
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        assert await shell.answer(f'{DEBUGGING}; echo "$KEEP"') == (
            "shopt -u extdebug\nset +o errtrace\nset +o functrace\nset +o errexit\n42\n",
            0,
        )


async def test_a_command_that_waits_is_ended_although_whoever_ends_it_is_cancelled(waiting: Session) -> None:
    elsewhere = waiting.bash.shell_of()
    assert elsewhere is not None
    await cancelled_when(waiting.bash.interrupt(), lambda: waiting.bash.shell_of() is None)
    assert await waiting.keeps_its_state()
    assert elsewhere.current is None or elsewhere.process.exit_status is not None


async def test_no_later_command_runs_elsewhere_when_an_answer_is_cancelled(waiting: Session, other: Children) -> None:
    elsewhere = waiting.bash.shell_of()
    assert elsewhere is not None
    await cancelled_when(waiting.bash.write("ada\n"), waiting.sleepers)
    assert await waiting.keeps_its_state()
    assert waiting.bash.pid != elsewhere.process.pid
    assert waiting.sleepers() == []


async def test_no_later_command_runs_elsewhere_when_the_way_back_is_cancelled(
    shell: Session, other: Children, tmp_path: Path
) -> None:
    here = shell.bash.pid
    begun = tmp_path / "begun"
    # It is over at once, and tells its state for long.
    await cancelled_when(shell.run(f"{MUCH_STATE}; touch {begun}", within=other), begun.exists)
    assert await shell.keeps_its_state()
    assert shell.bash.pid == here


async def test_a_session_whose_move_is_cancelled_knows_where_it_is(shell: Session, other: Children) -> None:
    session: BashSession = shell.bash
    before, first = session.children, session.pid
    await shell.run(MUCH_STATE)
    task = asyncio.ensure_future(session.move(other))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert await shell.keeps_its_state()
    assert (session.children, session.pid) == ((before, first) if task.cancelled() else (other, session.pid))


async def test_a_job_that_ends_while_another_command_is_given_up_tells_its_own_status(shell: Session) -> None:
    for _ in range(5):
        job = await shell.start_job("read -t 0.05 <> <(:); exit 207")
        task = asyncio.ensure_future(shell.run("while :; do :; done"))
        await asyncio.wait([task], timeout=0.05)
        task.cancel()
        assert await job.wait(PATIENCE)
        assert job.exit_code == 207
        assert await shell.keeps_its_state()
