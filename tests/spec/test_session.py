"""The live session: one bash for a conversation, which nothing that is run in it can confuse or outlive."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from console import SINCE_5_2, Console
from marks import marked
from support import PATIENCE, is_alive, need, running, until
from toolyard.app import AgentApplication
from toolyard.bash import BashSession
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.process.limits import Limits
from yard import Yard

pytestmark = pytest.mark.anyio

ENOUGH = 60
"""A time limit that only a broken runtime reaches."""
MIB = 1 << 20


class Conversation:
    """The tools of one live session, called along the whole path."""

    def __init__(self, app: AgentApplication, yard: Yard, mark: str) -> None:
        self.app = app
        self.yard = yard
        self.folder = yard.folder
        self.mark = mark

    async def __call__(self, command: str | None = None, **rest: Any) -> ToolResult:
        return await self.call("bash", **({} if command is None else {"command": command}), **rest)

    async def text(self, command: str, **rest: Any) -> str:
        return (await self(command, **rest)).text

    async def job(self, action: str, **rest: Any) -> ToolResult:
        return await self.call("bash_job", action=action, **rest)

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        async with asyncio.timeout(PATIENCE):
            return await self.app.call_tool(tool, arguments, on_event=self.yard.watch)

    def sleepers(self) -> list[str]:
        """The living `sleep`s of this conversation."""
        return [found for found in marked(self.mark) if found.split()[1].endswith("sleep")]


class Conversations:
    """Opens conversations in the folder of the test and ends those that are left open."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.yard = Yard(folder)
        self.mark = mark
        self._open = AsyncExitStack()

    async def begin(self, plugin: Any = "shell:session", **config: Any) -> Conversation:
        app = await self._open.enter_async_context(self.yard.app(plugin, **config))
        assert app.get_config_errors() == []
        return Conversation(app, self.yard, self.mark)

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._open.aclose()


@pytest.fixture
async def conversations(console: Console, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Conversations]:
    monkeypatch.chdir(console.folder)
    monkeypatch.setenv("CASE", console.mark)
    conversations = Conversations(console.folder, console.mark)
    yield conversations
    await conversations.end()


@pytest.fixture
async def talk(conversations: Conversations) -> Conversation:
    return await conversations.begin()


async def test_S01_a_command_is_run_and_a_restart_begins_anew(talk):
    assert await talk.text("x=1; echo ran") == "ran\n"
    shell = await talk.text("echo $$")
    restarted = await talk(restart=True)
    assert (restarted.failure, restarted.text) == (None, "Bash session restarted")
    assert await talk.text('echo "[$x]"') == "[]\n"
    assert await talk.text("echo $$") != shell


async def test_S01_a_restart_ends_what_the_old_shell_started(talk):
    await talk(f"sleep {talk.mark} & setsid sleep {talk.mark} &")
    await until(lambda: len(talk.sleepers()) == 2)
    await talk(restart=True)
    assert talk.sleepers() == []


async def test_S01_anthropic_models_get_the_native_tool_and_no_schema_of_ours(talk):
    first, second = talk.app.tool_specs(format="anthropic")
    assert first == {"type": "bash_20250124", "name": "bash"}
    assert second["name"] == "bash_job"


async def test_S01_all_others_get_an_ordinary_function(talk):
    chat = talk.app.tool_specs(format="openai")[0]
    responses = talk.app.tool_specs(format="responses")[0]
    mcp = talk.app.tool_specs(format="mcp")[0]
    assert (chat["type"], responses["type"]) == ("function", "function")
    assert chat["function"]["name"] == responses["name"] == mcp["name"] == "bash"
    for schema in (chat["function"]["parameters"], responses["parameters"], mcp["inputSchema"]):
        assert schema["type"] == "object"
        assert {"command", "restart"} <= set(schema["properties"])


async def test_S01_a_restart_wins_over_a_command(talk):
    await talk("x=1")
    assert (await talk("touch ran", restart=True)).text == "Bash session restarted"
    assert not (talk.folder / "ran").exists()
    assert await talk.text('echo "[$x]"') == "[]\n"


@pytest.mark.parametrize("arguments", [{}, {"restart": False}, {"timeout": 3}, {"background": True}])
async def test_S01_without_either_the_command_is_required(talk, arguments):
    result = await talk(**arguments)
    assert (result.failure, "command is required" in result.text) == ("invalid_arguments", True)
    assert talk.yard.audit()[-1]["event"] == "end"


@pytest.mark.parametrize(("before", "after", "text"), [
    ("x='a  b'; export Y=1",                       'echo "$x"; sh -c \'echo $Y\'', "a  b\n1\n"),
    ("a=(1 2 3); declare -A m=([k]=v)",            'echo "${#a[@]} ${m[k]}"',      "3 v\n"),
    ('f() { echo "f: $1"; }',                      "f hi",                         "f: hi\n"),
    ("alias hi='echo hello'",                      "hi you",                       "hello you\n"),
    ("set -o pipefail; shopt -s nullglob",         "true *.no | false; echo $?; set -o | grep pipefail; echo *.no end",
     "1\npipefail       \ton\nend\n"),
    ("mkdir -p 'a b'; cd 'a b'",                   'echo "${PWD##*/}"',            "a b\n"),
    ("umask 027; trap 'echo trapped' USR1",        "umask; kill -USR1 $$",         "0027\ntrapped\n"),
    ("exec 7>log; echo one >&7",                   "echo two >&7; cat log",        "one\ntwo\n"),
])  # fmt: skip
async def test_S02_what_one_call_sets_the_next_finds(talk, before, after, text):
    assert (await talk(before)).failure is None
    assert await talk.text(after) == text


