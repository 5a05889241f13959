"""Whatever runs past its limit ends, with all it started; the session, and what earlier commands started, live on."""

from __future__ import annotations

import asyncio

import pytest

from console import SINCE_5_2, Console, Session
from support import until
from toolyard.bash import Reply
from toolyard.bash.session.shell_process import ShellProcess

pytestmark = pytest.mark.anyio

STUBBORN = {
    "a_sleep": "sleep $M",
    "a_pipeline": "sleep $M | sleep $M | cat",
    "a_subshell": "(sleep $M; echo never)",
    "a_substitution": "x=$(sleep $M; echo never); echo never",
    "a_process_substitution": "cat <(sleep $M) | cat; echo never",
    "a_function": "f() { sleep $M; echo never; }; f; echo never",
    "an_and_list": "sleep $M && echo never || echo never",
    "a_loop_of_children": "while :; do sleep 0.01; done",
    "a_loop_of_failing_children": "until sleep 0.01 && false; do :; done",
    "a_loop_of_subshells": "while :; do (sleep 0.01); done",
    "a_loop_without_children": "for ((;;)); do :; done",
    "a_loop_in_a_pipeline": "while :; do echo x; done | cat >/dev/null",
    "a_loop_of_pipelines": "while :; do true | true; done",
    "wait": "sleep $M & wait; echo never",
    "wait_for_many": "for i in {1..20}; do sleep $M & done; wait",
    "a_read_with_a_limit_of_its_own": "read -t 60 x < <(sleep $M)",
    "a_background_child_and_a_loop": "sleep $M & while :; do :; done",
    "a_program_that_ignores_interrupts": "(trap '' INT; exec sleep $M)",
    "a_program_that_ignores_terminations": "(trap '' TERM; exec sleep $M)",
    "a_program_that_ignores_both": "(trap '' INT TERM HUP QUIT; exec sleep $M)",
    "a_tree_that_ignores_all": "(trap '' INT TERM HUP QUIT; (sleep $M & sleep $M) & sleep $M; sleep $M)",
    "a_stopped_child": "sleep $M & kill -STOP $!; wait",
    "a_child_that_stops_itself": "sh -c 'kill -STOP $$; sleep $M'; sleep $M",
    "a_stopped_group": "(kill -STOP $BASHPID; sleep $M); sleep $M",
    "another_session": "setsid -w sleep $M",
    "another_session_in_the_background": "setsid sleep $M & wait; sleep $M",
    "a_daemon": "( ( setsid sleep $M >/dev/null 2>&1 </dev/null & ) & ); sleep $M",
    "a_daemon_without_environment": "( setsid env -i /bin/sleep $M & ); sleep $M",
    "nohup": "nohup sleep $M >/dev/null & disown; sleep $M",
    "a_coprocess": "coproc sleep $M; sleep $M",
    "a_shell_in_a_shell": "bash -c 'sleep $M; echo never'; echo never",
    "an_interactive_shell_in_a_shell": "bash --norc -ic 'sleep $M; echo never' 2>/dev/null; echo never",
    "a_monitoring_shell_in_a_shell": "bash -mc 'sleep $M & sleep $M; echo never'; echo never",
    "timeout_of_its_own": "timeout 60 sleep $M",
    "a_python_program": "python3 -c 'import time; time.sleep(60)'",
    "a_python_that_catches_interrupts": 'python3 -c "$STUBBORN"',
    "without_job_control": "set +m; sleep $M; echo never",
    "without_job_control_in_a_pipeline": "set +m; sleep $M | cat; echo never",
    "without_job_control_in_the_background": "set +m; sleep $M & wait; echo never",
    "with_a_trace": "set -x; sleep $M; echo never",
    "xargs": "echo 1 2 3 | xargs -n1 -P3 sh -c 'sleep $M'",
    "find": "find /etc/passwd /etc/group -exec sleep $M \\;",
}
"""They have `$M` seconds to sleep; each must end with nothing of it left, and in the end the session is as it was."""

