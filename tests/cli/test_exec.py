"""`toolyard exec`: the one-shot shell at a prompt, transparent like the command itself, on the path of every call."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import PATIENCE, CommandLine, Terminal, is_alive, need, need_backend

SECRET = "a-value-that-opens-doors"
ENOUGH = ["--timeout", "60"]


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("echo out; echo err >&2", 0, "out\n", "err\n"),
        ("printf 'no newline'", 0, "no newline", ""),
        ("true", 0, "", ""),
        ("exit 7", 7, "", ""),
        ("kill -9 $$", 137, "", ""),
        ("cat", 0, "", ""),
        ("seq 100000 | tail -n 1; echo 'ü'", 0, "100000\nü\n", ""),
    ],
)
def test_streams_and_exit_status_are_the_commands_own(toolyard: CommandLine, command, code, out, err):
    ran = toolyard("exec", command, *ENOUGH, stdin="not for the command")
    assert (ran.code, ran.out, ran.err) == (code, out, err)


def test_a_person_is_told_when_a_file_was_moved_away(toolyard: CommandLine):
    need_backend("bubblewrap", "bubblewrap-pids")
    ran = toolyard("exec", "echo {} > toolyard.json; echo done; exit 3", *ENOUGH)
    assert (ran.code, ran.out) == (3, "done\n")
    assert "toolyard.json.from-sandbox" in ran.err


@pytest.mark.parametrize("how", ["broken", "a pipe", "a folder", "no object", "not ours to read"])
@pytest.mark.parametrize("words", [["exec", "touch made"], ["shell"]])
def test_nothing_is_run_by_rules_that_cannot_be_read(toolyard: CommandLine, how, words):
    file = toolyard.folder / "toolyard.json"
    match how:
        case "broken":
            file.write_text('{"permissions": {"deny": ["touch **"]},')
        case "a pipe":
            os.mkfifo(file)
        case "a folder":
            file.mkdir()
        case "no object":
            file.write_text("[]")
        case _:
            file.symlink_to(file)
    ran = toolyard(*words, stdin="touch made\n")
    assert (ran.code, ran.out) == (2, "")
    assert "toolyard.json" in ran.err
    assert not (toolyard.folder / "made").exists()


@pytest.mark.parametrize("given", ["1", "0.5", "1.25"])
def test_a_command_that_takes_too_long_is_ended_with_status_124(toolyard: CommandLine, given):
    ran = toolyard("exec", "exec sleep 300", "--timeout", given)
    assert (ran.code, ran.out, ran.err) == (
        124,
        "",
        f"Command timed out after {given} seconds\n  hint: give it more time with `--timeout S`\n",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing argument 'COMMAND'."),
        (["true", "more"], "unexpected extra argument"),
        (["true", "--timeout", "soon"], 'timeout: expected a number, got "soon"'),
        (["true", "--timeout", "0"], 'timeout: must be more than 0, got "0"'),
        (["true", "--timeout", "nan"], "timeout: expected a number"),
        ([b"echo \xff"], "command: it holds what is no UTF-8 text"),
    ],
)
def test_wrong_usage_is_explained_and_nothing_runs(toolyard: CommandLine, words, message):
    ran = toolyard("exec", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "start" not in [line["event"] for line in toolyard.audit()]


def test_json_is_the_record_of_the_call(toolyard: CommandLine):
    ran = toolyard("exec", "echo out; echo err >&2; exit 3", "--json", *ENOUGH)
    record = ran.json
    assert ran.code == 3
    assert record.pop("call_id").startswith("call_")
    assert record.pop("duration_ms") > 0
    context = "stdout:\nout\nstderr:\nerr\nexit code: 3"
    assert record == {
        "tool": "shell",
        "ok": True,
        "text": context,
        "failure": None,
        "exit_code": 3,
        "signal": None,
        "timed_out": False,
        "preview": "echo out; echo err >&2; exit 3",
        "bytes_out": 8,
        "truncated": None,
        "data": {"exitCode": 3, "stdout": "out\n", "stderr": "err\n", "context": context},
        "attachments": [],
    }


def test_json_of_a_time_out_has_what_was_printed_until_then(toolyard: CommandLine):
    ran = toolyard("exec", "echo so far; sleep 300", "--json", "--timeout", "3")
    assert (ran.code, ran.json["failure"], ran.json["timed_out"]) == (124, "timeout", True)
    assert ran.json["data"]["partialStdout"] == "so far\n"


def test_json_is_a_record_also_when_the_command_could_not_begin(toolyard: CommandLine):
    ran = toolyard("exec", "true", "--json", "--timeout", "-1")
    assert (ran.code, ran.json["failure"], ran.json["data"]) == (2, "invalid_arguments", None)


def test_output_appears_in_a_pipe_before_the_command_ends(toolyard: CommandLine, signpost):
    command = "echo first; read -r _ <go_on; echo second"
    with toolyard.start("exec", command, *ENOUGH, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"first\n"
        assert process.poll() is None
        signpost.go_on()
        assert process.communicate(timeout=PATIENCE) == (b"second\n", None)
    assert process.returncode == 0


def test_on_a_terminal_the_last_line_is_ended_before_anything_else_is_said(toolyard: CommandLine):
    with Terminal(toolyard, toolyard.path, "exec", "printf working; sleep 300", "--timeout", "3") as terminal:
        assert terminal.finish() == 124
    assert terminal.text.startswith("working\n")
    assert "Command timed out after 3 seconds" in terminal.text


def test_output_of_any_length_passes_whole(toolyard: CommandLine):
    toolyard.config(output={"limit_bytes": 1000})
    ran = toolyard("exec", "seq 200000", *ENOUGH)
    assert ran.out == "".join(f"{number}\n" for number in range(1, 200_001))


def test_the_record_of_long_output_is_limited_by_the_configuration(toolyard: CommandLine):
    toolyard.config(output={"limit_bytes": 1000})
    record = toolyard("exec", "seq 200000", "--json", *ENOUGH).json
    assert len(record["text"]) < 1512
    assert record["bytes_out"] == 1_288_895
    assert record["truncated"]["omitted_bytes"] == 1_288_395


@pytest.mark.parametrize("command", ["toolyard exec yes --timeout 60 | head -n 1", "toolyard exec 'echo y' | true"])
def test_a_reader_that_leaves_early_ends_the_command_without_a_complaint(toolyard: CommandLine, command):
    ran = toolyard.run(["bash", "-o", "pipefail", "-c", command])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out in ("y\n", "")


def test_a_full_disk_under_standard_output_is_an_error_in_words(toolyard: CommandLine):
    ran = toolyard.run(["sh", "-c", "toolyard exec 'yes' --timeout 60 >/dev/full"])
    assert ran.code == 2
    assert "No space left on device" in ran.err
    assert "Traceback" not in ran.err


def test_a_closed_standard_output_changes_nothing(toolyard: CommandLine):
    ran = toolyard.run(["sh", "-c", "toolyard exec 'echo out; exit 3' >&-"])
    assert (ran.code, ran.err) == (3, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_all_that_it_started(toolyard: CommandLine, number):
    command = "setsid sleep 300 & echo $$ $!; wait"
    with toolyard.start("exec", command, *ENOUGH, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.strip()) == (130, b"interrupted")
    assert [is_alive(pid) for pid in pids] == [False, False]
    assert toolyard.audit()[-1]["failure"] == "cancelled"


def test_every_command_is_recorded_before_and_after(toolyard: CommandLine):
    toolyard("exec", "exit 3")
    start, end = toolyard.audit()
    assert (start["event"], start["kind"], start["command"]) == ("start", "shell_command", "exit 3")
    assert start["cwd"] == str(toolyard.folder)
    assert (end["event"], end["failure"], end["exit"]) == ("end", None, 3)


def test_a_record_that_cannot_be_written_is_said(toolyard: CommandLine):
    ran = toolyard("--sessions", "/dev/null/sessions", "exec", "echo out")
    assert (ran.code, ran.out) == (0, "out\n")
    assert "/dev/null/sessions/audit: the audit log cannot be written: Not a directory" in ran.err


def test_a_record_that_cannot_be_written_refuses_the_command_when_policy_says_so(toolyard: CommandLine):
    toolyard.config(audit={"on_failure": "stop"})
    ran = toolyard("--sessions", "/dev/null/sessions", "exec", "touch ran")
    assert (ran.code, ran.out) == (3, "")
    assert "The call was not run: the audit log" in ran.err
    assert not (toolyard.folder / "ran").exists()


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(
    "command", ["echo $SERVICE_TOKEN", "echo $SERVICE_TOKEN >&2", "echo $SERVICE_TOKEN; sleep 300"]
)
def test_a_secret_is_nowhere_to_be_seen(toolyard: CommandLine, command, options):
    toolyard.config(policy={"pass_env": ["SERVICE_TOKEN"]})
    ran = toolyard("exec", command, "--timeout", "3", *options, env={"SERVICE_TOKEN": SECRET})
    assert "[redacted SERVICE_TOKEN]" in ran.out + ran.err
    assert SECRET not in ran.out + ran.err + str(toolyard.audit())
    assert toolyard.audit()[0]["envKeys"] == ["SERVICE_TOKEN"]


def test_credentials_do_not_reach_a_command(toolyard: CommandLine):
    ran = toolyard("exec", 'echo "${SERVICE_TOKEN-none}"', env={"SERVICE_TOKEN": SECRET})
    assert ran.out == "none\n"


def test_the_limits_of_the_configuration_hold(toolyard: CommandLine):
    toolyard.config(limits={"file_bytes": 1000})
    assert toolyard("exec", "head -c 100000 /dev/zero >big", *ENOUGH).code != 0
    assert (toolyard.folder / "big").stat().st_size == 1000


def test_a_command_runs_in_the_workspace_or_where_the_configuration_says(toolyard: CommandLine):
    (toolyard.folder / "inner").mkdir()
    assert toolyard("exec", "pwd").out == f"{toolyard.folder}\n"
    assert toolyard("--workspace", "inner", "exec", "pwd").out == f"{toolyard.folder}/inner\n"
    toolyard.config(working_directory="inner", agents={"writer": {}})
    assert toolyard("exec", "pwd").out == f"{toolyard.folder}/inner\n"


def test_errors_of_the_configuration_are_said_beside_the_output_but_warnings_are_not(toolyard: CommandLine):
    toolyard.config(output={"limit_bytes": "many"}, note="${env:NOT_SET_ANYWHERE}")
    ran = toolyard("exec", "echo out")
    assert (ran.code, ran.out) == (0, "out\n")
    assert "'output.limit_bytes'" in ran.err
    assert "NOT_SET_ANYWHERE" not in ran.err


def test_options_at_fault_keep_it_from_running_without_them(toolyard: CommandLine):
    toolyard.config({"shell_command": {"limits": {"cpu_seconds": "few"}}})
    ran = toolyard("exec", "echo ran")
    assert (ran.code, ran.out) == (1, "")
    assert "shell_command" in ran.err


def test_without_a_bash_that_is_said(toolyard: CommandLine, tmp_path: Path):
    ran = toolyard("exec", "true", env={"PATH": str(tmp_path)})
    assert (ran.code, ran.out) == (1, "")
    assert "no bash on PATH" in ran.err


@pytest.mark.parametrize(
    ("words", "completions"),
    [(["exe"], ["exec"]), (["exec", "--"], ["--timeout", "--reach", "--agent", "--json", "--help"])],
)
def test_a_shell_completes_it(toolyard: CommandLine, words, completions):
    words = ["toolyard", *words]
    env = {
        "_TOOLYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    completed = [line.partition(",")[2] for line in toolyard.run([need("toolyard")], env=env).out.splitlines()]
    assert completed == completions


def test_an_agents_rules_and_folder_are_used(toolyard: CommandLine):
    (toolyard.folder / "inner").mkdir()
    agents = {"default": {}, "other": {"working_directory": "inner", "permissions": {"deny": ["true **"]}}}
    toolyard.config(agents=agents)
    assert toolyard("exec", "true; pwd").out == f"{toolyard.folder}\n"
    assert toolyard("exec", "true; pwd", "--agent", "other").code == 3
    assert toolyard("exec", "pwd", "--agent", "other").out == f"{toolyard.folder}/inner\n"
    assert "there is no agent 'nobody'" in toolyard("exec", "true", "--agent", "nobody").err
