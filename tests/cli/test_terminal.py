"""On a terminal: output as it comes and once, colour unless it is unwanted, and none of that in a pipe."""

from __future__ import annotations

import sys

import pytest

from support import CommandLine, Terminal
from toolyard.cli import render
from toolyard.cli.render import show_note
from yard import script


@pytest.fixture
def probe(toolyard: CommandLine):
    """Runs a script as a tool on a terminal."""

    def start(run: str, *options: str, env=None, policy=None, settings=None, cases="") -> Terminal:
        toolyard.file("probe.bash", script("probe", run=run, cases=cases))
        toolyard.config("bash:probe.bash", policy=policy, **(settings or {}))
        return Terminal(toolyard, toolyard.path, "call", "probe", *options, env=env)

    return start


def test_partial_output_appears_before_the_tool_ends_and_the_final_text_is_not_repeated(probe, signpost):
    with probe("echo first; read -r _ <go_on; echo second") as terminal:
        assert terminal.read_until("first") == "first\n"
        assert terminal.process.poll() is None
        signpost.go_on()
        assert terminal.finish() == 0
    assert terminal.text == "first\nsecond\n"


def test_a_character_that_comes_in_two_pieces_is_shown_whole(probe, signpost):
    with probe(r"printf 'a\303'; read -r _ <go_on; printf '\274b'") as terminal:
        terminal.read_until("a")
        signpost.go_on()
        assert terminal.finish() == 0
    assert terminal.text == "aüb\n"


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ("printf 'no newline'", "no newline\n"),
        ("printf 'one\n'", "one\n"),
        ("true", ""),
        ("echo hidden >&2; echo shown", "shown\n"),
    ],
)
def test_the_last_line_is_ended_once(probe, run, shown):
    with probe(run) as terminal:
        assert terminal.finish() == 0
    assert terminal.text == shown


def test_what_a_failure_says_follows_what_was_printed_before(probe):
    with probe("printf working; exit 3", cases="error) echo 'try again' ;;") as terminal:
        assert terminal.finish() == 1
    assert terminal.text == "working\ntry again\n"


def test_output_too_long_for_a_result_is_shown_whole_and_not_again_in_its_short_form(probe):
    with probe("seq 1000", settings={"output": {"limit_bytes": 100}}) as terminal:
        assert terminal.finish() == 0
    *lines, note = terminal.text.splitlines()
    assert lines == [str(number) for number in range(1, 1001)]
    assert "without 3793 bytes" in note


def test_standard_error_appears_when_the_policy_streams_it(probe, signpost):
    with probe("echo careful >&2; read -r _ <go_on; echo done", policy={"bash_stream_stderr": True}) as terminal:
        terminal.read_until("careful")
        signpost.go_on()
        assert terminal.finish() == 0
    assert terminal.text.count("careful") == 1


def test_json_on_a_terminal_is_only_the_record(probe):
    with probe("echo once", "--json", cases="preview) echo shown ;;") as terminal:
        assert terminal.finish() == 0
    assert terminal.text.startswith("{\n")
    assert terminal.text.endswith("}\n")


def test_a_preview_precedes_the_output(probe):
    with probe("echo done", cases="preview) echo 'about to' ;;", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.finish() == 0
    assert terminal.text == "about to\ndone\n"


@pytest.mark.parametrize(
    ("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_colour_is_for_terminals_and_not_against_no_color(toolyard: CommandLine, env, coloured):
    with Terminal(toolyard, toolyard.path, "call", "nonsense", env={"TERM": "xterm"} | env) as terminal:
        assert terminal.finish() == 2
    assert ("\x1b[" in terminal.text) == coloured


def test_there_is_no_colour_in_a_pipe(toolyard: CommandLine):
    assert "\x1b[" not in toolyard("call", "nonsense", env={"TERM": "xterm"}).err


def test_findings_are_coloured_by_their_weight_on_a_terminal_only(toolyard: CommandLine):
    file = toolyard.file("probe.bash", "exit 3\n")
    with Terminal(toolyard, toolyard.path, "tool", "check", file, env={"TERM": "xterm"}) as terminal:
        assert terminal.finish() == 1
    assert "\x1b[31mprobe.bash:1: error:" in terminal.text
    assert "\x1b[33mprobe.bash:1: warning:" in terminal.text
    assert "\x1b[" not in toolyard("tool", "check", file).out


def test_a_notice_that_is_longer_than_a_line_breaks_between_words(monkeypatch, capsys):
    sentence = "the session goes on in the folder where it was, and what was asked waits for an answer"
    show_note(sentence, hint=f"in a pipe {sentence}")
    assert capsys.readouterr().err.splitlines() == [sentence, f"  hint: in a pipe {sentence}"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(render, "terminal_width", lambda: 30)
    show_note(sentence)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(len(line) < 30 for line in lines)
    assert " ".join(" ".join(lines).split()) == sentence
    show_note(f"  {sentence}")
    assert capsys.readouterr().err == f"  {sentence}\n", "what is set in is to be copied"
