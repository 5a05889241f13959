"""`toolyard shell`: a person or a script at the session of the tool `bash`, on the path of every call."""

from __future__ import annotations

import re
import signal
import subprocess
import termios

import pytest

from support import PATIENCE, CommandLine, Terminal, is_alive

SECRET = "a-value-that-opens-doors"
EDITING = {"TERM": "xterm"}
PROMPT = r"\$ "
EDITED_PROMPT = r"\$\x1b\[\d+D"
GOES_ON = r">[ \x08]"
"""prompt_toolkit goes to the right instead of writing the space of a prompt."""


def shell(toolyard: CommandLine, *options: str, **env: str) -> Terminal:
    """The folder is the home, so that the prompt is short enough for any terminal."""
    plain = {"HOME": str(toolyard.folder), "NO_COLOR": "1"}
    return Terminal(toolyard, toolyard.path, *options, "shell", env=plain | env)


def enter(terminal: Terminal, line: str, *, then: str) -> str:
    """Type a line at a prompt and see what comes of it, which the line itself must not look like."""
    before = len(terminal.text)
    terminal.type(line + "\r")
    return terminal.read_until(rf"(?s)^.{{{before},}}?{then}")


# --- from a pipe


@pytest.mark.parametrize(
    ("typed", "code", "out"),
    [
        ("", 0, ""),
        ("\n  \n", 0, ""),
        ("cd /\npwd\n", 0, "/\n"),
        ("pwd", 0, "{folder}\n"),
        ("x=1\nf() { echo $x; }\nf\n", 0, "1\n"),
        ("for i in 1 2\ndo\n  echo $i\n\ndone\necho 'a\nb'\n", 0, "1\n2\na\nb\n"),
        ("cat <<END\none\n\ntwo\nEND\necho a \\\nb\n# not \\\necho c\n", 0, "one\n\ntwo\na b\nc\n"),
        ("false\ntrue\n", 0, ""),
        ("true\n(exit 5)\n", 5, ""),
        ("cat\necho $?\n", 0, "0\n"),
        ("printf 'no newline'\necho; echo err >&2\n", 0, "no newline\nerr\n"),
        ("seq 200000 | tail -n 1\n", 0, "200000\n"),
    ],
)
def test_commands_from_a_pipe_run_one_after_the_other(toolyard: CommandLine, typed, code, out):
    ran = toolyard("shell", stdin=typed)
    assert (ran.code, ran.out, ran.err) == (code, out.format(folder=toolyard.folder), "")


def test_commands_from_a_file_run_too(toolyard: CommandLine):
    toolyard.file("commands", "cd /\npwd\n")
    assert toolyard.run(["sh", "-c", "toolyard shell <commands"]).out == "/\n"


def test_a_command_that_never_ends_well_is_run_as_it_is_and_bash_says_what_is_wrong(toolyard: CommandLine):
    ran = toolyard("shell", stdin='echo "open')
    assert ran.code != 0
    assert "unexpected EOF" in ran.out


