"""Forty-one awkward commands, and what must come of each in a fresh session."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import resident_mib
from benchmarks.shell_answers import Answer, Session
from benchmarks.shell_processes import MARK, running
from benchmarks.shell_sessions import Contestant, both

SOON = 5.0
"""How long a command that should return at once may take."""
LIMIT = 1.0
"""The time limit of the commands that run past it."""
LINE = "the quick brown fox jumps over the lazy dog, again and again and again and again"
MOST_MIB = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a case works with."""

    session: Session
    contestant: Contestant
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "file"

    async def run(self, command: str, timeout: float = 10.0) -> Answer:
        return await self.session.run(command, timeout)

    async def prints(self, command: str, *expected: str, timeout: float = 10.0) -> bool:
        """All of it, in any place: what a terminal adds around it is forgiven."""
        answer = await self.run(command, timeout)
        return not answer.timed_out and all(text in answer.output for text in expected)

    def has_status(self, answer: Answer, code: int) -> bool:
        """Who tells no status at all loses `exit_code` only."""
        return not answer.timed_out and (answer.exit_code == code or not self.contestant.tells_status)

    async def refuses(self, command: str) -> bool:
        answer = await self.run(command, SOON)
        failed = bool(answer.error) or answer.exit_code != 0
        return failed and not answer.timed_out

    async def lives_on(self) -> bool:
        """The session still knows what it was told; who keeps nothing is excused."""
        if not self.contestant.persistent:
            return True
        answer = await self.run("echo $KEEP")
        written = self.file.read_text() if self.file.exists() else ""
        return "42" in answer.output + written

    async def left(self, *words: str, wanted: int = 0) -> bool:
        """Whether that many of these processes run, if not now then soon."""
        for _ in range(30):
            if len(running(os.environ[MARK], *words)) == wanted:
                return True
            await asyncio.sleep(0.1)
        return False


Case = Callable[[Bench], Awaitable[bool]]
CASES: dict[str, Case] = {}
ENDS_SHELL = {"exit_3", "set_e", "exec_replaces", "killed_outside", "close_kills_bg"}
"""After these the session need not know what it was told before."""


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


@case
async def exit_code(bench: Bench) -> bool:
    return (await bench.run("(exit 37)")).exit_code == 37


@case
async def multiline(bench: Bench) -> bool:
    text = "echo one\necho two\nfor name in a b\ndo\n  echo loop-$name\ndone"
    return await bench.prints(text, "one", "two", "loop-a", "loop-b")


@case
async def heredoc(bench: Bench) -> bool:
    answer = await bench.run("cat <<'EOF'\n$x `date`\tend\nEOF\n")
    return not answer.timed_out and re.search(r"(?m)^\$x `date`\s+end", answer.output) is not None


@case
async def heredoc_300_lines(bench: Bench) -> bool:
    text = "".join(f"{number} {LINE}\n" for number in range(300))
    await bench.run(f"cat > {bench.folder}/long <<'EOF'\n{text}EOF\n")
    await bench.run("true")
    written = bench.folder / "long"
    return written.exists() and written.read_text() == text


@case
async def line_8k(bench: Bench) -> bool:
    return await bench.prints(f"echo {'x' * 8000} | wc -c", "8001")


@case
async def literal_tab_and_bang(bench: Bench) -> bool:
    return await bench.prints("printf %s \"a\tb!!\" 'c!!' | od -An -tx1", "61 09 62 21 21 63 21 21")


@case
async def unclosed_quote(bench: Bench) -> bool:
    return await bench.refuses('echo "abc')


@case
async def syntax_error(bench: Bench) -> bool:
    return await bench.refuses("if then fi (")


@case
async def trailing_comment_bs_amp(bench: Bench) -> bool:
    return (
        await bench.prints("echo with # a comment", "with", timeout=SOON)
        and await bench.prints("echo back \\", "back", timeout=SOON)
        and await bench.prints("sleep 0.1 &", timeout=SOON)
    )


