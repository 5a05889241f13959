"""When a shell ends: what the next one takes over, what is said, and that nothing is left at the end of all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import Console, Session
from marks import end_marked, fresh_mark, marked
from support import running, until
from toolyard.bash import ShellError
from toolyard.bash.session.shell_integration import WHOLE

pytestmark = pytest.mark.anyio

TAKEN_OVER = {
    "variable": ("v='a b'", 'echo "$v"', "a b\n"),
    "awkward_value": ("v=$'a \\' \" $x ` \\\\ newline \\n tab \\t'", 'echo "$v"', "a ' \" $x ` \\ newline \n tab \t\n"),
    "bytes": ("v=$'\\xff\\xc3 \\x01'", 'printf "$v" | od -An -tx1', " ff c3 20 01\n"),
    "big_value": ("v=$(printf 'x%.0s' {1..100000})", "echo ${#v}", "100000\n"),
    "unicode": ("v='größe ✓'", 'echo "$v"', "größe ✓\n"),
    "exported": ("export E=1 F='2 3'; unexported=4", 'sh -c \'echo "$E $F$unexported"\'', "1 2 3\n"),
    "no_longer_exported": ("export -n KEEP", "sh -c 'echo [$KEEP]'", "[]\n"),
    "unset": ("unset CASE", "echo ${CASE-gone}", "gone\n"),
    "integer": ("declare -i n=1", "n=n+4; echo $n", "5\n"),
    "readonly": ("readonly r=1", "(r=2) 2>/dev/null; echo $r $?", "1 1\n"),
    "array": ("a=(1 'b c' [7]=d)", 'echo "${#a[@]} ${a[1]} ${!a[@]}"', "3 b c 0 1 7\n"),
    "associative_array": ("declare -A m=([a b]='c d' [x]=y)", 'echo "${#m[@]} ${m[a b]}"', "2 c d\n"),
    "nameref": ("t=1; declare -n ref=t", "ref=2; echo $t", "2\n"),
    "function": ('f() { local x="$1 it\'s"; echo "f: $x"; }', "f hi", "f: hi it's\n"),
    "function_with_here_document": ("f() { cat <<E\nbody $1\nE\n}", "f x", "body x\n"),
    "exported_function": ("g() { echo exported; }; export -f g", "bash -c g", "exported\n"),
    "function_with_odd_name": ("a-b.c() { echo odd; }", "a-b.c", "odd\n"),
    "function_named_like_a_builtin": ("cd() { builtin cd \"$@\"; }", "type -t cd", "function\n"),
    "alias": ("alias hi='echo \"it'\\''s\"'", "hi", "it's\n"),
    "alias_that_ends_in_a_blank": ("alias say='echo ' word='hello'", "say word", "hello\n"),
    "option": ("set -o pipefail -o noclobber", "shopt -po pipefail noclobber | wc -l; false | true; echo $?", "2\n1\n"),
    "option_unset": ("set +o braceexpand", "echo {a,b}", "{a,b}\n"),
    "shopt": ("shopt -s nullglob extglob", "echo *.none @(x) end", "end\n"),
    "shopt_unset": ("shopt -u sourcepath", "shopt sourcepath | cut -f2", "off\n"),
    "umask": ("umask 027", "umask", "0027\n"),
    "arguments": ("set -- a 'b c' ''", 'echo "$# $2"', "3 b c\n"),
    "directory": ("mkdir 'sub dir'; cd 'sub dir'", "basename \"$PWD\"", "sub dir\n"),
    "previous_directory": ("mkdir sub; cd sub", "cd - >/dev/null; basename \"$PWD\"", "work\n"),
    "directory_behind_a_link": ("mkdir d; ln -s d l; cd l", 'basename "$PWD"', "l\n"),
    "field_separator": ("IFS=:", "x=a:b; printf '<%s>' $x", "<a><b>"),
    "path": ("PATH=$PWD:$PATH; printf '#!/bin/sh\\necho mine' > prog; chmod +x prog", "prog", "mine\n"),
    "locale": ("LC_ALL=C", "x=ü; echo ${#x}", "2\n"),
    "trap": ("trap 'echo trapped' USR1", "kill -USR1 $$", "trapped\n"),
    "ignored_signal": ("trap '' USR1", "kill -USR1 $$; echo lives", "lives\n"),
    "history_expansion_stays_off": ("x='!!'", 'echo "$x !x"', "!! !x\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "output"), TAKEN_OVER.values(), ids=TAKEN_OVER.keys())
async def test_state_is_taken_over(shell: Session, before: str, after: str, output: str) -> None:
    assert await shell.answer(before) == ("", 0)
    reply = await shell.run("exit 3")
    assert (reply.output, reply.exit_code, reply.ended) == ("", 3, True)
    reply = await shell.run(after)
    assert (reply.output, reply.restarted) == (output, True)
    assert "KEEP" in before or await shell.keeps_its_state()


@pytest.mark.parametrize("end", ["exit 3", "set -e; false", "(exit 3) || exit 3", "set -u; exit",
                                 "trap 'true' EXIT; exit 3",
                                 "set -x; exit", "set -C; exit", "set -o posix; exit", "exec nosuchprogram",
                                 "unset PATH; exit", "readonly PWD HOME IFS; exit", "shopt -s failglob; exit",
                                 "builtin() { :; }; exit", "printf() { :; }; declare() { :; }; exit", "exec >&-; exit",
                                 "cd() { echo in $1; }; exit", "alias declare=echo set=echo; exit"])  # fmt: skip
async def test_state_is_taken_over_after_every_kind_of_end(shell: Session, end: str) -> None:
    await shell.run("f() { echo function; }; declare -A m=([k]=v)")
    assert (await shell.run(end)).ended
    reply = await shell.run('echo "$KEEP ${m[k]}"; f', timeout=20)
    words = [line for line in reply.output.splitlines() if not line.startswith("+")]
    assert (words, reply.restarted) == (["42 v", "function"], True)


async def test_state_is_taken_over_again_and_again(shell: Session) -> None:
    for number in range(5):
        assert await shell.answer(f"n{number}={number}; f{number}() {{ echo {number}; }}") == ("", 0)
        assert (await shell.run(f"exit {number}")).exit_code == number
    assert await shell.answer('echo "$n0$n1$n2$n3$n4 $KEEP"; f0; f4') == ("01234 42\n0\n4\n", 0)


async def test_after_an_end_that_leaves_no_word_the_next_is_fresh(shell: Session) -> None:
    await shell.run("exit 1")
    await shell.run("x=later")
    assert (await shell.run("kill -9 $$")).ended
    reply = await shell.run('echo "[$x$KEEP]"')
    assert (reply.output, reply.restarted) == ("[]\n", True)


async def test_what_is_said_of_an_end(shell: Session) -> None:
    reply = await shell.run("exit 3")
    assert reply.note
    reply = await shell.run("true")
    assert (reply.restarted, reply.note is not None) == (True, True)
    reply = await shell.run("true")
    assert (reply.restarted, reply.note) == (False, None)


async def test_the_trap_at_exit_runs_once(shell: Session) -> None:
    await shell.run("trap 'echo bye >> log; echo bye' EXIT")
    reply = await shell.run("echo last; exit 3")
    assert (reply.output, reply.exit_code, reply.ended) == ("last\nbye\n", 3, True)
    assert await shell.answer("cat log") == ("bye\n", 0)
    assert await shell.keeps_its_state()
    assert await shell.answer("exit") == ("", 0)


async def test_jobs_of_a_shell_that_ended_go_on_until_the_session_ends(shell: Session) -> None:
    await shell.start_job(f"sleep {shell.mark}")
    sleeper = await shell.until_sleepers(1)
    assert (await shell.run("exit")).ended
    assert await shell.keeps_its_state()
    assert shell.sleepers() == sleeper
    await shell.close()
    assert shell.alive() == []


async def test_a_restart_clears_everything(shell: Session) -> None:
    pid = shell.bash.pid
    await shell.run(
        f"f() {{ :; }}; alias a=b; set -u; mkdir sub; cd sub; sleep {shell.mark} & setsid sleep {shell.mark} &"
    )
    await shell.start_job(f"sleep {shell.mark}")
    await shell.restart()
    assert (shell.sleepers(), dict(shell.bash.jobs), shell.bash.pid != pid) == ([], {}, True)
    reply = await shell.run('echo "[$KEEP] $PWD"; alias; declare -F')
    assert (reply.output, reply.restarted) == (f"[] {shell.folder}\n", False)


async def test_a_restart_after_an_end(shell: Session) -> None:
    await shell.run("x=1; exit")
    await shell.restart()
    reply = await shell.run('echo "[$x$KEEP]"')
    assert (reply.output, reply.restarted) == ("[]\n", False)


async def test_closing_in_the_middle_of_a_command(shell: Session) -> None:
    running = asyncio.ensure_future(shell.run(f"sleep {shell.mark}"))
    await until(shell.sleepers)
    await shell.close()
    assert shell.alive() == []
    async with asyncio.timeout(30):
        await asyncio.gather(running, return_exceptions=True)


async def test_a_closed_session_says_so(shell: Session) -> None:
    await shell.close()
    await shell.close()
    with pytest.raises(ShellError, match="closed"):
        await shell.run("echo x")


DAEMONS = {
    "in_the_background": "sleep $M &",
    "disowned": "sleep $M & disown",
    "nohup": "nohup sleep $M >/dev/null 2>&1 &",
    "another_session": "setsid sleep $M &",
    "forked_twice": "( ( sleep $M & ) & )",
    "forked_twice_in_another_session": "( setsid sh -c 'sleep $M & sleep $M & exit' & )",
    "without_environment_or_descriptors": "( setsid env -i /bin/sleep $M <&- >&- 2>&- & )",
    "ignoring_signals": "(trap '' INT TERM HUP; setsid sleep $M &)",
    "stopped": "sleep $M & kill -STOP $!",
    "a_coprocess": "coproc sleep $M",
    "of_python": "python3 -c 'import os\nif os.fork() == 0: os.setsid(); os.fork() or os.system(\"sleep $M\")'",
    "writing_all_the_time": "setsid yes $M &",
}


@pytest.mark.parametrize("command", DAEMONS.values(), ids=DAEMONS.keys())
async def test_no_daemon_outlives_the_session(shell: Session, command: str) -> None:
    await shell.run(f"M={shell.mark}; export M; {command}")
    await until(lambda: len(shell.alive()) > 1)
    assert await shell.keeps_its_state()
    await shell.close()
    assert shell.alive() == []


async def test_an_idle_session_is_one_process(shell: Session) -> None:
    assert await shell.answer("/bin/true; (exit 3)") == ("", 3)
    assert [int(found.split()[0]) for found in shell.alive()] == [shell.bash.pid]


APPLICATION = """
import asyncio, sys
from toolyard.bash import BashSession

