"""`toolyard chat` as a person has it, in a terminal that is drawn."""

from __future__ import annotations

import json
import re
import signal

import pytest

from chat_terminal import Chat, Model, runs, says, stalls
from fake_model_server import Reply
from support import CommandLine, Terminal

ASK = {"permissions": {"preset": "ask-everything"}}
READY = "default ·"
MARKDOWN = "# Plan\n\nSome *words* and `code`.\n\n- one\n- two\n\n```python\nprint('hello')\n```\n"


def last_results(model: Model) -> list[str]:
    """What the model was told of its calls in the last request."""
    return [one["content"] for one in model.asked()[-1]["messages"] if one["role"] == "tool"]


def test_an_answer_is_drawn_as_markdown_and_a_call_by_its_tail(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("seq 1 20", text=MARKDOWN), says("All **done**."))
    terminal = chat()
    terminal.until(READY)
    terminal.line("count to twenty")
    seen = terminal.until("All done.", " out")
    assert "> count to twenty" in seen
    assert " • one\n • two" in seen
    assert "  print('hello')" in seen
    assert "● bash" in seen
    assert "… 14 lines above" in seen
    assert "  │ 20\n  └ done" in seen
    assert "**" not in seen
    terminal.key("C-d")
    assert terminal.left()


def test_a_prompt_on_the_command_line_is_the_first_thing_said(chat: Chat, model: Model):
    model.script(says("Hello back."))
    terminal = chat("hello there")
    terminal.until("> hello there", "Hello back.")
    assert model.asked()[0]["messages"][-1]["content"] == "hello there"


def test_what_runs_is_shown_while_it_runs(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("echo so far; while [ ! -e go_on ]; do sleep 0.1; done; echo over"), says("Good."))
    terminal = chat("go")
    seen = terminal.until("  │ so far")
    assert re.search(r"● bash .*\(\d+ s\)", seen)
    assert re.search(r"… \d+ s \(Ctrl-C ends the turn\)", seen)
    (toolyard.folder / "go_on").touch()
    terminal.until("  │ over", "Good.")


@pytest.mark.parametrize(
    ("answer", "ran", "told"),
    [
        ("y", True, "made"),
        ("n", False, "refused at the terminal"),
        ("not today", False, "refused at the terminal: not today"),
    ],
)
def test_a_question_is_answered_at_the_prompt(chat: Chat, model: Model, toolyard: CommandLine, answer, ran, told):
    model.script(runs("touch made && echo made"), says("Fine."))
    terminal = chat("go", **ASK)
    seen = terminal.until("Allow?")
    assert "touch made && echo made" in seen
    assert "reach work" in seen
    terminal.line(answer)
    terminal.until("Fine.")
    assert (toolyard.folder / "made").exists() is ran
    assert told in last_results(model)[0]


@pytest.mark.parametrize(("answer", "again"), [("s", False), ("a", False), ("y", True)])
def test_a_yes_holds_as_long_as_it_was_meant_to(chat: Chat, model: Model, answer, again):
    model.script(runs("date +%Y"), runs("date +%Y", id="c2"), says("Fine."))
    terminal = chat("go", **ASK)
    assert "always would save: date" in terminal.until("Allow?")
    terminal.line(answer)
    if again:
        terminal.until("wants to run:", count=2)
        terminal.line("y")
    seen = terminal.until("Fine.")
    assert seen.count("wants to run:") == (2 if again else 1)


def test_a_call_can_be_changed_before_it_runs(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("touch wrong"), says("Fine."))
    terminal = chat("go", **ASK)
    terminal.until("Allow?")
    terminal.line("e")
    terminal.until("instead: touch wrong")
    terminal.key(*["BSpace"] * len("wrong"))
    terminal.line("right")
    terminal.until("wants to run:\n  touch right")
    terminal.line("y")
    terminal.until("Fine.")
    assert (toolyard.folder / "right").exists()
    assert not (toolyard.folder / "wrong").exists()
    assert 'A person changed this call; its arguments were {"command":"touch right"}' in last_results(model)[0]


