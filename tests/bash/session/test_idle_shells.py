"""A shell that has nothing to do can be given back, and comes again with its state."""

from __future__ import annotations

import asyncio

import pytest

from console import PATIENCE, Console, Session
from toolyard.process.child import Children

pytestmark = pytest.mark.anyio
SETS = """x='a b'; export Y=1; declare -A map=([k]='v w'); list=(1 2 'c d'); declare -i n=3; readonly r=fixed
f() { echo "hi $x"; }; alias g='echo alias'; set -o pipefail; shopt -s nullglob; trap 'echo usr' USR1
umask 077; set -- one 'two three'; cd /usr; (exit 7)"""
SHOWS = """echo "$? $x $Y ${map[k]} ${list[2]} $n $r $# $2 $PWD $(umask)"; f; g; shopt -q nullglob && echo nullglob
[[ $SHELLOPTS = *pipefail* ]] && echo pipefail; trap -p USR1; env | grep '^Y='"""
SHOWN = """7 a b 1 v w c d 3 fixed 2 two three /usr 0077
hi a b
alias
nullglob
pipefail
trap -- 'echo usr' SIGUSR1
Y=1
"""


async def test_it_comes_again_with_its_whole_state_and_says_so(shell: Session) -> None:
    await shell.run(SETS)
    before = shell.bash.pid
    assert await shell.bash.give_back()
    assert (shell.bash.pid, shell.bash.cwd) == (None, "/usr")
    reply = await shell.run(SHOWS)
    assert reply.output == SHOWN
    assert shell.bash.pid not in (None, before)
    assert reply.restarted
    assert "given back while it had nothing to do" in (reply.note or "")
    assert (await shell.run("echo $x")).note is None


async def test_again_and_again(shell: Session) -> None:
    await shell.run("n=0")
    for _ in range(3):
        await shell.run("n=$((n + 1))")
        assert await shell.bash.give_back()
        assert not await shell.bash.give_back(), "there is none"
    assert (await shell.run("echo $n")).output == "3\n"


@pytest.mark.parametrize(
    ("holds", "lets_go"),
    [
        ("exec 7>file", "exec 7>&-"),
        ("sleep 300 >/dev/null 2>&1 & p=$!", "kill $p; wait"),
        ("sleep 300 >/dev/null 2>&1 & p=$!; disown", "kill $p; while kill -0 $p 2>/dev/null; do sleep 0.01; done"),
        ("trap 'echo bye' EXIT", "trap - EXIT"),
    ],
)
async def test_one_that_has_more_than_its_state_stays(shell: Session, holds: str, lets_go: str) -> None:
    await shell.run(holds)
    before = shell.bash.pid
    assert not await shell.bash.give_back()
    assert shell.bash.pid == before
    await shell.run(lets_go)
    async with asyncio.timeout(PATIENCE):
        while not await shell.bash.give_back():  # the end of a job is told in its own time
            await asyncio.sleep(0.01)


async def test_one_with_a_job_or_a_question_or_a_command_stays(shell: Session) -> None:
    job = await shell.start_job("sleep 300")
    assert not await shell.bash.give_back()
    await job.stop()
    assert (await shell.run("read -rp '? ' x", interactive=True)).waiting_for_input
    assert not await shell.bash.give_back()
    await shell.interrupt()
    printed: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.create_task(shell.run("echo begun; sleep 300", on_output=printed.put_nowait))
    assert await asyncio.wait_for(printed.get(), PATIENCE) == "begun\n"
    assert not await shell.bash.give_back()
    await shell.bash.interrupt()
    await running
    assert await shell.bash.give_back()


async def test_it_goes_on_elsewhere_with_its_state(console: Console) -> None:
    shell = await console.open_prepared()
    elsewhere = Children()
    try:
        await shell.run("x=kept; cd /usr")
        assert await shell.bash.give_back()
        await shell.bash.move(elsewhere)
        assert (await shell.run("echo $x $PWD")).output == "kept /usr\n"
        await shell.close()
    finally:
        await elsewhere.aclose()


async def test_a_fresh_start_has_nothing_of_it(shell: Session) -> None:
    await shell.run("x=kept; (exit 3)")
    assert await shell.bash.give_back()
    await shell.restart()
    assert (await shell.run('echo "$?<$x>"')).output == "0<>\n"