async def test_S02_background_jobs_are_the_shells_own_in_later_calls(talk):
    await talk(f"sleep {talk.mark} & first=$!")
    assert await talk.text("jobs -p | grep -c . ; [ $(jobs -p) = $first ] && echo same") == "1\nsame\n"
    result = await talk("kill %1; wait $first; echo $?")
    assert (result.text.splitlines()[-1], talk.sleepers()) == ("143", [])


async def test_S02_it_is_one_bash_for_all_calls_of_a_conversation_and_another_for_another(conversations):
    one, other = await conversations.begin(), await conversations.begin()
    pids = [await one.text("echo $$"), await other.text("echo $$"), await one.text("echo $$")]
    assert (pids[0] == pids[2], pids[0] != pids[1]) == (True, True)
    await one("x=one")
    assert await other.text('echo "[$x]"') == "[]\n"


async def test_S03_both_streams_come_interleaved_as_they_were_written(talk):
    command = "for i in 1 2 3; do echo out $i; echo err $i >&2; sh -c 'echo child out; echo child err >&2'; done"
    expected = "".join(f"out {n}\nerr {n}\nchild out\nchild err\n" for n in (1, 2, 3))
    assert await talk.text(command) == expected


TELLING = [
    "set -x; true; set +x", "set -v; true; set +v", "env", "declare -F", "alias", "trap -p", "jobs -l", "history",
    "fc -l", "export -p", "ps -o args= -g $$", "sleep 0.01 & wait", "sleep 60 & kill -9 $!; wait", "caller; caller 0",
    "echo $0 $- $#", "(exit 3) & wait", "times", "shopt; set -o",
]  # fmt: skip


async def test_S03_no_byte_is_the_runtimes_own(shell):
    for command in TELLING:
        assert "toolyard" not in await shell.output(command), command


@pytest.mark.parametrize("command", ["if then", "echo 'a", "cat <<E\nx", "nosuchcommand\ntrue", "cd /nonexistent\n:"])
async def test_S03_of_the_runtime_an_error_has_the_name_of_the_script_at_most(shell, command):
    """Bash names the file whose syntax it complains of, as it does with any script."""
    assert "toolyard" not in re.sub(
        r"^bash: \S+/command: line \d+: ", "bash: ", await shell.output(command), flags=re.M
    )


@pytest.mark.parametrize("imitation", [
    "printf '/-/%s 3 0 himBHs /=%s:' nonce nonce >&2",
    "printf '/-/%s 3 0 himBHs /=%s:' nonce nonce > /dev/tty",
    "head -c 100000 /dev/urandom >&2",
    "cat /proc/self/environ /proc/$$/cmdline /proc/$$/environ",
    r"printf '\x1b[?2004l\0\r\n$ \x04\x03'",
])  # fmt: skip
async def test_S03_no_output_can_imitate_the_status(shell, imitation):
    assert (await shell.run(f"{imitation}; (exit 7)")).exit_code == 7
    assert await shell.answer("echo next; (exit 8)") == ("next\n", 8)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("redirection", [
    "exec >/dev/null", "exec 2>/dev/null", "exec >/dev/null 2>&1", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-",
    "exec </dev/zero",
])  # fmt: skip
async def test_S03_the_status_survives_a_shell_whose_streams_are_gone(shell, redirection):
    assert (await shell.run(f"{redirection}; (exit 7)")).exit_code == 7
    assert (await shell.run("(exit 8)")).exit_code == 8
    assert await shell.answer("echo heard again") == ("heard again\n", 0)
    assert await shell.keeps_its_state()


AWKWARD = [
    ("if then", 2), ("echo )", 2), ("for", 2), ("}", 2), ("case x in", 2),
    ("echo 'a", 2), ('echo "a', 2), ("echo `a", 2), ("echo $(a", 2), ("echo ${a", 2),
    ("cat <<E\nx\n", 0), ("cat <<'E'\nx\n(exit 3)", 0), ("cat <<E; (exit 3)\nx", 3),
    ("true # comment", 0), ("(exit 3) # comment", 3), ("echo a # it's", 0),
    ("true \\", 0), ("(exit 3) \\", 2), ("(exit 3) \\\n", 3), ("echo a\\", 0),
    ("", 0), (" ", 0), ("\n\n", 0), ("\t\n \n", 0), ("# only", 0), ("# only\n# these", 0), ("# it's \" ` $( <<E", 0),
    ("set -o pipefail; (exit 3) | true", 3), ("set -u; true", 0),
    ("cat", 0), ("cat | cat; (exit 3)", 3), ("read line", 1), ("wc -c", 0), ("python3 -c 'input()'", 1),
    ("while read -r line; do :; done; (exit 3)", 3), ("bash; (exit 3)", 3), ("sh -s; (exit 3)", 3),
    ("printf 'no newline'; (exit 3)", 3), ("printf 'a\\0b\\0'; (exit 3)", 3), ("printf '\\377\\303'; (exit 3)", 3),
    ("return 3", 2), ("false; true; (exit 255)", 255), ("nosuchcommand", 127), ("/etc/passwd", 126),
    ("! true", 1), ("break", 0), ("kill -9 $BASHPID & wait $!", 137), *((f"(exit {n})", n) for n in (128, 130, 185)),
]  # fmt: skip