def test_ctrl_c_ends_the_turn_and_not_the_program(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(stalls("Half of an answer"), says("A whole answer."))
    terminal = chat("go")
    terminal.until("Half of an")
    terminal.key("C-c")
    terminal.until("interrupted: a person ended the turn")
    terminal.line("once more")
    terminal.until("A whole answer.")
    terminal.key("C-d")
    assert terminal.left()


def test_ctrl_c_ends_a_call_that_runs(chat: Chat, model: Model):
    model.script(runs("echo begun; sleep 600"), says("never"))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.key("C-c")
    terminal.until("interrupted: a person ended the turn")
    assert len(model.asked()) == 1


def test_what_is_typed_while_it_works_is_queued_and_read_after_the_call(
    chat: Chat, model: Model, toolyard: CommandLine
):
    model.script(runs("echo begun; while [ ! -e go_on ]; do sleep 0.1; done"), says("I saw it."))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.line("and mind the tests")
    terminal.until("queued: and mind the tests", "1 queued")
    (toolyard.folder / "go_on").touch()
    terminal.until("> and mind the tests", "I saw it.")
    assert model.asked()[-1]["messages"][-1]["content"] == "and mind the tests"


def test_esc_has_what_is_queued_read_at_once(chat: Chat, model: Model):
    model.script(stalls("On and on"), says("Now otherwise."))
    terminal = chat("go")
    terminal.until("On and")
    terminal.line("do it otherwise")
    terminal.until("1 queued")
    terminal.key("Escape")
    terminal.until("Now otherwise.")
    assert model.asked()[-1]["messages"][-1]["content"] == "do it otherwise"


def test_ctrl_c_gives_back_what_was_queued(chat: Chat, model: Model):
    model.script(stalls("On and on"), says("never"))
    terminal = chat("go")
    terminal.until("On and")
    terminal.line("do it otherwise")
    terminal.until("1 queued")
    terminal.key("C-c")
    terminal.until("interrupted:", "\n> do it otherwise")
    assert len(model.asked()) == 1


def test_the_last_turn_can_be_taken_back_with_its_files(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("echo hello > made"), says("Made it."))
    terminal = chat("go")
    terminal.until("Made it.")
    terminal.line("/diff")
    terminal.until("+hello")
    terminal.line("/rewind")
    terminal.until("remove made", "Go back to before event")
    terminal.line("y")
    terminal.until("went back to before event")
    assert not (toolyard.folder / "made").exists()


def test_a_session_goes_on_where_it_was_left(chat: Chat, model: Model):
    model.script(says("The first answer."), says("The second answer."))
    terminal = chat("remember me")
    terminal.until("The first answer.")
    terminal.line("/clear")
    terminal.until("a new session")
    terminal.line("/resume")
    terminal.until("The first answer.", count=2)
    terminal.line("still there?")
    terminal.until("The second answer.")
    said = [one["content"] for one in model.asked()[-1]["messages"] if one["role"] == "user"]
    assert said == ["remember me", "still there?"]


def test_an_answer_that_breaks_off_is_asked_for_again(chat: Chat, model: Model):
    model.script(Reply(events=says("Half of an answer.").events[:2], end="cut"), says("The whole of it."))
    terminal = chat("go")
    seen = terminal.until("The whole of it.", " out")
    assert len(model.asked()) == 2
    assert seen.count("The whole of it.") == 1


def test_a_provider_that_fails_is_said_and_the_chat_goes_on(chat: Chat, model: Model):
    refusal = json.dumps({"error": {"message": "the key is not good"}}).encode()
    model.script(Reply(status=401, events=(refusal,), content_type="application/json"))
    terminal = chat("go")
    terminal.until("error:", "the key is not good")
    model.script(says("Well again."))
    terminal.line("again")
    terminal.until("Well again.")


def test_commands_and_files_are_completed(chat: Chat, model: Model, toolyard: CommandLine):
    toolyard.file("notes.txt", "the answer is 42")
    model.script(says("I read it."))
    terminal = chat()
    terminal.until(READY)
    terminal.type("/co")
    terminal.until(" /compact", " /cost")
    terminal.key("C-c")
    terminal.type("what is in @no")
    terminal.until(" notes.txt")
    terminal.key("Tab")
    terminal.until("@notes.txt")
    terminal.key("Enter", "Enter")
    terminal.until("I read it.")
    parts = model.asked()[-1]["messages"][-1]["content"]
    assert "the answer is 42" in json.dumps(parts)


def test_several_lines_are_one_message(chat: Chat, model: Model):
    model.script(says("Read."))
    terminal = chat()
    terminal.until(READY)
    terminal.type("first")
    terminal.key("C-j")
    terminal.type("second")
    terminal.key("M-Enter")
    terminal.line("third\\")
    terminal.line("fourth")
    terminal.until("Read.")
    assert model.asked()[-1]["messages"][-1]["content"] == "first\nsecond\nthird\nfourth"


def test_it_fits_a_narrow_terminal_and_one_that_changes(chat: Chat, model: Model):
    model.script(says("word " * 40), says("Wide again."))
    terminal = chat("go", width=30, height=12)
    seen = terminal.until("word", READY)
    assert all(len(line) <= 30 for line in seen.split("\n"))
    terminal.resize(100, 30)
    terminal.line("and now")
    terminal.until("Wide again.")


def test_without_colour_nothing_is_coloured(chat: Chat, model: Model):
    model.script(runs("echo x; false", text=MARKDOWN), says("Done."))
    terminal = chat("go", env={"NO_COLOR": "1"})
    terminal.until("Done.")
    codes = set(re.findall(r"\x1b\[([\d;]*)m", terminal.seen(colours=True)))
    assert not any(re.match(r"3[0-7]|4[0-7]|9[0-7]", part) for code in codes for part in code.split(";")), codes


def test_a_terminal_that_can_only_write_is_enough(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("echo from the call", text="I look."), says("Plain *words*."))
    terminal = chat(env={"TERM": "dumb"}, **ASK)
    with Terminal(toolyard, toolyard.path, "chat") as plain:
        plain.read_until("> $")
        plain.type("go\n")
        plain.read_until("Allow\\?")
        plain.type("y\n")
        text = plain.read_until(r"Plain \*words\*\.\n> $")
        assert "from the call" in text
        assert "\x1b" not in text
        plain.type("\x04")
        assert plain.finish() == 0
    terminal.close()


def test_in_a_pipe_it_is_one_turn(chat: Chat, model: Model, toolyard: CommandLine):
    chat()
    model.script(says("For a script."))
    ran = toolyard("chat", stdin="from a pipe")
    assert (ran.code, ran.out) == (0, "For a script.\n")
    assert model.asked()[-1]["messages"][-1]["content"] == "from a pipe"


def test_without_a_provider_it_says_how_to_set_one(toolyard: CommandLine):
    toolyard.config("shell:session")
    with Terminal(toolyard, toolyard.path, "chat") as terminal:
        assert terminal.finish() == 2
    said = terminal.text.split("has no provider.\n")[1]
    assert said.count("\n") == 3
    assert '"provider": "anthropic"' in said
    assert '"provider": "local"' in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(chat: Chat, model: Model, number: int):
    model.script(stalls("On and on"))
    terminal = chat("go")
    terminal.until("On and")
    terminal.signal(number)
    assert terminal.left(130)
