"""`toolyard audit`: what ran, and whether the record of it is whole."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support import CommandLine, need_backend
from toolyard.runtime.audit.chain import Head, head_path, seal


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state after three calls: one that is well, one with a status, one out of time."""
    toolyard = CommandLine(tmp_path_factory.mktemp("recorded"))
    toolyard("exec", "echo one")
    toolyard("exec", "echo two; exit 3")
    toolyard("exec", "echo three; exec sleep 60", "--timeout", "0.2")
    return toolyard.home / "state"


@pytest.fixture
def used(toolyard: CommandLine, record: Path) -> CommandLine:
    """With these calls on a record of its own."""
    shutil.copytree(record, toolyard.home / "state")
    return toolyard


def log_of(toolyard: CommandLine):
    (file,) = (toolyard.home / "state" / "toolyard" / "sessions" / "audit").iterdir()
    return file


def test_a_row_for_each_call(used: CommandLine):
    rows = used("audit", "show").out.splitlines()
    assert [row.split()[2:4] for row in rows] == [["shell", "ok"], ["shell", "exit"], ["shell", "timeout"]]
    assert [row.partition(" ms  ")[2].split()[1] for row in rows] == ["one", "two;", "three;"]


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["--failures"], ["echo two; exit 3", "echo three; exec sleep 60"]),
        (["--last", "1"], ["echo three; exec sleep 60"]),
        (["--tool", "shell", "--last", "0"], ["echo one", "echo two; exit 3", "echo three; exec sleep 60"]),
        (["--tool", "other"], []),
        (["--day", "2001-01-01"], []),
        (["--session", "no such"], []),
    ],
)
def test_filters(used: CommandLine, words, commands):
    lines = used("audit", "show", "--json", *words).out.splitlines()
    assert [record["command"] for record in map(json.loads, lines) if record["event"] == "end"] == commands


def test_a_session_by_the_beginning_of_its_name(used: CommandLine):
    first, *_ = (json.loads(line) for line in log_of(used).read_text().splitlines())
    lines = used("audit", "show", "--json", "--session", first["session"][:8]).out.splitlines()
    assert [json.loads(line)["command"] for line in lines] == ["echo one", "echo one"]
    assert json.loads(lines[0]) == first


def test_a_call_without_an_end_shows_as_started(used: CommandLine):
    lines = log_of(used).read_text().splitlines(keepends=True)
    log_of(used).write_text("".join(lines[:-1]))
    assert used("audit", "show").out.splitlines()[-1].split()[2:4] == ["shell", "start"]


def test_following_shows_what_comes_until_it_is_interrupted(used: CommandLine):
    with used.start("audit", "show", "--follow", "--json", "--last", "1", stdout=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline())["command"] == "echo three; exec sleep 60"
        used("exec", "echo four")
        assert [json.loads(process.stdout.readline())["event"] for _ in "ab"] == ["start", "end"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_day_is_a_day(toolyard: CommandLine):
    for day in ("yesterday", "2026-13-45"):
        ran = toolyard("audit", "show", "--day", day)
        assert (ran.code, "2026-01-31" in ran.err) == (2, True), day


def test_a_whole_log_is_said_to_be(used: CommandLine):
    ran = used("audit", "verify")
    last = json.loads(log_of(used).read_text().splitlines()[-1])
    assert (ran.code, ran.out) == (0, f"6 lines of 1 days are whole; the last is {last['hash']}\n")
    assert used("audit", "verify", "--json").json == {
        "whole": True,
        "lines": 6,
        "days": 1,
        "head": last["hash"],
        "starts_at_the_beginning": True,
        "broken": None,
        "gaps": [],
        "behind_head": 0,
    }


def test_a_changed_line_is_named(used: CommandLine):
    log = log_of(used)
    log.write_text(log.read_text().replace("exit 3", "exit 0", 1))
    ran = used("audit", "verify")
    assert (ran.code, ran.out, ran.err) == (1, "", f"{log}:3: it was changed after it was written\n")
    assert used("audit", "verify", "--json").json["broken"] == {
        "file": str(log),
        "line": 3,
        "reason": "it was changed after it was written",
    }


def test_before_the_first_call_there_is_nothing_to_show_and_nothing_wrong(toolyard: CommandLine):
    assert toolyard("audit", "show").out == ""
    assert toolyard("audit", "verify").code == 0


def test_a_wish_to_reach_a_host_has_a_row_of_its_own(toolyard: CommandLine):
    need_backend("bubblewrap", "bubblewrap-pids")
    toolyard.config(plugins=["shell:command"], sandbox={"hosts": ["allowed.test"]})
    ask = r"exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}; printf 'GET http://%s/ HTTP/1.1\r\n\r\n' $1 >&3; cat <&3"
    for host in ("evil.test", "allowed.test"):  # of which the second is nowhere
        toolyard("call", "shell", json.dumps({"command": ask.replace("$1", host)}))
    rows = [line.split(maxsplit=4) for line in toolyard("audit", "show").out.splitlines() if " network " in line]
    assert [row[3:] for row in rows] == [
        ["denied", "evil.test:80 (nobody is at a terminal to ask; name it in sandbox.hosts to allow it)"],
        ["denied", rows[1][4]],
    ]
    assert rows[1][4].startswith("allowed.test:80 (it cannot be found")


def test_a_line_that_the_head_does_not_know_is_named(used: CommandLine):
    log = log_of(used)
    head = head_path(log.parent)
    line, _ = seal("2026-01-02T00:00:00.000000+00:00", {"event": "forged"}, Head.read(head.read_bytes()))
    with log.open("ab") as file:
        file.write(line)
    ran = used("audit", "verify")
    assert ran.code == 1
    assert "1 line is behind the head of the log: written just before a crash, or added by somebody else" in ran.err
    log.unlink()
    head.unlink()
    ran = used("audit", "verify")
    assert (ran.code, "neither its head nor any line is there any more" in ran.err) == (1, True)
