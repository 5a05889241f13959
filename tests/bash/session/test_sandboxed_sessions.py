"""Sessions in a sandbox: everything that a session can do, and no way out through what it shares with us."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from support import command_lines, is_alive, need_backend
from toolyard.bash.session.session import BashSession
from toolyard.process.child import Children
from toolyard.process.limits import Limits
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.policy import BACKENDS, SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.anyio
PATIENCE = 60.0


@pytest.fixture
def place(tmp_path) -> Path:
    place = Path(os.path.realpath(tmp_path))
    for name in ("home/.ssh", "work", "outside"):
        (place / name).mkdir(parents=True)
    (place / "home" / ".ssh" / "key").write_text("echo the secret of the home\n")
    return place


@pytest.fixture(params=BACKENDS)
async def children(request, place) -> AsyncIterator[Children]:
    need_backend(request.param)
    places = SandboxPaths(home=str(place / "home"), workspace=[str(place / "work")])
    children = Children(Sandbox(SandboxPolicy(backends=(request.param,)), places))
    yield children
    await children.aclose()


@pytest.fixture
async def session(children, place) -> AsyncIterator[BashSession]:
    async with asyncio.timeout(PATIENCE), BashSession(place / "work", children=children) as session:
        yield session


async def test_state_stays_from_command_to_command(session):
    await session.run("cd /; x=1; f() { echo f$x; }; alias hi='echo hi'; set -u")
    assert (await session.run("f; hi; pwd")).output == "f1\nhi\n/\n"


async def test_it_is_in_the_sandbox(session, place):
    reply = await session.run(f"cat {place}/home/.ssh/key; echo x > {place}/outside/x; echo in > in; echo $?")
    assert reply.output.endswith("0\n")
    assert "secret" not in reply.output
    assert list((place / "outside").iterdir()) == []
    assert (place / "work" / "in").read_text() == "in\n"


async def test_a_command_past_its_time_is_ended_and_the_state_stays(session):
    await session.run("x=kept")
    reply = await session.run("(setsid sleep 300 &) ; sleep 300 & while :; do :; done", timeout=0.3)
    assert reply.timed_out
    assert not reply.ended
    assert (await session.run("echo $x")).output == "kept\n"


async def test_a_loop_that_ignores_signals_is_ended_too(session):
    reply = await session.run("""sh -c "trap '' INT TERM; while :; do sleep 1; done" """, timeout=0.3)
    assert (reply.timed_out, reply.ended) == (True, False)


async def test_a_command_that_asks_is_seen_and_answered(session):
    reply = await session.run("read -p 'name? ' name </dev/tty; echo hello $name", interactive=True)
    assert (reply.waiting_for_input, reply.output) == (True, "name? ")
    assert (await session.write("bob\n")).output == "hello bob\n"


async def test_jobs_run_are_read_and_stopped(session):
    reply = await session.run("echo begun; sleep 300", background=True)
    job = session.jobs[reply.job]
    while "begun" not in (text := job.read()):
        await asyncio.sleep(0.01)
    assert job.running, text
    await job.stop()
    assert not job.running
    reply = await session.run("exit 5", background=True)
    assert await session.jobs[reply.job].wait(PATIENCE)
    assert session.jobs[reply.job].exit_code == 5


async def test_an_ended_shell_hands_its_state_on(session):
    await session.run("x=kept")
    assert (await session.run("exit 3")).exit_code == 3
    reply = await session.run("echo $x")
    assert (reply.output, reply.restarted) == ("kept\n", True)
    assert "was killed by signal 9" in ((await session.run("kill -9 $$")) and (await session.run("true"))).note


async def test_its_number_is_known_outside(session):
    pid = session.pid
    assert is_alive(pid)
    assert Path(f"/proc/{pid}/comm").read_text() == "bash\n"
    await session.aclose()
    assert not is_alive(pid)


async def test_limits_of_a_session_hold(children, place):
    async with BashSession(place / "work", children=children, limits=Limits(file_bytes=10_000)) as session:
        reply = await session.run("head -c 100000 /dev/zero > big")
    assert (place / "work" / "big").stat().st_size == 10_000
    assert "limit of 10000 bytes" in reply.note


async def test_two_sessions_share_a_sandbox_and_its_temporary_files(children, place):
    async with BashSession(place, children=children) as one, BashSession(place, children=children) as other:
        await one.run('echo left > "${TMPDIR:-/tmp}/left"')
        assert (await other.run('cat "${TMPDIR:-/tmp}/left"')).output == "left\n"


async def test_a_line_that_may_only_look_leaves_nothing_in_the_session_that_programs_or_bash_obey(
    children, session, place
):
    policy = replace(children.sandbox.policy, looking=True, closed=True, network=False)
    less = Children(Sandbox(policy, children.sandbox.paths))
    try:
        line = "export OPENSSL_CONF=/evil MINE=1; POSIXLY_CORRECT=1; word=kept; f() { :; }; cd sub; exit_code=3; set -a"
        (place / "work" / "sub").mkdir()
        reply = await session.run(line, within=less)
        assert {"OPENSSL_CONF", "MINE", "function f"} <= {*re.findall(r"function \w+|\w+", reply.note)}
        seen = await session.run('echo "$PWD $word $exit_code $OPENSSL_CONF$MINE$POSIXLY_CORRECT$-"; env; type -t f')
    finally:
        await less.aclose()
    first, _, rest = seen.output.partition("\n")
    assert first.startswith(f"{place}/work/sub kept 3 ")
    assert "a" not in first.split()[-1]
    assert not {"OPENSSL_CONF", "MINE", "word", "exit_code"} & {each.partition("=")[0] for each in rest.splitlines()}
    assert "function" not in rest.splitlines()


# --- what it shares with us: a folder that everything inside can write


def shared(session: BashSession) -> str:
    """The folder of a session's channels."""
    return session._supervisor.current._folder.path