@case
async def stdin_not_eaten(bench: Bench) -> bool:
    return await bench.prints("read -t 1 x\necho se''cond\necho th''ird", "second", "third")


@case
async def cat_without_stdin(bench: Bench) -> bool:
    await bench.run("cat", LIMIT)
    return True


@case
async def exit_3(bench: Bench) -> bool:
    ended = await bench.run("exit 3", SOON)
    return reported(bench, ended, 3) and await bench.prints("echo ne''xt", "next")


@case
async def set_e(bench: Bench) -> bool:
    await bench.run("set -e", SOON)
    ended = await bench.run("false", SOON)
    return reported(bench, ended, 1) and await bench.prints("echo ne''xt", "next")


def reported(bench: Bench, ended: Answer, code: int) -> bool:
    """With its status, or by the error that a peer raises for it."""
    return bool(ended.error) or bench.has_status(ended, code)


@case
async def exec_replaces(bench: Bench) -> bool:
    return await bench.prints("exec echo repl''aced", "replaced") and await bench.prints("echo ne''xt", "next")


@case
async def exec_redirect(bench: Bench) -> bool:
    await bench.run(f"exec >{bench.file}", SOON)
    return bench.has_status(await bench.run("(exit 5)", SOON), 5)


@case
async def bg_holds_pipe(bench: Bench) -> bool:
    return await bench.prints("sleep 9 & echo star''ted", "started", timeout=SOON)


@case
async def bg_noise(bench: Bench) -> bool:
    await bench.run("(for i in 1 2 3 4 5 6 7 8 9; do echo noise; sleep 0.1; done) &", SOON)
    return await bench.prints("echo af''ter", "after", timeout=SOON)


@case
async def binary(bench: Bench) -> bool:
    return await bench.prints(r"printf '\377\000\033[1mo''k\n'", "ok")


@case
async def utf8(bench: Bench) -> bool:
    return await bench.prints("printf '%s\\n' äö''ü 日''本 🎉''.", "äöü", "日本", "🎉.")


@case
async def sentinel_in_output(bench: Bench) -> bool:
    return await bench.prints(f"printf '%s\\n' '{bench.session.mark}'; sleep 0.5; echo re''al", "real")


@case
async def env_dump(bench: Bench) -> bool:
    answer = await bench.run("env; set")
    return bench.has_status(answer, 0) and ("KEEP=42" in answer.output or not bench.contestant.persistent)


@case
async def set_x_clean(bench: Bench) -> bool:
    await bench.run("set -x")
    answer = await bench.run("echo traced")
    traces = [line for line in answer.output.splitlines() if line.startswith("+")]
    return "traced" in answer.output and all("echo traced" in line for line in traces)


@case
async def timeout_keeps_state(bench: Bench) -> bool:
    await bench.run("X=1")
    await bench.run("sleep 30", LIMIT)
    return await bench.prints("echo $X-$KEEP", "1-42")


@case
async def timeout_partial_out(bench: Bench) -> bool:
    return "before" in (await bench.run("echo be''fore; sleep 30", LIMIT)).output


@case
async def timeout_kills_tree(bench: Bench) -> bool:
    await bench.run("bash -c 'sleep 4321 & sleep 4322; true'", LIMIT)
    return await bench.left("sleep", "4321") and await bench.left("sleep", "4322")


@case
async def timeout_sigint_immune(bench: Bench) -> bool:
    script = 'trap "" INT TERM; while :; do sleep 0.1; done'
    await bench.run(f"bash -c '{script}'", LIMIT)
    return await bench.left("bash", "-c", script)


@case
async def busy_loop_in_shell(bench: Bench) -> bool:
    await bench.run("while :; do :; done", LIMIT)
    return True


@case
async def cr_progress(bench: Bench) -> bool:
    return await bench.prints(r"printf '10%%\r50%%\r100%%\n'", "100%")


@case
async def password_prompt(bench: Bench) -> bool:
    answer = await bench.session.converse('read -rsp "Password: " p; echo "got:$p"', "Password:", "geheim")
    return "got:geheim" in answer.output


