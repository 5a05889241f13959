"""However a command is interrupted, its tool's processes are gone when it has ended."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from support import PATIENCE, CommandLine, Signpost, Terminal, is_alive, running
from yard import script

# A tool with a child, a child that has left its group, and a grandchild; the last line is never reached.
LINGER = """
    sleep 300 & echo $! >>pids
    setsid sleep 300 & echo $! >>pids
    (sleep 300 & echo $! >>pids)
    echo $$ >>pids
    echo started >started
    wait
    touch finished
"""


def pids_of(toolyard: CommandLine) -> list[int]:
    return [int(line) for line in (toolyard.folder / "pids").read_text().split()]


def assert_all_gone(toolyard: CommandLine) -> None:
    pids = pids_of(toolyard)
    assert len(pids) == 4
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not (toolyard.folder / "finished").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_call_ends_its_processes_and_is_recorded(toolyard: CommandLine, started, number):
    toolyard.file("probe.bash", script("probe", run=LINGER))
    toolyard.config("bash:probe.bash")
    with toolyard.start("call", "probe", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.wait()
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.strip()) == (130, b"", b"interrupted")
    assert_all_gone(toolyard)
    assert [(line["event"], line.get("failure")) for line in toolyard.audit()] == [
        ("start", None),
        ("end", "cancelled"),
    ]


@pytest.mark.parametrize("words", [["tools"], ["call", "probe"], ["tool", "check", "probe.bash"]])
def test_a_signal_while_tools_are_read_ends_their_processes(toolyard: CommandLine, started, words):
    toolyard.file("probe.bash", LINGER)
    toolyard.config("bash:probe.bash", sandbox={"mode": "off"})  # in which nothing that is read could write its pids
    with toolyard.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.wait()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert_all_gone(toolyard)


def test_a_signal_during_tests_ends_their_processes(toolyard: CommandLine, started):
    linger = f"cd {toolyard.folder}; {LINGER}"
    toolyard.file("probe.bash", script("probe", run=linger))
    toolyard.file("tests/probe.json", '[{"arguments": {}}]')
    with toolyard.start("tool", "test", "probe.bash", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.wait()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert_all_gone(toolyard)
    assert not list(toolyard.folder.parent.glob("toolyard-case-*"))


def test_ctrl_c_on_a_terminal_ends_the_call_after_what_was_printed(toolyard: CommandLine, started):
    toolyard.file("probe.bash", script("probe", run="echo so far" + LINGER))
    toolyard.config("bash:probe.bash")
    with Terminal(toolyard, toolyard.path, "call", "probe") as terminal:
        started.wait()
        terminal.read_until("so far")
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert terminal.text.startswith("so far\n")
    assert terminal.text.endswith("interrupted\n")
    assert_all_gone(toolyard)


def test_ctrl_c_that_also_ends_the_reader_of_a_pipeline_makes_no_noise(toolyard: CommandLine, started):
    toolyard.file("probe.bash", script("probe", run=LINGER))
    toolyard.config("bash:probe.bash")
    pipeline = "toolyard call probe 2>&1 | cat; echo ${PIPESTATUS[0]} >status"
    with Terminal(toolyard, "/usr/bin/env", "bash", "-c", f"trap : INT; {pipeline}") as terminal:
        started.wait()
        terminal.type("\x03")
        terminal.finish()
    assert "Traceback" not in terminal.text
    assert (toolyard.folder / "status").read_text() == "130\n"
    assert_all_gone(toolyard)


def test_a_second_ctrl_c_leaves_nothing_behind_either(toolyard: CommandLine, started):
    toolyard.file("probe.bash", script("probe", run="trap '' INT TERM HUP;" + LINGER))
    toolyard.config("bash:probe.bash")
    with toolyard.start("call", "probe", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.wait()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert_all_gone(toolyard)


@pytest.mark.parametrize("ignoring", ["", "trap '' INT TERM HUP;"])
def test_signals_at_every_moment_of_the_end_change_nothing_about_it(toolyard: CommandLine, started, ignoring):
    toolyard.file("probe.bash", script("probe", run=ignoring + LINGER))
    toolyard.config("bash:probe.bash")
    with toolyard.start("call", "probe", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.wait()
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
            time.sleep(0.0003)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.strip()) == (130, b"interrupted")
    assert_all_gone(toolyard)


def test_a_hangup_that_nohup_ignores_is_ignored(toolyard: CommandLine, started):
    go_on = Signpost(toolyard.folder / "go_on")
    toolyard.file("probe.bash", script("probe", run="echo started >started; read -r _ <go_on; echo done"))
    toolyard.config("bash:probe.bash")
    argv = ["sh", "-c", "trap '' HUP; exec toolyard call probe"]
    with running(argv, env=toolyard.env, cwd=toolyard.folder, stdout=subprocess.PIPE) as process:
        started.wait()
        process.send_signal(signal.SIGHUP)
        go_on.go_on()
        out, _ = process.communicate(timeout=PATIENCE)
    go_on.close()
    assert (process.returncode, out) == (0, b"done\n")


STUBBORN = """
import asyncio, sys, threading
from toolyard.cli import running

async def work():
    print("ready", flush=True)
    if sys.argv[1] == "thread":
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
        return 0
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", flush=True)

running.PATIENCE = 0.2
running.run_to_end(work())
"""


@pytest.mark.parametrize("left", ["thread", "task"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_program_whatever_holds_it_up(tmp_path, left, number):
    """A thread that `asyncio.run` waits for at its end, or work that does not mind being cancelled."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    argv = [sys.executable, str(tmp_path / "stubborn.py"), left]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        process.kill()
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_turn_ends_it_and_the_last_line_says_so(toolyard: CommandLine, number):
    call = {"id": "1", "name": "bash", "arguments": {"command": "echo begun; sleep 300"}}
    toolyard.file("answers.jsonl", json.dumps({"calls": [call]}))
    settings = {"provider": "replay", "replay": "${env:CONFIG_DIR}/answers.jsonl"}
    toolyard.config("shell:session", "path:${env:BUILTIN_PLUGINS}/replay", **settings)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with toolyard.start("chat", "-p", "go", "--json", **pipes) as process, killed_late(process):
        assert process.stdout
        for line in process.stdout:
            if b"begun" in line and json.loads(line)["type"] == "output_chunk":
                break
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    told = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 130
    assert [(one["type"], one.get("outcome")) for one in told[-2:]] == [("result", None), ("turn_ended", "interrupted")]


@contextlib.contextmanager
def killed_late(process):
    """Ends a process that takes longer than any should."""
    watch = threading.Timer(PATIENCE, process.kill)
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