async def test_S04_an_awkward_command_has_its_proper_status_and_the_session_stays_usable(talk):
    for command, status in AWKWARD:
        await talk(restart=True)
        await talk("cd .; keep='it is'; pid=$$")
        result = await talk(command, timeout=ENOUGH)
        assert (result.exit_code, result.failure) == (status, "exit_code" if status else None), command
        assert await talk.text('set +u; [ $pid = $$ ] && echo "$keep"') == "it is\n", command


@pytest.mark.parametrize(("command", "output"), [
    ("printf 'no newline'", "no newline"),
    (r"printf 'a\0b\377c\303'", "a\0b\ufffdc\ufffd"),
    ("cat <<'E'\n$x `y`\nE", "$x `y`\n"),
    ("echo a # b", "a\n"),
    ("echo a \\\n  b \\", "a b \\\n"),
])  # fmt: skip
async def test_S04_an_awkward_command_has_its_proper_output(shell, command, output):
    assert await shell.answer(command) == (output, 0)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(("setting", "failing"), [("set -e", "false"), ("set -e", "(exit 1)"), ("set -eu", "false")])
async def test_S04_a_shell_that_ends_at_the_first_error_leaves_a_usable_session(talk, setting, failing):
    await talk("keep=kept")
    assert (await talk(setting)).exit_code == 0
    assert (await talk("if false; then :; fi; true")).exit_code == 0
    failed = await talk(f"{failing}; touch never")
    assert (failed.exit_code, (talk.folder / "never").exists()) == (1, False)
    assert (await talk.text("echo $keep")).splitlines()[-1] == "kept"


async def test_S04_an_unset_variable_fails_its_command_only(talk):
    await talk("set -u; keep=kept")
    failed = await talk("echo $nosuch; touch never")
    assert (failed.failure, "nosuch: unbound variable" in failed.text) == ("exit_code", True)
    assert failed.exit_code in (1, 127)
    assert not (talk.folder / "never").exists()
    assert (await talk.text("set +u; echo $keep$nosuch")).splitlines()[-1] == "kept"


async def test_S04_a_gigabyte_of_output_takes_little_memory_and_no_state(shell):
    tracemalloc.start()
    reply = await shell.run("head -c 1000000000 /dev/zero; (exit 3)", timeout=ENOUGH)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (reply.exit_code, reply.truncated is not None) == (3, True)
    assert reply.truncated.omitted_bytes + MIB == 1_000_000_000
    assert most < 32 * MIB
    assert await shell.keeps_its_state()


async def test_S04_a_child_that_keeps_the_output_open_does_not_keep_the_call(talk):
    result = await talk(f"sleep {talk.mark} & setsid sleep {talk.mark} & echo started; (exit 3)", timeout=ENOUGH)
    assert (result.text, result.exit_code) == ("started\n", 3)
    await until(lambda: len(talk.sleepers()) == 2)
    assert await talk.text("echo next") == "next\n"


@pytest.mark.parametrize("name", [
    ".", "source", "builtin", "command", "eval", "trap", "set", "declare", "printf", "exit", "true", "wait", "unset",
    "shopt", "alias", "cd", "pwd", "test", "[", "export", "return", "echo", "exec", "read", "umask",
])  # fmt: skip
async def test_S04_functions_may_be_named_like_the_runtimes_own_words(shell, name):
    defined = await shell.run(f"function {name} {{ /bin/echo replaced; }}")
    assert (defined.output, defined.exit_code, defined.ended) == ("", 0, False)
    assert await shell.answer("/bin/echo one\n/bin/echo two; (sh -c 'exit 7')") == ("one\ntwo\n", 7)
    assert await shell.answer("/bin/echo $KEEP") == ("42\n", 0)


