"""The commands that break sessions elsewhere: each has its proper output and status here, and the session lives on."""

from __future__ import annotations

import asyncio
import os
import signal
import tracemalloc

import pytest

from console import Console, Session
from support import until
from toolyard.bash.session.command_text import MOST_INLINE

pytestmark = pytest.mark.anyio

LIMIT = 1 << 20
IMMUNE = """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


async def test_exit_code(shell: Session) -> None:
    assert await shell.answer("(exit 37)") == ("", 37)
    assert await shell.keeps_its_state()


async def test_multiline(shell: Session) -> None:
    command = "echo one\necho two\nfor i in 1 2 3\ndo\n  echo item $i\ndone"
    assert await shell.answer(command) == ("one\ntwo\nitem 1\nitem 2\nitem 3\n", 0)
    assert await shell.keeps_its_state()


async def test_heredoc(shell: Session) -> None:
    body = "a $x and `ticks` and $(more)\n\ta literal tab\n"
    assert await shell.answer(f"cat <<'EOF'\n{body}EOF") == (body, 0)
    assert await shell.keeps_its_state()


async def test_heredoc_300_lines(shell: Session) -> None:
    printable = "".join(map(chr, range(32, 127)))
    body = "".join(f"{number:03}\t{printable * 2}\n" for number in range(300))
    assert await shell.answer(f"cat > long <<'END OF IT'\n{body}END OF IT\n") == ("", 0)
    assert (shell.folder / "long").read_text() == body
    assert await shell.keeps_its_state()


async def test_line_8k(shell: Session) -> None:
    assert await shell.answer(f"echo {'x' * 8000}") == ("x" * 8000 + "\n", 0)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("done #LONG", "bash: line 1: syntax error near unexpected token `done'\nbash: line 1: `done #LONG'\n"),
        ("true\n#LONG\nfi", "bash: line 3: syntax error near unexpected token `fi'\nbash: line 3: `fi'\n"),
        ("cd /none #LONG", "bash: line 1: cd: /none: No such file or directory\n"),
        ("#LONG\ncd /none; echo $LINENO", "bash: line 2: cd: /none: No such file or directory\n2\n"),
        ("echo ${!_toolyard*} #LONG", "\n"),
    ],
)
@pytest.mark.parametrize("size", [1, MOST_INLINE])
async def test_a_long_text_is_told_of_as_a_short_one(shell: Session, text: str, said: str, size: int) -> None:
    filling = "x" * size
    output, _ = await shell.answer(text.replace("LONG", filling))
    assert output.replace("eval: ", "") == said.replace("LONG", filling)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(
    "text", ["eval 'set -n'", "eval 'set -n'; echo no", "x='set -n'; $x\necho no", "f() { set -o noexec; }; f; echo no"]
)
async def test_a_text_that_stops_bash_from_running_more_ends_as_in_bash(shell: Session, text: str) -> None:
    await shell.answer("kept=1")
    assert await shell.answer(text) == ("", 0)
    assert await shell.answer("echo $kept") == ("1\n", 0)


async def test_one_that_hides_it_ends_too_and_the_next_command_runs(shell: Session) -> None:
    reply = await shell.run("y=-n; set $y\necho no")
    assert reply.output == ""
    assert "bash has stopped running what it reads" in (reply.note or "")
    assert await shell.answer("echo on") == ("on\n", 0)


async def test_literal_tab_and_bang(shell: Session) -> None:
    assert await shell.answer("echo 'a\tb !! !x' \"c\td !! !$\"") == ("a\tb !! !x c\td !! !$\n", 0)
    assert await shell.keeps_its_state()


async def test_unclosed_quote(shell: Session) -> None:
    output, status = await shell.answer('echo "abc')
    assert (status, "unexpected EOF while looking for matching" in output) == (2, True), output
    assert await shell.keeps_its_state()


async def test_syntax_error(shell: Session) -> None:
    output, status = await shell.answer("if then fi (")
    assert (status, "syntax error near unexpected token `then'" in output) == (2, True), output
    assert await shell.keeps_its_state()


async def test_trailing_comment_bs_amp(console: Console, shell: Session) -> None:
    for command in ("echo hi # a comment", "echo hi \\", "echo hi \\\n", "sleep 9 &"):
        assert await shell.answer(command) == await console.bash_c(command)
    assert await shell.keeps_its_state()


async def test_stdin_not_eaten(shell: Session) -> None:
    assert await shell.answer('read -t 1 x\necho "$? [$x]"\necho two\necho three') == ("1 []\ntwo\nthree\n", 0)
    assert await shell.keeps_its_state()


async def test_cat_without_stdin(shell: Session) -> None:
    assert await shell.answer("cat") == ("", 0)
    assert await shell.keeps_its_state()


async def test_exit_3(shell: Session) -> None:
    reply = await shell.run("echo before; exit 3; echo never")
    assert (reply.output, reply.exit_code, reply.ended, reply.restarted) == ("before\n", 3, True, False)
    reply = await shell.run('echo "$KEEP $PWD"')
    assert (reply.output, reply.exit_code, reply.restarted) == (f"42 {shell.folder}\n", 0, True)
    assert not (await shell.run("true")).restarted


async def test_set_e(shell: Session) -> None:
    assert await shell.answer("set -e") == ("", 0)
    reply = await shell.run("echo before; false; echo never")
    assert (reply.output, reply.exit_code, reply.ended) == ("before\n", 1, True)
    reply = await shell.run('echo "$KEEP"')
    assert (reply.output, reply.exit_code, reply.restarted) == ("42\n", 0, True)


async def test_exec_replaces(shell: Session) -> None:
    reply = await shell.run("exec echo replaced")
    assert (reply.output, reply.exit_code, reply.ended) == ("replaced\n", 0, True)
    reply = await shell.run('echo "fresh$KEEP $PWD"')
    assert (reply.output, reply.exit_code, reply.restarted) == (f"fresh42 {shell.folder}\n", 0, True)


async def test_exec_redirect(shell: Session) -> None:
    assert await shell.answer("exec >file 2>&1; echo into; ls /nonexistent; (exit 5)") == ("", 5)
    assert (shell.folder / "file").read_text().startswith("into\nls: ")
    assert await shell.keeps_its_state()


async def test_bg_holds_pipe(shell: Session) -> None:
    assert await shell.answer(f"sleep {shell.mark} & echo started") == ("started\n", 0)
    assert await shell.keeps_its_state()
    await shell.until_sleepers(1)


async def test_bg_noise(shell: Session) -> None:
    await shell.run("while :; do echo noise; sleep 0.01; done &")
    for _ in range(20):
        assert await shell.answer("sleep 0.01; echo quiet") == ("quiet\n", 0)
    assert "noise\n" in shell.only_job().read()
    assert await shell.keeps_its_state()


async def test_binary(shell: Session) -> None:
    assert await shell.answer(r"printf '\xff\xfe\0\033[1m\n'; printf 'caf\xc3'") == ("��\0\x1b[1m\ncaf�", 0)
    assert await shell.keeps_its_state()


async def test_utf8(shell: Session) -> None:
    text = "äöü ✓ 日本語 😀 é"
    assert await shell.answer(f"echo '{text}'; x='{text}'; echo ${{#x}}") == (f"{text}\n{len(text)}\n", 0)
    assert await shell.keeps_its_state()


async def test_sentinel_in_output(shell: Session) -> None:
    marks = "\n".join((
        "/-/0123456789abcdef 1 0 himBH /tmp=0123456789abcdef:",
        "bash: /-/0123456789abcdef 2 0 hB /=0123456789abcdef:: No such file or directory",
        "###PS1JSON### <<exit>> EXITCODESTART0EXITCODEEND",
    ))  # fmt: skip
    assert await shell.answer(f"echo '{marks}'; echo '{marks}' >&2; (exit 9)") == (f"{marks}\n{marks}\n", 9)
    assert await shell.keeps_its_state()


async def test_env_dump(shell: Session) -> None:
    output, status = await shell.answer("env; set")
    assert (status, output.count("KEEP=42\n")) == (0, 2)
    assert await shell.keeps_its_state()


async def test_set_x_clean(shell: Session) -> None:
    assert await shell.answer("set -x") == ("", 0)
    output, status = await shell.answer("echo hi")
    assert (output.lstrip("+"), status) == (" echo hi\nhi\n", 0)
    output, status = await shell.answer("set +x")
    assert (output.lstrip("+"), status) == (" set +x\n", 0)
    assert await shell.keeps_its_state()


async def test_timeout_keeps_state(shell: Session) -> None:
    pid = shell.bash.pid
    await shell.run("f() { echo function; }; alias a='echo alias'")
    assert (await shell.past_its_limit(f"sleep {shell.mark}")).exit_code == 130
    assert await shell.answer("f; a") == ("function\nalias\n", 0)
    assert (await shell.keeps_its_state(), shell.bash.pid, shell.alive()[1:]) == (True, pid, [])


async def test_timeout_partial_out(shell: Session) -> None:
    reply = await shell.past_its_limit(f"echo first; echo second >&2; sleep {shell.mark}; echo never")
    assert (reply.output, reply.exit_code) == ("first\nsecond\n", 130)
    assert await shell.keeps_its_state()


async def test_timeout_kills_tree(shell: Session) -> None:
    inner = f"sleep {shell.mark} & (sleep {shell.mark} & sleep {shell.mark}) & sleep {shell.mark}"
    reply = await shell.past_its_limit(f"bash -c '{inner}; echo never'")
    assert ("never" in reply.output, shell.sleepers()) == (False, [])
    assert await shell.keeps_its_state()


async def test_timeout_sigint_immune(console: Console, shell: Session) -> None:
    program = console.file("immune.py", IMMUNE)
    reply = await shell.past_its_limit(f"python3 {program}", limit=2)
    assert (reply.output.startswith("ready\n"), reply.exit_code in (130, 137)) == (True, True)
    assert (await shell.keeps_its_state(), len(shell.alive())) == (True, 1)


async def test_busy_loop_in_shell(shell: Session) -> None:
    reply = await shell.past_its_limit("echo begin; while :; do :; done; echo never")
    assert (reply.output, reply.exit_code, reply.ended) == ("begin\n", 130, False)
    assert await shell.keeps_its_state()


async def test_cr_progress(shell: Session) -> None:
    assert await shell.answer(r"printf '10%%\r'; printf '100%%\r\n'") == ("10%\r100%\r\n", 0)
    assert await shell.keeps_its_state()


async def test_password_prompt(shell: Session) -> None:
    reply = await shell.run("read -rsp 'Password: ' secret </dev/tty; echo \"got $secret\"; (exit 4)")
    assert (reply.output, reply.exit_code, reply.waiting_for_input) == ("Password: ", None, True)
    reply = await shell.write("s3 cret\n")
    assert (reply.output, reply.exit_code, reply.waiting_for_input) == ("got s3 cret\n", 4, False)
    assert await shell.keeps_its_state()


async def test_fullscreen_less(shell: Session) -> None:
    lines = "".join(f"{number}\n" for number in range(1, 1001))
    assert await shell.answer("seq 1000 > long; less long") == (lines, 0)
    assert await shell.answer("less long", interactive=True) == (lines, 0)
    assert await shell.keeps_its_state()


async def test_stty_mess(shell: Session) -> None:
    assert await shell.answer("stty raw -echo </dev/tty") == ("", 0)
    assert await shell.keeps_its_state()
    assert await shell.answer("stty sane -echo </dev/tty; stty -F /dev/tty raw") == ("", 0)
    assert await shell.keeps_its_state()


async def test_huge_30MB(shell: Session) -> None:
    tracemalloc.start()
    reply = await shell.run(r"head -c 30000000 /dev/zero | tr '\0' x; echo; echo END")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (reply.exit_code, reply.output.endswith("x\nEND\n"), len(reply.output) < LIMIT + 200) == (0, True, True)
    assert reply.truncated
    assert LIMIT + reply.truncated.omitted_bytes == 30_000_005
    assert peak < 16 * LIMIT
    assert await shell.keeps_its_state()


async def test_lines_1M_tail(shell: Session) -> None:
    reply = await shell.run("seq 1000000")
    assert reply.output.startswith("1\n2\n")
    assert reply.output.endswith("\n999999\n1000000\n")
    assert reply.exit_code == 0
    assert reply.truncated
    assert reply.truncated.omitted_lines > 500_000
    assert await shell.keeps_its_state()


async def test_alias_func_cwd_env(shell: Session) -> None:
    await shell.run("alias hi='echo hello'; f() { echo \"f $1\"; }; mkdir sub; cd sub")
    await shell.run("export E=exported; declare -A map=([key]='a value'); list=(1 '2 3')")
    assert await shell.answer("hi there; f x; bash -c 'echo $E'") == ("hello there\nf x\nexported\n", 0)
    assert await shell.answer('echo "${map[key]} ${#list[@]} ${PWD##*/}"') == ("a value 2 sub\n", 0)
    assert await shell.keeps_its_state()


async def test_prompt_vars_overridden(shell: Session) -> None:
    command = (
        "PS0='zero $(echo x)' PS1='$(echo one) \\w $ ' PS2='two> ' PS4='four ' PROMPT_COMMAND='echo command; false'"
    )
    assert await shell.answer(command) == ("", 0)
    assert await shell.answer("echo a\necho b") == ("a\nb\n", 0)
    assert await shell.answer("(exit 6)") == ("", 6)
    assert await shell.keeps_its_state()


async def test_builtins_shadowed(shell: Session) -> None:
    await shell.run("echo() { builtin echo fake; }; printf() { return 9; }; test() { return 8; }")
    assert await shell.answer("echo hi; printf x; builtin echo $?; test 1") == ("fake\n9\n", 8)
    assert await shell.answer("builtin echo $KEEP") == ("42\n", 0)


async def test_killed_outside(shell: Session) -> None:
    assert shell.bash.pid
    os.kill(shell.bash.pid, signal.SIGKILL)
    await until(lambda: not shell.alive())
    reply = await shell.run('echo "fresh$KEEP $PWD"')
    assert (reply.output, reply.exit_code, reply.restarted) == (f"fresh {shell.folder}\n", 0, True)


async def test_concurrent(shell: Session) -> None:
    first, second = await asyncio.gather(
        shell.answer("echo a; x=first; sleep 0.2; echo b; (exit 1)"), shell.answer("echo c; echo $x; (exit 2)")
    )
    assert (first, second) == (("a\nb\n", 1), ("c\nfirst\n", 2))
    assert await shell.keeps_its_state()


async def test_bg_job_survives_timeout(shell: Session) -> None:
    await shell.run(f"sleep {shell.mark} & sleep {shell.mark} >/dev/null 2>&1 &")
    server = await shell.until_sleepers(2)
    await shell.past_its_limit("sleep 30")
    assert shell.sleepers() == server
    assert await shell.keeps_its_state()
    assert await shell.answer("kill %1 %2") == ("", 0)


async def test_stderr_in_order(shell: Session) -> None:
    lines = "".join(f"out {number}\nerr {number}\n" for number in range(100))
    assert await shell.answer("for i in {0..99}; do echo out $i; echo err $i >&2; done") == (lines, 0)
    program = "import os\nfor i in range(100): os.write(1, b'out %d\\n' % i); os.write(2, b'err %d\\n' % i)"
    assert await shell.answer(f'python3 -c "{program}"') == (lines, 0)
    assert await shell.keeps_its_state()


async def test_close_kills_bg(shell: Session) -> None:
    await shell.run(f"sleep {shell.mark} & setsid sleep {shell.mark} & nohup sleep {shell.mark} >/dev/null 2>&1 &")
    await shell.run(f"( setsid env -i /bin/sleep {shell.mark} <&- >&- 2>&- & ); disown -a")
    await shell.until_sleepers(4)
    await shell.close()
    assert shell.alive() == []