CATCHES = """
import time
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""

STUBBORN |= {
    "a_loop_that_traps_interrupts": "trap ':' INT; while :; do sleep 0.01; done",
    "a_busy_loop_that_ignores_interrupts": "trap '' INT; while :; do :; done",
    "a_busy_loop_that_traps_everything": "trap ':' INT TERM HUP QUIT; while :; do :; done",
}

REPLACED = {
    "a_read_from_a_pipe": "mkfifo p; read x < p",
    "a_write_to_a_pipe": "mkfifo p; echo x > p",
    "a_read_without_an_end": "read x </dev/zero",
}
"""These shells cannot be brought back, since bash itself hangs in them; they end, and save their state."""


async def run_past_limit(shell: Session, command: str, *, limit: float = 0.4) -> Reply:
    await shell.run(f"export M={shell.mark} STUBBORN='{CATCHES}'")
    return await shell.past_its_limit(command, limit=limit)


@pytest.mark.parametrize("command", STUBBORN.values(), ids=STUBBORN.keys())
async def test_at_its_limit_a_command_ends_and_the_session_does_not(shell: Session, command: str) -> None:
    pid = shell.bash.pid
    reply = await run_past_limit(shell, command)
    assert ("never" in reply.output.replace("echo never", ""), reply.ended) == (False, False)
    assert reply.exit_code in (130, 137, 143, 1)
    assert [found for found in shell.alive() if not found.startswith(f"{pid} ")] == []
    output, status = await shell.answer("set +x; /bin/echo again")
    assert (output.replace("+ set +x\n", ""), status) == ("again\n", 0)
    assert (await shell.keeps_its_state(), shell.bash.pid) == (True, pid)


@pytest.mark.parametrize("command", REPLACED.values(), ids=REPLACED.keys())
async def test_a_shell_that_cannot_be_interrupted_is_replaced(shell: Session, command: str) -> None:
    reply = await run_past_limit(shell, command)
    assert reply.ended
    following = await shell.run('echo "$PWD"')
    assert (following.output, following.exit_code) == (f"{shell.folder}\n", 0)
    assert (following.restarted, following.note is not None) == (True, True)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("command", [
    "kill -STOP $$",
    "kill -STOP $$\nsleep 30",
    pytest.param("suspend -f", marks=SINCE_5_2),
    pytest.param("suspend -f; echo x", marks=SINCE_5_2),
])  # fmt: skip
async def test_a_shell_that_stops_itself_goes_on_after_its_limit(shell: Session, command: str) -> None:
    await shell.past_its_limit(command)
    assert await shell.answer("/bin/echo again") == ("again\n", 0)
    assert await shell.keeps_its_state()


async def test_a_shell_that_ends_at_any_error_does_not_end_at_a_limit(shell: Session) -> None:
    reply = await shell.past_its_limit(f"set -e; sleep {shell.mark}; echo never")
    assert (reply.output, reply.exit_code, reply.ended, shell.sleepers()) == ("", 130, False, [])
    assert (await shell.run("false")).ended
    assert await shell.keeps_its_state()


async def test_the_trap_for_interrupts_runs_at_the_limit(shell: Session) -> None:
    await shell.run("trap 'echo interrupted' INT")
    reply = await shell.past_its_limit(f"echo begin; sleep {shell.mark}")
    assert reply.output.split() == ["begin", "interrupted"]
    assert (await shell.keeps_its_state(), shell.sleepers()) == (True, [])


async def test_a_program_may_clean_up_when_it_is_interrupted(shell: Session) -> None:
    program = 'import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print("clean"); raise SystemExit(9)'
    command = f"python3 -c '{program}'"
    reply = await shell.past_its_limit(command, limit=2)
    assert (reply.output, reply.exit_code in (9, 130)) == ("clean\n", True)
    assert await shell.keeps_its_state()


async def test_a_limit_of_nothing(shell: Session) -> None:
    assert (await shell.run("sleep 30", timeout=0)).timed_out
    assert await shell.keeps_its_state()


async def test_the_limit_of_the_session_holds_where_a_call_has_none(console: Console) -> None:
    shell = await console.open_prepared(timeout=0.5)
    assert (await shell.run("sleep 30")).timed_out
    assert not (await shell.run("sleep 0.7", timeout=20)).timed_out
    assert await shell.keeps_its_state()


async def test_many_limits_in_a_row(shell: Session) -> None:
    pid = shell.bash.pid
    for number in range(5):
        reply = await shell.past_its_limit(f"echo {number}; sleep 30", limit=0.2)
        assert (reply.output, reply.exit_code) == (f"{number}\n", 130)
        assert await shell.answer(f"echo {number}; (exit {number})") == (f"{number}\n", number)
    assert shell.bash.pid == pid


async def test_a_hundred_forks_end_with_their_command(shell: Session) -> None:
    chain = "perl -e 'for (1 .. 100) { fork or do { sleep 60; exit } } sleep 60'"
    await shell.past_its_limit(chain, limit=1)
    assert len(shell.alive()) == 1
    assert await shell.keeps_its_state()


async def test_what_earlier_commands_started_survives(shell: Session) -> None:
    await shell.run(f"sleep {shell.mark} &")
    await shell.run(f"setsid sleep {shell.mark} & disown; ( sleep {shell.mark} & )")
    job = await shell.start_job(f"sleep {shell.mark}")
    server = await shell.until_sleepers(4)
    for command in ("sleep 30", "while :; do :; done", "(trap '' INT TERM; sleep 30)", "sleep 30 & wait"):
        await shell.past_its_limit(command, limit=0.3)
        assert (shell.sleepers(), job.running) == (server, True), command


async def test_a_cancelled_command_ends_and_the_session_does_not(shell: Session) -> None:
    running = asyncio.ensure_future(shell.run(f"x=1; sleep {shell.mark} & sleep {shell.mark}; echo never"))
    await shell.until_sleepers(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await shell.answer('echo "$x"') == ("1\n", 0)
    assert (shell.sleepers(), await shell.keeps_its_state()) == ([], True)


async def test_a_cancelled_loop_ends_too(shell: Session) -> None:
    began = asyncio.Event()
    running = asyncio.ensure_future(shell.run("echo go; while :; do :; done", on_output=lambda text: began.set()))
    await asyncio.wait_for(began.wait(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await shell.keeps_its_state()


async def test_a_command_cancelled_before_its_turn_never_runs(shell: Session) -> None:
    first = asyncio.ensure_future(shell.answer("sleep 0.3; echo first"))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(shell.run("touch second"))
    await asyncio.sleep(0)
    second.cancel()
    assert await first == ("first\n", 0)
    assert await shell.answer("ls") == ("", 0)


async def test_commands_run_in_the_order_of_their_calls(shell: Session) -> None:
    calls = [shell.answer(f"sleep 0.0{10 - number}; order+=({number}); echo {number}") for number in range(10)]
    assert await asyncio.gather(*calls) == [(f"{number}\n", 0) for number in range(10)]
    assert await shell.answer('echo "${order[@]}"') == ("0 1 2 3 4 5 6 7 8 9\n", 0)


async def test_sessions_run_side_by_side(console: Console) -> None:
    shells = [await console.open_prepared() for _ in range(5)]
    calls = [shell.answer(f"touch at{number}; until [ -e at{4 - number} ]; do sleep 0.01; done; echo {number}")
             for number, shell in enumerate(shells)]  # fmt: skip
    assert await asyncio.gather(*calls) == [(f"{number}\n", 0) for number in range(5)]


async def test_the_loop_is_free_while_a_command_runs(shell: Session) -> None:
    turns = 0
    running = asyncio.ensure_future(shell.run("sleep 0.3"))
    while not running.done():
        turns += 1
        await asyncio.sleep(0.005)
    assert turns > 10


async def test_the_first_output_is_heard_while_the_command_runs(shell: Session) -> None:
    heard: list[str] = []
    running = asyncio.ensure_future(
        shell.answer("echo first; until [ -e go ]; do sleep 0.01; done; echo last", on_output=heard.append)
    )
    await until(lambda: heard)
    assert (heard, running.done()) == (["first\n"], False)
    (shell.folder / "go").touch()
    assert await running == ("first\nlast\n", 0)
    assert "".join(heard) == "first\nlast\n"


async def test_characters_are_heard_whole(shell: Session) -> None:
    heard: list[str] = []
    pieces = r"'a\xc3' '\xa9b\xe2\x9c' '\x93\xf0\x9f\x98' '\x80' 'c\xff' '\xc3'"
    command = f"for piece in {pieces}; do printf $piece; sleep 0.03; done"
    assert await shell.answer(command, on_output=heard.append) == ("aéb✓😀c��", 0)
    assert "".join(heard) == "aéb✓😀c��"


async def test_left_running_instead_of_ended(console: Console) -> None:
    shell = await console.open_prepared(on_timeout="background")
    reply = await shell.run("echo begin; until [ -e go ]; do sleep 0.01; done; echo end; exit 5", timeout=0.5)
    assert (reply.output, reply.exit_code, reply.timed_out) == ("begin\n", None, True)
    assert reply.job is not None
    job = shell.bash.jobs[reply.job]
    assert await shell.keeps_its_state()
    assert job.running
    (shell.folder / "go").touch()
    assert await job.wait(30)
    assert (job.read(), job.exit_code) == ("end\n", 5)


async def test_a_cancellation_just_as_a_fresh_shell_answers_is_not_lost(
    shell: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shell.run("exit 3")
    begin = ShellProcess._begin

    def begin_and_cancel(process: ShellProcess) -> None:
        begin(process)
        if not process.is_starting:
            task.cancel()

    monkeypatch.setattr(ShellProcess, "_begin", begin_and_cancel)
    task = asyncio.ensure_future(shell.run(f"sleep {shell.mark}", timeout=30))
    await asyncio.wait([task])
    assert task.cancelled()
    monkeypatch.undo()
    assert await shell.keeps_its_state()