def test_the_next_command_comes_only_after_the_one_before(toolyard: CommandLine):
    with toolyard.start("shell", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for word in (b"first", b"second"):
            process.stdin.write(b"echo %b\n" % word)
            process.stdin.flush()
            assert process.stdout.readline() == word + b"\n"
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_exit_ends_the_shell_of_the_session_but_not_the_program(toolyard: CommandLine):
    ran = toolyard("shell", stdin="x=kept\nexit 3\necho $x\n")
    assert (ran.code, ran.out) == (0, "kept\n")
    assert "This ended the shell" in ran.err
    assert "The shell ended with status 3; this is a fresh one" in ran.err


def test_every_command_is_recorded_and_no_secret_is_to_be_seen(toolyard: CommandLine):
    toolyard.config(policy={"pass_env": ["SERVICE_TOKEN"]})
    ran = toolyard("shell", stdin="echo $SERVICE_TOKEN\npwd\n", env={"SERVICE_TOKEN": SECRET})
    assert ran.out == f"[redacted SERVICE_TOKEN]\n{toolyard.folder}\n"
    commands = [line["command"] for line in toolyard.audit() if line["event"] == "start"]
    assert commands == ["echo $SERVICE_TOKEN", "pwd"]


def test_a_reader_that_leaves_early_ends_the_command(toolyard: CommandLine):
    ran = toolyard.run(["bash", "-c", "echo yes | toolyard shell | head -n 1; echo ${PIPESTATUS[1]}"])
    assert (ran.out, ran.err) == ("y\n0\n", "")


def test_without_a_bash_that_is_said(toolyard: CommandLine, tmp_path):
    ran = toolyard("shell", env={"PATH": str(tmp_path)})
    assert (ran.code, ran.out) == (1, "")
    assert "no bash on PATH" in ran.err


def test_it_takes_no_argument(toolyard: CommandLine):
    assert toolyard("shell", "true").code == 2


# --- on any terminal


def test_the_prompt_shows_the_directory_and_what_failed(toolyard: CommandLine):
    with shell(toolyard) as terminal:
        terminal.read_until(r"\n~ \$ $")
        enter(terminal, "mkdir in; cd in; (exit 3)", then=r"\n~/in \[3\] \$ $")
        enter(terminal, "cd /", then=r"\n/ \$ $")
        terminal.type("\x04")
        assert terminal.finish() == 0


def test_an_open_last_line_is_ended_before_the_prompt(toolyard: CommandLine):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        enter(terminal, "printf '%s' o p e n", then=rf"\nopen\n[^\n]*{PROMPT}$")


@pytest.mark.parametrize(("leave", "code"), [("\x04", 7), ("exit\r", 7)])
def test_leaving_gives_the_status_of_the_last_command(toolyard: CommandLine, leave, code):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        enter(terminal, "(exit 7)", then=r"\[7\] \$ ")
        terminal.type(leave)
        assert terminal.finish() == code


def test_exit_with_a_number_is_a_command_like_any_other(toolyard: CommandLine):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        enter(terminal, "x=kept; exit 4", then=r"This ended the shell[^\n]*\n[^\n]*\[4\] \$ ")
        enter(terminal, "echo $x$x", then=r"keptkept\nThe shell ended with status 4; this is a fresh one")


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_a_command_that_asks_gets_an_answer(toolyard: CommandLine, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        enter(terminal, "read -p 'Na''me: ' n; read -p 'A''ge: ' a; echo $a:$n", then="Name:")
        enter(terminal, "Ada", then="Age:")
        enter(terminal, "36", then=rf"36:Ada\n.*?{prompt}")
        terminal.type("\x04")
        assert terminal.finish() == 0


def screen(text: str, *, columns: int = 80) -> list[str]:
    """What a terminal shows of a text that moves its cursor."""
    lines, row, column = [""], 0, 0
    for code, number, letter, char in re.findall(r"(\x1b\[[?]?(\d*)([A-Za-z]))|([\s\S])", text):
        count = int(number or 1)
        if code:
            column += {"C": count, "D": -count}.get(letter, 0)
            row -= count if letter == "A" else 0
            if letter == "J":
                lines[row:] = [lines[row][:column]]
        elif char == "\r":
            column = 0
        elif char == "\n":
            row, column = row + 1, 0
        else:
            if column == columns:
                row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row].ljust(column)[:column] + char + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return lines


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
@pytest.mark.parametrize("length", [1, 100, 160])
def test_a_question_of_a_program_is_on_the_screen_once(toolyard: CommandLine, env, prompt, length):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        asked = f"printf before; printf '%{length}s? ' na''me; read n; echo go''t $n"
        enter(terminal, asked, then=r"name\?.*name\?" if env else r"name\?")
        enter(terminal, "Ada", then=rf"got Ada\n.*?{prompt}")
        seen = "".join(screen(terminal.text))
    assert seen.count("before") == 2, "typed, and printed"
    assert seen.count("name?") == 1
    assert seen.count("got Ada") == 1


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_an_answer_that_is_a_secret_is_not_shown_or_recorded(toolyard: CommandLine, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        enter(terminal, "read -p 'Pass''word: ' p; echo ${#p} letters", then="Password:")
        enter(terminal, "hunter22", then="8 letters")
    assert "hunter22" not in terminal.text + str(toolyard.audit())


def test_ctrl_d_ends_the_input_of_a_command_that_reads(toolyard: CommandLine):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        enter(terminal, "echo re''ady; cat; echo o''ver", then="ready\n")
        enter(terminal, "some text", then="some text\n")
        terminal.type("\x04")
        terminal.read_until("over\n")


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_ctrl_c_ends_a_command_and_nothing_else(toolyard: CommandLine, started, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        terminal.type("x=kept; sleep 300 & echo $! >pid; echo >started; wait\r")
        started.wait()
        terminal.type("\x03")
        terminal.read_until(rf"\[130\] {prompt}")
        assert not is_alive(int((toolyard.folder / "pid").read_text()))
        enter(terminal, "echo $x$x", then="keptkept\n")
        enter(terminal, "echo status=$?", then=rf"status=0\n.*?{prompt}")
        terminal.type("\x04")
        assert terminal.finish() == 0


def test_what_a_command_says_to_an_interrupt_comes_before_the_prompt(toolyard: CommandLine, started):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        terminal.type('bash -c \'trap "echo ca"ught"; exit 9" INT; echo >started; while :; do sleep 0.05; done\'\r')
        started.wait()
        terminal.type("\x03")
        terminal.read_until(r"\^C\ncaught\n[^\n]*\[130\] \$ ")
        enter(terminal, "echo status=$?", then="status=130\n")


def test_ctrl_c_ends_a_command_that_asks(toolyard: CommandLine):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        enter(terminal, "read -p 'Na''me: ' n; echo n''ever", then="Name: ")
        terminal.type("\x03")
        terminal.read_until(r"\[130\] \$ ")
        assert "never" not in terminal.text


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_ctrl_c_at_the_prompt_drops_the_line(toolyard: CommandLine, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        terminal.type("touch dropped")
        terminal.read_until("touch dropped")
        terminal.type("\x03")
        terminal.read_until(rf"(?s)dropped.*{prompt}")
        enter(terminal, "ls | wc -l", then=r"(?m:^|\x1b\[\?2004l)0\n")


@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_an_unfinished_command_goes_on_in_the_next_line(toolyard: CommandLine, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        enter(terminal, "if true", then=GOES_ON)
        enter(terminal, "then echo do''ne", then=GOES_ON)
        enter(terminal, "fi", then=rf"done\n.*?{prompt}")
        enter(terminal, "echo 'op", then=GOES_ON)
        terminal.type("\x03")
        terminal.read_until(rf"(?s)op.*>.*{prompt}")
    commands = [line["command"] for line in toolyard.audit() if line["event"] == "start"]
    assert commands == ["if true\nthen echo do''ne\nfi"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("env", "prompt"), [({}, PROMPT), (EDITING, EDITED_PROMPT)])
def test_a_signal_ends_the_program_with_everything_that_the_session_started(toolyard: CommandLine, number, env, prompt):
    with shell(toolyard, **env) as terminal:
        terminal.read_until(prompt)
        enter(terminal, "(setsid sleep 300 & echo $! >pid); echo le''ft", then=rf"(?s:left\n.*{prompt})")
        terminal.process.send_signal(number)
        assert terminal.finish() == 130
    assert not is_alive(int((toolyard.folder / "pid").read_text()))


def test_a_signal_ends_a_running_command_too(toolyard: CommandLine, started):
    with shell(toolyard) as terminal:
        terminal.read_until(PROMPT)
        terminal.type("setsid sleep 300 & echo $! >pid; echo >started; wait\r")
        started.wait()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.finish() == 130
        echoes = termios.tcgetattr(terminal._ours)[3] & termios.ECHO
    assert echoes
    assert not is_alive(int((toolyard.folder / "pid").read_text()))
    assert toolyard.audit()[-1]["failure"] == "cancelled"


# --- with editing


def test_history_is_kept_for_the_next_time_less_what_is_private(toolyard: CommandLine):
    token = "ghp_" + "a" * 30
    with shell(toolyard, SERVICE_TOKEN=SECRET, **EDITING) as terminal:
        terminal.read_until(EDITED_PROMPT)
        for number, line in enumerate(["true one", " true two", f"true {token}", f"true {SECRET}", "true 'x", "y'"]):
            enter(terminal, line, then=EDITED_PROMPT if number != 4 else GOES_ON)
        terminal.type("\x04")
        assert terminal.finish() == 0
    file = toolyard.home / "state" / "toolyard" / "sessions" / "shell-history"
    assert file.stat().st_mode & 0o777 == 0o600
    kept = [line[1:] for line in file.read_text().splitlines() if line.startswith("+")]
    assert kept == ["true one", "true [redacted SERVICE_TOKEN]", "true 'x", "y'"]
    with shell(toolyard, **EDITING) as terminal:
        terminal.read_until(EDITED_PROMPT)
        terminal.type("\x1b[A" * 4 + "; echo ag''ain\r")
        terminal.read_until("again\n")
    assert toolyard.audit()[-1]["command"] == "true one; echo ag''ain"


def test_tab_completes_files_of_the_sessions_directory_commands_and_variables(toolyard: CommandLine):
    toolyard.file("inner/my file", "what is in it\n")
    with shell(toolyard, **EDITING) as terminal:
        terminal.read_until(EDITED_PROMPT)
        enter(terminal, "cd inner; my_variable=val''ue", then=EDITED_PROMPT)
        enter(terminal, "cat my\t", then="what is in it\n")
        enter(terminal, "echo $my_v\t", then=r"(?<!val'')value\n")
        enter(terminal, "rmd\t--version", then=rf"rmdir \(.*?{EDITED_PROMPT}")
        terminal.type("\x04")
        terminal.finish()
    commands = [line["command"] for line in toolyard.audit() if line["event"] == "start"]
    assert commands[1:] == ["cat my\\ file ", "echo $my_variable", "rmdir --version"]


def test_a_history_that_cannot_be_kept_is_said_and_changes_nothing(toolyard: CommandLine):
    (toolyard.folder / "sessions" / "shell-history").mkdir(parents=True)
    with shell(toolyard, "--sessions", "sessions", **EDITING) as terminal:
        terminal.read_until("the history cannot be kept")
        terminal.read_until(EDITED_PROMPT)
        enter(terminal, "echo wo''rks", then="works\n")


def test_an_agents_own_session_and_rules_are_used(toolyard: CommandLine):
    options = {"shell_session": {"timeout_seconds": 1}}
    agents = {"default": {}, "other": {"plugins": [options], "permissions": {"deny": ["true **"]}}}
    toolyard.config(agents=agents)
    assert toolyard("shell", stdin="true; echo done\n").out == "done\n"
    ran = toolyard("shell", "--agent", "other", stdin="true; echo done\n")
    assert (ran.code, ran.out) == (3, "")
    assert "deny true **" in ran.err
    assert toolyard("shell", "--agent", "nobody", stdin="").code == 2
