"""Programs that ask, jobs beside the session, much output, and limits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console import PATIENCE, Console, Session
from support import until
from toolyard.bash import ShellError
from toolyard.process.limits import Limits

pytestmark = pytest.mark.anyio

SELECTS = 'import select; print(end="? "); select.select([0], [], []); print("got", input())'
POLLS = 'import select; p = select.poll(); p.register(0, 1); print(end="? "); p.poll(); print("got", input())'
DEEP = """bash -c 'bash -c "read -rp \\"deep? \\" x; echo got \\$x"'"""
ASKING = {
    "read_with_a_prompt": ("read -rp 'Name: ' x; echo \"got $x\"", "Name: ", "me"),
    "read_from_the_terminal": ('read -r x </dev/tty; echo "got $x"', "", "me and you"),
    "a_silent_read": ("read -rsp 'Secret: ' x; echo \"got $x\"", "Secret: ", "s3cret"),
    "python": ('python3 -c \'print("got " + input("Name: "))\'', "Name: ", "grüße"),
    "getpass": ("python3 -c \"import getpass as g; print('got ' + g.getpass('Secret: '))\"", "Secret: ", "s3cret"),
    "select": (f"python3 -uc '{SELECTS}'", "? ", "me"),
    "poll": (f"python3 -uc '{POLLS}'", "? ", "me"),
    "perl": ('perl -e \'$| = 1; print "? "; print "got ", scalar <STDIN>\'', "? ", "me"),
    "head": ("head -n 1 | sed 's/^/got /'", "", "me"),
    "a_script_in_a_script": (DEEP, "deep? ", "me"),
    "a_substitution": ('x=$(head -n 1); echo "got $x"', "", "me"),
    "rm": ("touch f; rm -i f && echo 'got y'", "rm: remove regular empty file 'f'? ", "y"),
    "a_menu": ('select x in a b; do echo "got $REPLY"; break; done', "1) a\n2) b\n#? ", "2"),
}


@pytest.mark.parametrize(("command", "prompt", "answer"), ASKING.values(), ids=ASKING.keys())
async def test_a_program_that_asks_is_seen_and_answered(shell: Session, command: str, prompt: str, answer: str) -> None:
    reply = await shell.run(f"{command}\n(exit 3)", interactive=True, timeout=30)
    assert (reply.output, reply.exit_code, reply.waiting_for_input, reply.timed_out) == (prompt, None, True, False)
    reply = await shell.write(f"{answer}\n")
    assert (reply.output.strip(), reply.exit_code, reply.waiting_for_input) == (f"got {answer}", 3, False)
    assert await shell.keeps_its_state()


async def test_several_questions(shell: Session) -> None:
    command = 'for q in one two three; do read -rp "$q? " a; echo "$q=$a"; done'
    reply = await shell.run(command, interactive=True)
    for question, following in (("one", "two? "), ("two", "three? "), ("three", "")):
        assert reply.waiting_for_input
        reply = await shell.write(f"answer {question}\n")
        assert reply.output == f"{question}=answer {question}\n{following}"
    assert (reply.exit_code, reply.waiting_for_input) == (0, False)
    assert await shell.keeps_its_state()


async def test_an_answer_may_have_many_lines(shell: Session) -> None:
    reply = await shell.run('while read -r line; do [ "$line" = end ] && break; echo "<$line>"; done', interactive=True)
    assert reply.waiting_for_input
    reply = await shell.write("a b\nc\\d\n\nend\n")
    assert (reply.output, reply.exit_code) == ("<a b>\n<c\\d>\n<>\n", 0)


async def test_the_end_of_input_may_be_typed(shell: Session) -> None:
    reply = await shell.run('cat; echo "ended $?"', interactive=True)
    assert (reply.output, reply.waiting_for_input) == ("", True)
    reply = await shell.write("some text\n\x04")
    assert (reply.output, reply.exit_code) == ("some text\nended 0\n", 0)


async def test_a_waiting_command_may_be_interrupted(shell: Session) -> None:
    for command in (
        "cat /dev/tty; echo never",
        "read -r x </dev/tty; echo never",
        "python3 -c 'open(\"/dev/tty\").read()'",
    ):
        reply = await shell.run(command)
        assert (reply.exit_code, reply.waiting_for_input) == (None, True)
        reply = await shell.interrupt()
        assert (reply.exit_code, reply.waiting_for_input, "never" in reply.output) == (130, False, False)
        assert await shell.keeps_its_state()


async def test_while_a_command_waits_no_other_runs(shell: Session) -> None:
    await shell.run("read -rp '? ' x </dev/tty; echo $x")
    with pytest.raises(ShellError, match="waits"):
        await shell.run("echo x")
    assert (await shell.write("y\n")).output == "y\n"
    assert await shell.keeps_its_state()


async def test_nobody_waits_to_be_answered_or_interrupted(shell: Session) -> None:
    with pytest.raises(ShellError):
        await shell.write("x\n")
    with pytest.raises(ShellError):
        await shell.interrupt()
    assert await shell.keeps_its_state()


async def test_a_session_closes_while_a_command_waits(shell: Session) -> None:
    await shell.run("cat /dev/tty")
    await shell.close()
    assert shell.alive() == []


async def test_a_restart_while_a_command_waits(shell: Session) -> None:
    await shell.run("cat /dev/tty")
    await shell.restart()
    assert await shell.answer("echo fresh$KEEP") == ("fresh\n", 0)


async def test_who_sleeps_or_computes_does_not_wait_for_input(shell: Session) -> None:
    for command in ("sleep 1", "python3 -c 'import time; time.sleep(1)'", "sleep 1 | cat", "read -t 1 x < <(sleep 1)"):
        reply = await shell.run(command, interactive=True, timeout=20)
        assert (reply.waiting_for_input, reply.timed_out) == (False, False), command


async def test_standard_input_is_at_its_end(shell: Session) -> None:
    assert await shell.answer("cat; read x; echo $?; wc -c < /dev/stdin; [ -t 0 ]; echo $?") == ("1\n0\n1\n", 0)
    assert await shell.answer("python3 -c 'import sys; print(repr(sys.stdin.read()))'") == ("''\n", 0)


async def test_what_is_typed_does_not_come_back_and_does_not_stay(shell: Session) -> None:
    await shell.run("read -r x </dev/tty")
    assert (await shell.write("typed\nand more\n")).output == ""
    assert await shell.keeps_its_state()
    reply = await shell.run('read -r y </dev/tty; echo "[$y]"')
    assert (reply.output, reply.waiting_for_input) in (("[and more]\n", False), ("", True))


async def test_the_terminal_is_sane_again_after_a_mess(shell: Session) -> None:
    await shell.run("stty raw -icanon -isig -echo </dev/tty")
    reply = await shell.run("read -rp 'Name: ' x </dev/tty; echo \"got $x\"")
    assert (reply.output, reply.waiting_for_input) == ("Name: ", True)
    assert (await shell.write("me\n")).output == "got me\n"
    await shell.past_its_limit(f"sleep {shell.mark}")
    assert await shell.keeps_its_state()


async def test_a_terminal_session_is_one(console: Console) -> None:
    shell = await console.open_prepared(tty=True)
    assert await shell.answer("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal; (exit 4)") == ("terminal\n", 4)
    assert await shell.answer("echo out; echo err >&2; python3 -c 'print(1)'") == ("out\nerr\n1\n", 0)
    assert await shell.answer("seq 20000 | tail -n 2") == ("19999\n20000\n", 0)
    assert (await shell.output("seq 20000")).endswith("\n19999\n20000\n")
    assert await shell.keeps_its_state()


async def test_a_job_runs_beside_the_session(shell: Session) -> None:
    job = await shell.start_job("echo begin; until [ -e go ]; do sleep 0.01; done; echo end; exit 7")
    assert (job.running, job.exit_code) == (True, None)
    assert await shell.answer("echo foreground") == ("foreground\n", 0)
    await until(lambda: job.read() == "begin\n")
    assert not await job.wait(0.05)
    (shell.folder / "go").touch()
    assert await job.wait(30)
    assert (job.read(), job.exit_code, job.running) == ("end\n", 7, False)
    assert await shell.keeps_its_state()


async def test_a_job_has_the_state_of_the_session_and_changes_none(shell: Session) -> None:
    await shell.run('f() { echo "f $KEEP"; }; mkdir sub; cd sub')
    job = await shell.start_job("f; pwd; KEEP=no; cd /; exit 3")
    assert await job.wait(30)
    assert (job.read(), job.exit_code) == (f"f 42\n{shell.folder}/sub\n", 3)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(("command", "status"), [
    ("true", 0), ("(exit 9)", 9), ("kill -9 $BASHPID", 137), ("nosuch", 127), ("if then", 2),
    ("exec sh -c 'exit 4'", 4), ("set -e; false; true", 1),
])  # fmt: skip
async def test_jobs_end_with_their_status(shell: Session, command: str, status: int) -> None:
    job = await shell.start_job(command)
    assert await job.wait(30)
    assert job.exit_code == status
    assert await shell.keeps_its_state()


async def test_a_job_may_be_stopped_with_all_it_started(shell: Session) -> None:
    job = await shell.start_job(
        f"(trap '' TERM INT; sleep {shell.mark}) & setsid sleep {shell.mark} & sleep {shell.mark}"
    )
    await shell.until_sleepers(3)
    async with asyncio.timeout(30):
        await job.stop()
    assert (job.running, shell.sleepers()) == (False, [])
    assert await shell.keeps_its_state()


async def test_a_job_may_be_answered(shell: Session) -> None:
    job = await shell.start_job('while read -r line; do echo "<$line>"; done', interactive=True)
    await job.write("one\n")
    await until(lambda: job.read() == "<one>\n")
    await job.write("two\n")
    await until(lambda: job.read() == "<two>\n")
    await job.stop()
    with pytest.raises(ShellError):
        await job.write("three\n")


async def test_the_first_job_that_ends_is_told(shell: Session) -> None:
    assert await shell.bash.wait_any(0.01) is None
    slow = await shell.start_job(f"sleep {shell.mark}")
    quick = await shell.start_job("until [ -e go ]; do sleep 0.01; done")
    assert await shell.bash.wait_any(0.05) is None
    (shell.folder / "go").touch()
    assert await shell.bash.wait_any(30) is quick
    assert slow.running


async def test_there_are_no_more_jobs_than_allowed(console: Console) -> None:
    shell = await console.open_prepared(max_jobs=2)
    jobs = [await shell.start_job(f"sleep {shell.mark}") for _ in range(2)]
    with pytest.raises(ShellError, match="2 jobs"):
        await shell.start_job("true")
    await jobs[0].stop()
    await shell.start_job(f"sleep {shell.mark}")
    assert await shell.keeps_its_state()


async def test_what_a_command_left_prints_later_to_its_own_job(shell: Session) -> None:
    command = "(until [ -e go ]; do sleep 0.01; done; echo late; echo later >&2) & echo now"
    assert await shell.answer(command) == ("now\n", 0)
    job = shell.only_job()
    assert job.running
    (shell.folder / "go").touch()
    assert await job.wait(30)
    assert await shell.answer("echo next") == ("next\n", 0)
    assert job.read() == "late\nlater\n"
    assert await shell.keeps_its_state()


async def test_each_command_leaves_a_job_of_its_own(shell: Session) -> None:
    for number in range(3):
        await shell.run(f"(until [ -e go ]; do sleep 0.01; done; echo late {number}) &")
    jobs = list(shell.bash.jobs.values())
    (shell.folder / "go").touch()
    assert [await job.wait(30) for job in jobs] == [True] * 3
    assert [job.read() for job in jobs] == [f"late {number}\n" for number in range(3)]


async def test_what_prints_to_a_file_is_no_job(shell: Session) -> None:
    await shell.run(f"sleep {shell.mark} >log 2>&1 &")
    await until(lambda: not shell.bash.jobs)
    await shell.until_sleepers(1)


async def test_who_prints_without_end_does_not_hold_the_session(shell: Session) -> None:
    assert await shell.answer("(sleep 0.1; exec yes) &") == ("", 0)
    job = shell.only_job()
    await until(lambda: job.read().startswith("y\ny\n"))
    for _ in range(10):
        assert await shell.answer("echo quiet") == ("quiet\n", 0)
    assert await shell.answer("kill %1; wait 2>/dev/null; echo over\ntrue") == ("over\n", 0)
    assert await job.wait(30)
    assert await shell.keeps_its_state()


async def test_much_output_keeps_its_head_and_tail_and_is_kept_whole(console: Console, tmp_path: Path) -> None:
    shell = await console.open_prepared(output_limit=10_000, spill_dir=tmp_path / "spill")
    reply = await shell.run("echo BEGIN; seq 3000000; echo END; (exit 5)")
    assert (reply.exit_code, len(reply.output) < 10_500) == (5, True)
    assert reply.output.startswith("BEGIN\n1\n2\n")
    assert reply.output.endswith("\n2999999\n3000000\nEND\n")
    assert reply.truncated
    assert reply.truncated.kept_at
    whole = reply.truncated.kept_at.read_text()
    assert whole == "BEGIN\n" + "".join(f"{number}\n" for number in range(1, 3_000_001)) + "END\n"
    assert reply.truncated.omitted_bytes == len(whole) - 10_000
    assert await shell.keeps_its_state()
    reply = await shell.run("seq 10")
    assert (reply.truncated, reply.output) == (None, "".join(f"{number}\n" for number in range(1, 11)))


async def test_output_of_exactly_the_limit_is_whole(console: Console) -> None:
    shell = await console.open_prepared(output_limit=1000)
    reply = await shell.run("printf 'x%.0s' {1..1000}")
    assert (reply.output, reply.truncated) == ("x" * 1000, None)
    reply = await shell.run("printf 'x%.0s' {1..1001}")
    assert reply.truncated
    assert reply.truncated.omitted_bytes == 1


async def test_every_byte_of_much_output_is_heard(shell: Session) -> None:
    heard: list[str] = []
    await shell.run("seq 200000", on_output=heard.append)
    assert "".join(heard) == "".join(f"{number}\n" for number in range(1, 200_001))


async def test_much_on_both_streams(shell: Session) -> None:
    command = "for i in {1..2000}; do echo out $i; echo err $i >&2; done"
    assert await shell.output(command) == "".join(f"out {number}\nerr {number}\n" for number in range(1, 2001))


@pytest.mark.parametrize(("limits", "command", "words"), [
    (Limits(file_bytes=1000), "head -c 2000 /dev/zero > big; stat -c %s big", "1000"),
    (Limits(open_files=50), "ulimit -n", "50"),
    (Limits(cpu_seconds=1), "sh -c 'while :; do :; done'; echo $?", "1"),
])  # fmt: skip
async def test_limits_hold(console: Console, limits: Limits, command: str, words: str) -> None:
    shell = await console.open_prepared(limits=limits)
    assert words in await shell.output(command, timeout=30)
    assert await shell.keeps_its_state()


async def test_memory_runs_out(console: Console) -> None:
    shell = await console.open_prepared(limits=Limits(memory_bytes=400 << 20))
    reply = await shell.run("python3 -c 'x = bytes(range(256)) * (3 << 20); print(len(x))'", timeout=30)
    assert (str(768 << 20) in reply.output, reply.exit_code != 0, reply.ended) == (False, True, False)
    assert await shell.keeps_its_state()


async def test_a_command_that_prints_too_much_is_ended(console: Console) -> None:
    shell = await console.open_prepared(limits=Limits(output_bytes=100_000))
    reply = await shell.run("echo begin; yes", timeout=30)
    assert (reply.timed_out, reply.ended, reply.output.startswith("begin\ny\n")) == (False, False, True)
    assert reply.note
    assert await shell.keeps_its_state()


async def test_limits_hold_in_the_next_shell_too(console: Console) -> None:
    shell = await console.open_prepared(limits=Limits(open_files=50))
    await shell.run("exit")
    assert await shell.answer("ulimit -n") == ("50\n", 0)


async def test_a_job_has_a_terminal_of_its_own_and_the_state_of_its_session(shell: Session) -> None:
    await shell.run("x=5; f() { echo $x; }")
    job = await shell.start_job("[ -t 0 ] && f; read -rp 'name? ' name; echo hi $name; exit 4", interactive=True)
    said: list[str] = []
    await until(lambda: said.append(job.read()) or "".join(said) == "5\nname? ")  # it may come in two pieces
    assert await shell.answer("read -t 0.01 y </dev/tty; echo $?") == ("142\n", 0)
    await job.write("ada\n")
    await job.wait(30)
    assert (job.read(), job.exit_code) == ("hi ada\n", 4)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(("command", "output", "status"), [
    ("echo begin; sleep 60; echo never", "begin\n", 130),
    ("trap 'echo bye; exit 7' INT; echo begin; sleep 60; echo never", "begin\nbye\n", 7),
    ("echo begin; while :; do :; done", "begin\n", 130),
])  # fmt: skip
async def test_a_running_command_may_be_interrupted(shell: Session, command: str, output: str, status: int) -> None:
    heard: list[str] = []
    running = asyncio.ensure_future(shell.run(command, on_output=heard.append))
    await until(lambda: "".join(heard) == "begin\n")
    assert await shell.bash.interrupt() is None
    reply = await running
    assert (reply.output, reply.exit_code, reply.timed_out) == (output, status, False)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("command", ["vim notes", "cd / && top", "watch ls", "nano"])
async def test_a_program_for_a_screen_says_at_once_that_there_is_none(shell: Session, command: str) -> None:
    output, status = await shell.answer(command)
    assert ("needs a terminal" in output, status) == (True, 1)


@pytest.mark.parametrize("command", ["echo vim", "top -bn1 >/dev/null", "watch() { :; }; watch x"])
async def test_other_lines_that_name_such_a_program_run(shell: Session, command: str) -> None:
    assert "needs a terminal" not in await shell.output(command)


async def test_descriptors_of_two_digits_stay_open_and_are_the_commands_own(shell: Session) -> None:
    assert await shell.answer("exec 10>log 12>&1; echo one >&10; echo two >&12") == ("two\n", 0)
    assert await shell.answer("exec 11>other; echo three >&11; cat other; echo four >&10; cat log") == (
        "three\none\nfour\n",
        0,
    )
    assert await shell.answer("echo five >&11; exec 10>&- 11>&- 12>&-; cat other") == ("three\nfive\n", 0)
    assert await shell.answer("echo later >&10") == ("bash: line 1: 10: Bad file descriptor\n", 1)
    job = await shell.start_job("exec 10>&1; echo beside >&10")
    assert await job.wait(PATIENCE)
    assert job.read() == "beside\n"