ENDS = [
    ("exit 3",                               3),
    ("exit",                                 0),
    ("exit 256",                             0),
    ("echo last; exit 3",                    3),
    ("(exit 5); exit",                       5),
    ("exec true",                            0),
    ("exec sh -c 'echo last; exit 5'",       5),
    pytest.param("exec nosuchprogram",       127, marks=SINCE_5_2),
    ("kill -9 $$",                           137),
    ("echo last; kill -9 $$",                137),
    ("kill -ABRT $$",                        134),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status"), ENDS)
async def test_S05_the_call_that_ends_the_shell_reports_it_with_the_status(talk, command, status):
    await talk("true")
    result = await talk(command, timeout=ENOUGH)
    assert (result.exit_code, result.failure) == (status, "exit_code" if status else None)
    assert "ended the shell" in result.text
    assert ("last" in result.text) == ("last" in command)


@pytest.mark.parametrize(("command", "status"), [("echo last; exit 3", 3), ("echo last; kill -9 $$", 137)])
async def test_S05_the_status_is_in_the_text_too_when_there_was_output(talk, command, status):
    assert str(status) in (await talk(command)).text


@pytest.mark.parametrize(("command", "status"), ENDS)
async def test_S05_the_next_call_has_a_fresh_shell_and_says_so_in_its_first_line(talk, command, status):
    before = await talk.text("echo $$")
    await talk(command, timeout=ENOUGH)
    following = await talk("echo $$", timeout=ENOUGH)
    first, second = following.text.splitlines()
    assert "fresh" in first
    assert (following.exit_code, second != before.strip()) == (0, True)
    assert await talk.text("echo after") == "after\n"


async def test_S05_the_same_in_the_words_of_a_session(shell):
    pid = shell.bash.pid
    reply = await shell.run("echo last; exit 3")
    assert (reply.output, reply.exit_code, reply.ended, reply.restarted) == ("last\n", 3, True, False)
    reply = await shell.run("echo next")
    assert (reply.output, reply.exit_code, reply.ended, reply.restarted) == ("next\n", 0, False, True)
    assert (reply.note is not None, shell.bash.pid != pid) == (True, True)
    reply = await shell.run("echo third")
    assert (reply.output, reply.restarted, reply.note) == ("third\n", False, None)


@pytest.mark.parametrize("later", [{"timeout": 0.5}, {"background": True}])
async def test_S05_a_first_call_that_does_not_end_says_so_too(talk, later):
    await talk("exit 3")
    assert "fresh" in await talk.text(f"sleep {talk.mark}", **later)


async def test_S06_the_limit_is_120_seconds(talk, conversations):
    assert inspect.signature(BashSession).parameters["timeout"].default == 120
    live = await conversations.begin({"shell_session": {"timeout_seconds": 0.5}})
    assert "within 0.5 seconds" in await live.text("sleep 60")


@pytest.mark.parametrize("command", [
    "sleep $M",
    "(sleep $M; touch never) | cat",
    "bash -c 'sleep $M; touch never'; touch never",
    "(trap '' INT; exec sleep $M)",
    "(trap '' INT TERM; sleep $M & sleep $M)",
    "setsid sleep $M & (setsid sleep $M &); nohup sleep $M >/dev/null & wait",
    "while :; do :; done",
    "while :; do sleep 0.01; done",
    "cat <(sleep $M)",
    "kill -STOP $$",
])  # fmt: skip
async def test_S06_past_its_limit_a_command_ends_with_all_its_children_and_the_session_lives_on(talk, command):
    await talk(f"export M={talk.mark}; keep=kept; f() {{ echo f; }}; cd /")
    pid = await talk.text("echo $$")
    result = await talk(f"echo so far; {command}", timeout=1)
    assert (result.failure, result.data["timedOut"], result.data["restarted"]) == ("timeout", True, False)
    assert talk.sleepers() == []
    assert await talk.text("echo $keep $PWD; f; echo $$") == f"kept /\nf\n{pid}"


@pytest.mark.parametrize("command", [
    "sleep 60",
    "sleep 60 | cat",
    "sleep 60 & wait",
    "bash -c 'sleep 60'",
    "(trap '' INT; exec sleep 60)",
    "(trap '' INT TERM; sleep 60)",
    "python3 -c 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)'",
])  # fmt: skip
async def test_S06_nothing_of_a_command_is_run_after_its_limit(talk, command):
    result = await talk(f"{command}; touch never\ntouch never", timeout=1)
    assert (result.failure, (talk.folder / "never").exists()) == ("timeout", False)


async def test_S06_it_is_interrupted_first_and_may_clean_up(talk):
    program = 'import time\ntry: print("up", flush=True); time.sleep(60)\nexcept KeyboardInterrupt: print("clean")'
    assert (await talk.text(f"python3 -c '{program}'", timeout=2)).endswith("up\nclean\n")


async def test_S06_the_result_has_what_was_printed_so_far_and_says_how_to_raise_the_limit(talk):
    result = await talk("echo so far; echo and this >&2; sleep 60", timeout=1)
    first, second, *rest = result.text.splitlines()
    assert first == "Error: command did not finish within 1 seconds"
    assert ("`timeout`" in second, "`background: true`" in second) == (True, True)
    assert rest[-2:] == ["so far", "and this"]


async def test_S06_a_call_may_raise_its_own_limit(conversations):
    live = await conversations.begin({"shell_session": {"timeout_seconds": 0.5}})
    assert await live.text("sleep 1; echo done", timeout=ENOUGH) == "done\n"


async def test_S06_what_earlier_calls_started_is_not_touched(talk):
    await talk(f"sleep {talk.mark} & setsid sleep {talk.mark} &")
    await until(lambda: len(talk.sleepers()) == 2)
    before = sorted(talk.sleepers())
    await talk("sleep 60", timeout=0.5)
    assert sorted(talk.sleepers()) == before


IMMOVABLE = "mkfifo nobody; read -r line <nobody"
"""bash itself hangs in it."""


async def test_S06_a_shell_that_cannot_be_brought_back_is_replaced_and_that_is_said(talk):
    pid = int(await talk.text("echo $$"))
    result = await talk(f"echo so far; {IMMOVABLE}", timeout=0.5)
    assert (result.failure, result.text.endswith("so far\n")) == ("timeout", True)
    assert not is_alive(pid)
    following = await talk("echo next")
    assert "fresh" in following.text.splitlines()[0]
    assert following.text.splitlines()[1:] == ["next"]
    assert "could not be brought back" in result.text + following.text


async def test_S06_only_the_call_after_it_ran_in_the_fresh_shell(shell):
    reply = await shell.run(IMMOVABLE, timeout=0.5)
    assert (reply.timed_out, reply.ended, reply.restarted) == (True, True, False)
    reply = await shell.run("true")
    assert (reply.restarted, "could not be brought back" in reply.note) == (True, True)


async def test_S07_a_command_left_running_gives_a_job_id_at_once(talk):
    result = await talk("echo begin; until [ -e go ]; do sleep 0.01; done; echo end; exit 7", background=True)
    id = result.data["job"]
    assert (result.failure, result.exit_code, f"job {id} " in result.text) == (None, None, True)
    assert await talk.text("echo beside") == "beside\n"
    (talk.folder / "go").touch()
    ended = await talk.job("wait", id=id, timeout=ENOUGH)
    assert (ended.exit_code, ended.data["running"], ended.text.endswith("begin\nend\n")) == (7, False, True)


async def test_S07_its_output_so_far_can_be_read_piece_by_piece(talk):
    steps = "for n in 1 2; do echo step $n; until [ -e go$n ]; do sleep 0.01; done; done; echo last"
    id = (await talk(steps, background=True)).data["job"]
    read = ""
    for n in (1, 2):
        while f"step {n}\n" not in read:
            await asyncio.sleep(0.01)
            read += (await talk.job("read", id=id)).text.partition("\n")[2].replace("(no output)", "")
        (talk.folder / f"go{n}").touch()
    ended = await talk.job("wait", id=id, timeout=ENOUGH)
    assert (read, ended.text.splitlines()[1:]) == ("step 1\nstep 2\n", ["last"])
    assert (await talk.job("read", id=id)).text.splitlines()[1:] == ["(no output)"]


async def test_S07_what_was_printed_before_the_read_is_read(talk):
    id = (await talk(f"echo printed; touch at; sleep {talk.mark}", background=True)).data["job"]
    wait_without_the_loop((talk.folder / "at").exists)
    assert (await talk.job("read", id=id)).text.splitlines()[1:] == ["printed"]


async def test_S07_a_job_that_has_ended_has_printed_everything(talk):
    for n in range(10):
        id = (await talk(f"echo {n}", background=True)).data["job"]
        ended = await talk.job("wait", id=id, timeout=ENOUGH)
        assert ended.text.splitlines() == [f"{id}: ended with status 0: echo {n}", str(n)]


async def test_S07_a_wait_has_its_own_limit(talk):
    id = (await talk(f"sleep {talk.mark}", background=True)).data["job"]
    assert (await talk.job("wait", id=id, timeout=0.05)).data["running"]
    assert (await talk.job("wait", timeout=0.05)).text == "no job has ended"


async def test_S07_the_first_job_to_end_can_be_waited_for(talk):
    slow = (await talk(f"sleep {talk.mark}", background=True)).data["job"]
    quick = (await talk("until [ -e go ]; do sleep 0.01; done; exit 4", background=True)).data["job"]
    waiting = asyncio.ensure_future(talk.job("wait", timeout=ENOUGH))
    await asyncio.sleep(0)
    (talk.folder / "go").touch()
    ended = await waiting
    assert (ended.data["job"], ended.exit_code, slow != quick) == (quick, 4, True)


async def test_S07_a_job_can_be_stopped_with_all_it_started(talk):
    command = f"(trap '' TERM; sleep {talk.mark}; :) & setsid sleep {talk.mark} & sleep {talk.mark}; :"
    id = (await talk(command, background=True)).data["job"]
    await until(lambda: len(talk.sleepers()) == 3)
    stopped = await talk.job("stop", id=id)
    assert (stopped.data["running"], talk.sleepers()) == (False, [])
    assert await talk.text("echo next") == "next\n"


async def test_S07_jobs_are_listed_and_an_unknown_one_is_an_error(talk):
    assert (await talk.job("list")).text == "no jobs"
    id = (await talk(f"sleep {talk.mark}", background=True)).data["job"]
    assert (await talk.job("list")).text == f"{id}: running: sleep {talk.mark}"
    result = await talk.job("read", id="no-such")
    assert (result.failure, id in result.text) == ("invalid_arguments", True)


async def test_S07_a_job_can_be_written_to(talk):
    id = (await talk('read -r line; echo "<$line>"', background=True, interactive=True)).data["job"]
    await talk.job("write", id=id, text="typed\n")
    assert (await talk.job("wait", id=id, timeout=ENOUGH)).text.endswith("<typed>\n")


async def test_S07_jobs_end_with_their_session(talk, conversations):
    await talk(f"setsid sleep {talk.mark} & sleep {talk.mark}", background=True)
    await until(lambda: len(talk.sleepers()) == 2)
    await conversations.end()
    assert talk.sleepers() == []


async def test_S07_where_it_is_configured_a_command_past_its_limit_goes_on_as_a_job(conversations):
    live = await conversations.begin({"shell_session": {"on_timeout": "background", "timeout_seconds": 0.5}})
    await live("keep=kept")
    result = await live("echo begin; until [ -e go ]; do sleep 0.01; done; echo end; exit 5")
    assert (result.failure, "begin" in result.text) == (None, True)
    assert (await live.text("echo $keep")).splitlines()[-1] == "kept"
    (live.folder / "go").touch()
    ended = await live.job("wait", id=result.data["job"], timeout=ENOUGH)
    assert (ended.exit_code, ended.text.endswith("end\n")) == (5, True)


async def test_S08_output_beyond_the_limit_keeps_head_and_tail_and_says_what_is_missing_and_where(conversations):
    live = await conversations.begin(output={"limit_bytes": 1000, "spill": True})
    result = await live("echo BEGIN; seq 5000; echo END")
    whole = "BEGIN\n" + "".join(f"{n}\n" for n in range(1, 5001)) + "END\n"
    head, _, rest = result.text.partition("\n[... ")
    said, _, tail = rest.partition(" ...]\n")
    missing = whole[len(head) : len(whole) - len(tail)]
    assert (head + missing + tail, len(head) + len(tail)) == (whole, 1000)
    kept_at = result.truncated.kept_at
    assert said == f"{len(missing)} bytes, {missing.count(chr(10))} lines left out; the whole is in {kept_at}"
    assert kept_at.read_text() == whole


async def test_S08_the_whole_is_kept_in_every_conversation_with_the_same_folder(conversations):
    first = await conversations.begin(output={"limit_bytes": 1000, "spill": True})
    second = await conversations.begin(output={"limit_bytes": 1000, "spill": True})
    kept = [(await live(f"seq {n} 5000")).truncated.kept_at for n, live in enumerate((first, second), 1)]
    assert None not in kept
    assert [path.read_text()[:2] for path in kept] == ["1\n", "2\n"]


async def test_S08_output_within_the_limit_is_whole(conversations):
    live = await conversations.begin(output={"limit_bytes": 1000, "spill": True})
    result = await live("printf 'x%.0s' {1..1000}")
    assert (result.text, result.truncated) == ("x" * 1000, None)
    assert [path for path in (live.folder / "sessions" / "outputs").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("command", "text"), [
    (r"for i in 1 50 100; do printf '\r%3d%%' $i; done; echo",      "100%\n"),
    (r"printf 'progress 1\rprogress 2\rdone      \nnext\n'",         "done      \nnext\n"),
    (r"printf '10%%\r\e[2K20%%\r\e[2K30%%\n'",                       "30%\n"),
    (r"printf '\e[1;31mred\e[0m \e]0;title\a\e[2Jplain\n'",          "red plain\n"),
    (r"printf 'a\b\bb\a\0c\n'",                                      "bc\n"),
    (r"printf 'one\r\ntwo\r\n'",                                     "one\ntwo\n"),
])  # fmt: skip
async def test_S08_the_model_sees_what_a_screen_would_show(talk, command, text):
    assert await talk.text(command) == text


async def test_S08_the_session_itself_keeps_every_byte(shell):
    assert await shell.output(r"printf '1\r2\e[0m\n'") == "1\r2\x1b[0m\n"


@pytest.mark.parametrize("command", [
    "true", "", "# only", "x=1", "exec 3>&1", ":\n:", "true >&2", "printf ''", r"printf '\e[0m'", r"printf '\a'",
])  # fmt: skip
async def test_S09_a_silent_command_says_no_output(talk, command):
    assert await talk.text(command) == "(no output)"


@pytest.mark.parametrize(("command", "status"), [("false", 1), ("(exit 7)", 7), ("exit 7", 7)])
async def test_S09_a_silent_failure_says_so_and_its_status(talk, command, status):
    text = await talk.text(command)
    assert ("(no output)" in text, f"exit code: {status}" in text) == (True, True)


async def test_S09_no_other_text_is_empty(talk):
    id = (await talk(f"sleep {talk.mark}", background=True)).data["job"]
    results = [
        await talk.job("read", id=id),
        await talk.job("list"),
        await talk.job("stop", id=id),
        await talk(f"sleep {talk.mark}", timeout=0.3),
        await talk("read x </dev/tty"),
        await talk.job("write", id="foreground", text="x\n"),
        await talk(restart=True),
        await talk.job("list"),
        await talk(),
    ]
    assert [result.text for result in results if not result.text.strip()] == []


@pytest.mark.parametrize(("timeout", "shown"), [(1, "1"), (0.5, "0.5"), (1.0, "1"), ("1", "1")])
async def test_S10_a_time_out_is_an_error_in_these_words(talk, timeout, shown):
    result = await talk("sleep 60", timeout=timeout)
    assert (result.ok, result.failure) == (False, "timeout")
    assert result.text.splitlines()[0] == f"Error: command did not finish within {shown} seconds"


@pytest.mark.parametrize(("command", "words"), [
    ("nosuchcommand",            "nosuchcommand: command not found"),
    ("nosuchcommand; echo x $(", "unexpected EOF while looking for matching `)'"),
    ("if then",                  "syntax error near unexpected token `then'"),
    ("cd /nonexistent",          "cd: /nonexistent: No such file or directory"),
    ("echo x > /nonexistent/x",  "/nonexistent/x: No such file or directory"),
    ("/etc/passwd",              "/etc/passwd: Permission denied"),
    pytest.param("exec nosuchprogram", "exec: nosuchprogram: not found", marks=SINCE_5_2),
    ("set -u; echo $nosuch",     "nosuch: unbound variable"),
])  # fmt: skip
async def test_S10_other_errors_carry_bashs_own_words(talk, command, words):
    result = await talk(command)
    assert (result.ok, result.failure) == (False, "exit_code")
    assert words in result.text
    assert "bash: " in result.text


@pytest.mark.parametrize(
    "arguments", [{"command": "a\0b"}, {"command": ["true"]}, {"command": "true", "timeout": 0}, {}]
)
async def test_S10_a_call_that_cannot_be_run_is_an_error_result(talk, arguments):
    result = await talk(**arguments)
    assert (result.ok, result.failure) == (False, "invalid_arguments")
    assert await talk.text("echo next") == "next\n"


async def test_S10_half_a_character_is_an_error_result(talk):
    result = await talk("echo \ud800")
    assert (result.ok, result.text.startswith("Error: ")) == (False, True)
    assert await talk.text("echo next") == "next\n"


async def test_S11_calls_on_one_session_queue_in_order(talk):
    calls = (talk(f"sleep 0.0{9 - n}; order+=({n}); echo {n}") for n in range(10))
    assert [result.text for result in await asyncio.gather(*calls)] == [f"{n}\n" for n in range(10)]
    assert await talk.text('echo "${order[@]}"') == "0 1 2 3 4 5 6 7 8 9\n"


async def test_S11_the_calls_of_one_turn_run_in_their_order(talk):
    calls = [ToolCall(id=str(n), name="bash", arguments={"command": f"echo {n} >>log; wc -l <log"}) for n in range(5)]
    async with asyncio.timeout(PATIENCE):
        results = await talk.app.call_tools(calls)
    assert [result.text for result in results.values()] == [f"{n}\n" for n in range(1, 6)]
    assert (talk.folder / "log").read_text().split() == ["0", "1", "2", "3", "4"]


async def test_S11_a_restart_waits_for_its_turn(talk):
    first = asyncio.ensure_future(talk("touch at; until [ -e go ]; do sleep 0.01; done; echo whole"))
    await until((talk.folder / "at").exists)
    second = asyncio.ensure_future(talk(restart=True))
    await asyncio.sleep(0.05)
    (talk.folder / "go").touch()
    assert [(await first).text, (await second).text] == ["whole\n", "Bash session restarted"]


async def test_S11_calls_on_different_sessions_run_side_by_side(conversations):
    lives = [await conversations.begin() for _ in range(4)]
    # Each waits for the one after it: one after the other they would wait for ever.
    calls = (
        live(f"touch at{n}; until [ -e at{(n + 1) % 4} ]; do sleep 0.01; done; echo {n}", timeout=ENOUGH)
        for n, live in enumerate(lives)
    )
    assert [result.text for result in await asyncio.gather(*calls)] == [f"{n}\n" for n in range(4)]


def wait_without_the_loop(claim: Callable[[], object]) -> None:
    """Let time pass of which nobody else in this process hears."""
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.01)