async def test_a_link_in_the_place_of_the_state_gives_away_nothing(session, place):
    folder = shared(session)
    script = f"trap - EXIT; rm -f {folder}/state; ln -s {place}/home/.ssh/key {folder}/state; ls {folder}; exit 0"
    await session.run(script)
    reply = await session.run("echo fresh")
    assert "secret" not in reply.output + (reply.note or "")
    assert reply.output == "fresh\n"


async def test_a_link_in_the_place_of_a_job_s_script_writes_nothing_elsewhere(session, place):
    target = place / "outside" / "made"
    links = "; ".join(f"ln -s {target} {shared(session)}/j{number}" for number in range(200))
    await session.run(links)
    with pytest.raises(Exception, match=r"exists|job"):
        await session.run(f"echo the job {'and more ' * 200}", background=True)
    assert not target.exists()


async def test_a_link_in_the_place_of_an_output_pipe_reads_nothing_elsewhere(session, place):
    folder = shared(session)
    links = "; ".join(f"ln -s {place}/home/.ssh/key {folder}/o{number}" for number in range(200))
    await session.run(f"{links}; (sleep 300 &)")  # what still runs keeps its pipe, so that the next gets another
    outputs = []
    for _ in range(3):
        try:
            outputs.append((await session.run("ls /")).output)
        except Exception as error:
            outputs.append(str(error))
    assert not any("secret" in text for text in outputs)


async def test_a_link_in_the_place_of_the_whole_folder_is_not_followed(session, place):
    folder = shared(session)
    (place / "outside" / "state").write_text("echo the secret outside\n# this is all of it\n")
    await session.run(f"cd {os.path.dirname(folder)} && mv {folder} moved && ln -s {place}/outside {folder}; exit 0")
    try:
        reply = await session.run("echo fresh")
        assert "secret" not in reply.output
    finally:
        await session.aclose()
    assert [path.name for path in (place / "outside").iterdir()] == ["state"]


async def test_a_pipe_without_a_writer_in_the_place_of_the_state_does_not_hang(session):
    folder = shared(session)
    await session.run(f"trap - EXIT; rm -f {folder}/state; mkfifo {folder}/state; exit 0")
    assert (await session.run("echo fresh")).output == "fresh\n"


async def test_ending_a_session_ends_everything_in_it(session):
    mark = f"{os.getpid()}.{id(session)}"
    await session.run(f"(setsid sleep {mark} &) ; (setsid -f sleep {mark}); sleep {mark} & disown")
    await session.aclose()
    assert command_lines(f"sleep {mark}") == []