async def main(mark):
    async with BashSession() as shell:
        await shell.run(f"sleep {mark} & setsid sleep {mark} & ( setsid env -i /bin/sleep {mark} <&- >&- 2>&- & )")
        await shell.run("sleep 0.2")
        print("ready", flush=True)
        await shell.run(f"(trap '' INT TERM HUP; sleep {mark})")

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def mark() -> Iterator[str]:
    mark = fresh_mark()
    yield mark
    end_marked(mark)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_outlives_an_application_that_is_killed(
    tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    program = [sys.executable, "-c", APPLICATION, mark]
    with running(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as application:
        assert application.stdout
        assert await asyncio.to_thread(application.stdout.readline) == b"ready\n"
        application.send_signal(number)
        await until(lambda: not marked(mark))
        await asyncio.to_thread(application.wait, 30)
    await until(lambda: not list(tmp_path.glob("toolyard-*")))


async def test_an_environment_of_ones_own(console: Console) -> None:
    shell = await console.open(env={"PATH": os.environ["PATH"], "ONLY": "this", "CASE": console.mark, "PAGER": "mine"})
    names = {line.partition("=")[0] for line in (await shell.output("env")).splitlines()}
    assert {"ONLY", "PATH", "GIT_PAGER", "TERM", "DEBIAN_FRONTEND"} <= names
    assert not names & {"HOME", "USER", "PYTEST_CURRENT_TEST", "XDG_CACHE_HOME"}
    assert await shell.answer("echo $PAGER $GIT_PAGER $TERM") == ("mine cat dumb\n", 0)


async def test_the_application_s_environment_less_credentials(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASE", console.mark)
    monkeypatch.setenv("SERVICE_API_KEY", "do not tell")
    monkeypatch.setenv("BASH_ENV", "/nonexistent")
    shell = await console.open(env=None)
    assert await shell.answer('echo "[$SERVICE_API_KEY$BASH_ENV] ${CASE:+there}"') == ("[] there\n", 0)


@pytest.mark.parametrize("variables", [
    {"PS1": "$(cat)", "PROMPT_COMMAND": "cat", "TMOUT": "1"},
    {"BASH_ENV": "/nonexistent", "ENV": "/nonexistent", "POSIXLY_CORRECT": "1"},
    {"SHELLOPTS": "xtrace:verbose", "BASHOPTS": "extdebug:failglob", "PS4": "$(cat)"},
    {"HISTFILE": "history", "IGNOREEOF": "10", "MAILCHECK": "1", "MAIL": "/etc/passwd", "COLUMNS": "3"},
    {"BASH_FUNC_eval%%": "() { echo fake; }", "BASH_FUNC_builtin%%": "() { echo fake; }"},
    {"BASH_FUNC_.%%": "() { echo fake; }", "LANG": "nothing", "TERM": "", "PWD": "/nonexistent"},
])  # fmt: skip
async def test_any_environment_may_be_given(console: Console, variables: dict[str, str]) -> None:
    shell = await console.open(env=console.env | variables)
    output, status = await shell.answer("echo 1\necho 2\nsh -c 'exit 7'", timeout=10)
    assert ([line for line in output.splitlines() if line in "12"], status) == (["1", "2"], 7)


@pytest.mark.parametrize("before", ["true", "(while :; do sleep 1; done) & true"])
async def test_a_shell_that_died_unseen_is_replaced_and_the_command_runs(shell: Session, before: str) -> None:
    await shell.run(before)
    assert shell.bash.pid
    os.kill(shell.bash.pid, signal.SIGKILL)
    reply = await shell.run("echo ran")
    assert (reply.output, reply.exit_code, reply.restarted) == ("ran\n", 0, True)


async def test_a_state_that_no_shell_can_begin_with_is_left_and_that_is_said(shell: Session) -> None:
    await shell.run("v=1; exit")
    last = shell.bash._supervisor.current
    assert last is not None
    Path(last._folder.place("state")).write_bytes(b"exit 3\n" + WHOLE)
    reply = await shell.run('echo "[$v]"')
    assert (reply.output, reply.restarted) == ("[]\n", True)
    assert "its state cannot be taken over" in (reply.note or "")


async def test_a_session_whose_folder_was_removed_goes_on_in_what_is_left_of_its_path(console: Console) -> None:
    folder = console.folder_of("deep", "er")
    shell = await console.open(cwd=folder)
    await shell.run("x=1")
    assert (await shell.run(f"rm -r {folder.parent}; exit 3")).exit_code == 3
    reply = await shell.run('echo "$PWD $x"')
    assert (reply.output, reply.exit_code, reply.restarted) == (f"{console.folder} 1\n", 0, True)
    assert f"{folder} is gone, so that it begins in {console.folder}." in str(reply.note)