LINGER = (
    "sleep $M & setsid sleep $M & nohup sleep $M >/dev/null 2>&1 & ( ( sleep $M & ) & ) ; "
    "( setsid env -i /bin/sleep $M <&- >&- 2>&- & ) ; (trap '' INT TERM HUP; sleep $M & ) ; "
    "sleep $M & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!"
)
"""Seven: plain, in its own session, nohup, forked twice, a daemon, one that ignores signals, one that is stopped."""


async def test_S12_ending_the_application_leaves_nothing(talk, conversations):
    await talk(f"M={talk.mark}; export M; {LINGER}")
    await talk(f"sleep {talk.mark}", background=True)
    await until(lambda: len(talk.sleepers()) == 8)
    await conversations.end()
    assert marked(talk.mark) == []


async def test_S12_cancelling_a_call_leaves_nothing_of_it(talk):
    await talk(f"export M={talk.mark} KEEP=kept")
    running = asyncio.ensure_future(talk(f"{LINGER}; sleep $M"))
    await until(lambda: len(talk.sleepers()) == 8)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await talk.text("echo $KEEP"), talk.sleepers()) == ("kept\n", [])


async def test_S12_cancelling_the_application_leaves_nothing(console, conversations):
    async def application() -> None:
        async with conversations.yard.app("shell:session") as app:
            await app.call_tool("bash", {"command": f"export M={console.mark}; {LINGER}; sleep $M"})

    running = asyncio.ensure_future(application())
    await until(lambda: len([found for found in marked(console.mark) if "sleep" in found]) >= 8)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert marked(console.mark) == []