@case
async def fullscreen_less(bench: Bench) -> bool:
    await bench.run(f"seq 5000 >{bench.folder}/long; less {bench.folder}/long", LIMIT)
    return True


@case
async def stty_mess(bench: Bench) -> bool:
    await bench.run("stty raw 2>/dev/null </dev/tty", SOON)
    return True


@case
async def huge_30MB(bench: Bench) -> bool:
    before = resident_mib()
    text = "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo The''End"
    return await bench.prints(text, "TheEnd", timeout=20) and resident_mib() - before < MOST_MIB


@case
async def lines_1M_tail(bench: Bench) -> bool:
    before = resident_mib()
    return await bench.prints("seq 1000000", "999999", timeout=20) and resident_mib() - before < MOST_MIB


@case
async def alias_func_cwd_env(bench: Bench) -> bool:
    await bench.run("alias hi='echo ali''ased'")
    await bench.run("f() { echo fu''nc; }; cd /usr; export E=1; declare -A m=([k]=v)")
    return await bench.prints("hi; f; pwd; echo $E-${m[k]}", "aliased", "func", "/usr", "1-v")


@case
async def prompt_vars_overridden(bench: Bench) -> bool:
    await bench.run("PS1='$ '; PS2='> '; PROMPT_COMMAND='echo pc'", SOON)
    return await bench.prints("echo st''ill", "still", timeout=SOON)


@case
async def builtins_shadowed(bench: Bench) -> bool:
    await bench.run("echo() { :; }; printf() { :; }; test() { return 1; }", SOON)
    good = bench.has_status(await bench.run("(exit 4)", SOON), 4)
    await bench.run("unset -f echo printf test", SOON)
    return good


@case
async def killed_outside(bench: Bench) -> bool:
    found = re.search(r"pid:(\d+)", (await bench.run("echo pid:$$")).output)
    if not found or not bench.contestant.persistent:
        return False
    os.kill(int(found[1]), signal.SIGKILL)
    await asyncio.sleep(0.2)
    return await bench.prints("echo fr''esh", "fresh") or await bench.prints("echo fr''esh", "fresh")


@case
async def concurrent(bench: Bench) -> bool:
    first, second = await both(
        bench.session,
        "sleep 0.3; echo A''1; sleep 0.3; echo A''2",
        "sleep 0.3; echo B''1; sleep 0.3; echo B''2",
    )
    mine = all(text in first.output for text in ("A1", "A2")) and all(text in second.output for text in ("B1", "B2"))
    return mine and "B1" not in first.output and "A2" not in second.output


@case
async def bg_job_survives_timeout(bench: Bench) -> bool:
    await bench.run("sleep 4323 >/dev/null 2>&1 &", SOON)
    await bench.run("sleep 30", LIMIT)
    return await bench.left("sleep", "4323", wanted=1)


@case
async def stderr_in_order(bench: Bench) -> bool:
    answer = await bench.run("echo o''1; echo e''1 >&2; echo o''2; echo e''2 >&2")
    return re.search(r"o1\s+e1\s+o2\s+e2", answer.output) is not None


@case
async def close_kills_bg(bench: Bench) -> bool:
    await bench.run("sleep 4324 >/dev/null 2>&1 &", SOON)
    await bench.run("setsid sleep 4325 >/dev/null 2>&1 &", SOON)
    await bench.session.close()
    return await bench.left("sleep", "4324") and await bench.left("sleep", "4325")


async def try_case(name: str, contestant: Contestant) -> str:
    """Empty when it passes, else why not."""
    session = contestant.make()
    await session.open()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(session=session, contestant=contestant, folder=Path(folder))
        await bench.run("cd /tmp; export KEEP=42")
        started = time.monotonic()
        if not await CASES[name](bench):
            return f"wrong, after {time.monotonic() - started:.1f} s"
        if name not in ENDS_SHELL and not await bench.lives_on():
            return "the session is lost"
    if name != "close_kills_bg":
        await session.close()
    return ""