APPLICATION = """
import asyncio, os, sys
from toolyard.app import AgentApplication

async def main(folder, linger):
    async with AgentApplication(f"{folder}/toolyard.json", f"{folder}/sessions") as app:
        await app.call_tool("bash", {"command": linger})
        await app.call_tool("bash", {"command": "sleep $M", "background": True})
        print("ready", flush=True)
        await app.call_tool("bash", {"command": "(trap '' INT TERM HUP; sleep $M)"})

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT])
async def test_S12_killing_the_application_leaves_nothing(console, tmp_path, number):
    Yard(console.folder).config("shell:session")
    private = tmp_path / "private"
    env = os.environ | {"XDG_RUNTIME_DIR": str(private), "M": console.mark}
    program = [sys.executable, "-c", APPLICATION, str(console.folder), LINGER]
    with running(
        program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=console.folder
    ) as application:
        assert application.stdout
        assert await asyncio.to_thread(application.stdout.readline) == b"ready\n"
        await until(lambda: len([found for found in marked(console.mark) if "sleep" in found.split()[1]]) == 9)
        assert list(private.glob("toolyard-*"))
        application.send_signal(number)
        await asyncio.to_thread(application.wait, PATIENCE)
    await until(lambda: not marked(console.mark) and not list(private.iterdir()))


FORK_MANY = """
import os, time
held = []
try:
    for _ in range(200):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)
        held.append(writing)
    print("all")
except BlockingIOError:
    print("refused")
"""
"""At most two hundred processes, which end with their parent."""


@pytest.mark.parametrize(("limits", "command", "words"), [
    (Limits(cpu_seconds=1),           "sh -c 'while :; do :; done'; echo $?",                       f"{128 + 24}\n"),
    (Limits(file_bytes=5000),         "head -c 9999 /dev/zero >big; stat -c %s big",                "5000\n"),
    (Limits(open_files=40),           "/usr/bin/python3 -c 'import os\nwhile True: os.dup(0)'",     "Too many open"),
    (Limits(open_files=40),           "bash -c 'ulimit -Sn; ulimit -Hn'",                           "40\n40\n"),
])  # fmt: skip
async def test_S14_limits_hold_for_what_a_session_runs(console, limits, command, words):
    shell = await console.open_prepared(limits=limits)
    assert words in await shell.output(command, timeout=ENOUGH)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("command", ["/usr/bin/python3 greedy.py", "sh -c '/usr/bin/python3 greedy.py; exit $?'"])
async def test_S14_memory_is_limited(console, command):
    """However the machine does it: a program is told that there is no more, or it is killed."""
    (console.folder / "greedy.py").write_text("bytearray(b'x') * (600 << 20)")
    shell = await console.open_prepared(limits=Limits(memory_bytes=400 * MIB))
    assert (await shell.run(command, timeout=ENOUGH)).exit_code not in (0, None)
    assert await shell.keeps_its_state()
    free = await console.open_prepared()
    assert await free.answer(command, timeout=ENOUGH) == ("", 0)


async def test_S14_processes_are_limited(console):
    (console.folder / "many.py").write_text(FORK_MANY)
    if os.getuid() == 0:  # the kernel does not limit root, but whoever root becomes
        as_user = f"{need('setpriv')} --reuid 65534 --regid 65534 --clear-groups "
        beside = 0
    else:
        as_user = ""
        beside = sum(int(line) for line in (await console.bash_c("ps -o nlwp= -u $UID"))[0].split())
    shell = await console.open(limits=Limits(processes=beside + 50))
    assert await shell.output(f"{as_user}/usr/bin/python3 - <many.py", timeout=ENOUGH) == "refused\n"
    free = await console.open()
    assert await free.output(f"{as_user}/usr/bin/python3 - <many.py", timeout=ENOUGH) == "all\n"


async def test_S14_every_session_has_its_own_limits_and_keeps_them_in_its_next_shell(console):
    shells = [await console.open(limits=Limits(open_files=number)) for number in (40, 50, 60)]
    for _ in range(2):
        answers = await asyncio.gather(*(shell.output("ulimit -n") for shell in shells))
        assert answers == ["40\n", "50\n", "60\n"]
        await asyncio.gather(*(shell.run("exit") for shell in shells))


async def test_S14_a_command_may_have_limits_of_its_own(console):
    shell = await console.open_prepared(limits=Limits(open_files=60))
    general = await shell.output("ulimit -n; ulimit -t; ulimit -f")
    assert general == "60\nunlimited\nunlimited\n"
    narrow = Limits(open_files=40, cpu_seconds=1, file_bytes=4096)
    assert await shell.output("ulimit -n; sh -c 'ulimit -n; ulimit -f'", limits=narrow) == "40\n40\n8\n"
    busy = await shell.run("sh -c 'while :; do :; done'", limits=narrow, timeout=ENOUGH)
    assert (busy.exit_code, busy.note) == (128 + 24, "The limit of 1 s of processor time was reached.")
    many = await shell.run("yes", limits=Limits(output_bytes=5000), timeout=ENOUGH)
    assert many.note == "The output limit of 5000 bytes was reached, so the command was ended."
    assert await shell.output("ulimit -n; ulimit -t; ulimit -f") == general
    assert await shell.output("ulimit -n", limits=Limits(open_files=900)) == "60\n"
    assert await shell.keeps_its_state()


async def test_S14_a_job_keeps_its_own_limits(console):
    shell = await console.open_prepared()
    job = await shell.start_job("cat /proc/self/limits | grep 'open files'", limits=Limits(open_files=40))
    assert await shell.output("ulimit -n") != "40\n"
    await job.wait()
    assert job.read().split()[3] == "40"


@pytest.mark.parametrize(("plugin", "tool"), [("shell_session", "bash"), ("shell_command", "shell")])
async def test_S14_a_tool_may_have_limits_of_its_own(console, plugin, tool):
    own = {plugin: {"limits": {"open_files": 41}}}
    async with Yard(console.folder).app(own, limits={"open_files": 77, "cpu_seconds": 78}) as app:
        result = await app.call_tool(tool, {"command": "ulimit -n; ulimit -t"})
    assert "41\n78\n" in result.text


async def test_S14_the_tool_has_the_limits_of_its_configuration(conversations):
    live = await conversations.begin(limits={"open_files": 41, "file_bytes": 5000, "cpu_seconds": 77})
    assert await live.text("ulimit -n; ulimit -t; { (head -c 9999 /dev/zero >big); } 2>/dev/null; stat -c %s big") == (
        "41\n77\n5000\n"
    )


async def test_S14_a_command_that_prints_more_than_it_may_is_ended(conversations):
    live = await conversations.begin(limits={"output_bytes": 100_000})
    result = await live("echo begin; yes")
    assert ("100000 bytes" in result.text.splitlines()[0], result.text.splitlines()[1]) == (True, "begin")
    assert await live.text("echo next") == "next\n"


@pytest.mark.parametrize("options", [{}, {"background": True}])
async def test_S14_every_command_is_logged_before_it_runs(talk, options):
    command = "touch up; while [ ! -e go ]; do sleep 0.01; done"
    asked = asyncio.ensure_future(talk(command, **options))
    await until((talk.folder / "up").exists)
    own = [line for line in talk.yard.audit() if line.get("command") == command]
    (talk.folder / "go").touch()
    result = await asked
    if options:
        await talk.job("wait", id=result.data["job"], timeout=ENOUGH)
    assert own[0]["event"] == "start"
    assert (own[0]["tool"], own[0]["kind"], own[0]["decision"]) == ("bash", "shell_session", "allow")


async def test_S14_a_command_that_kills_everything_is_in_the_log(talk):
    await talk("kill -9 $$")
    start, end = talk.yard.audit()
    assert (start["event"], start["command"], end["event"], end["exit"]) == ("start", "kill -9 $$", "end", 137)


async def test_S14_the_log_says_where_a_command_ran(talk):
    await talk("mkdir sub; cd sub")
    await talk("true")
    assert talk.yard.audit()[-1]["cwd"] == str(talk.folder / "sub")
