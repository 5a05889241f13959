"""What a person has of `toolyard chat`, in a terminal that is drawn."""

from __future__ import annotations

import base64
import json
import re

import pytest

from chat_terminal import Chat, Model, configure, runs, says, stalls
from fake_model_server import Reply, Said, chat_events
from support import CommandLine, Terminal
from toolyard.cli.chat.commands import COMMANDS

ASK = {"permissions": {"preset": "ask-everything"}}
READY = "default ·"
MARKDOWN = "# Plan\n\nSome *words* and `code`.\n\n- one\n- two\n\n```python\nprint('hello')\n```\n"


def last_results(model: Model) -> list[str]:
    """What the model was told of its calls in the last request."""
    return [one["content"] for one in model.asked()[-1]["messages"] if one["role"] == "tool"]


def test_H01_an_answer_is_drawn_as_markdown_and_a_call_by_its_tail(chat: Chat, model: Model, toolyard: CommandLine):
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


def test_H01_what_runs_is_shown_while_it_runs(chat: Chat, model: Model, toolyard: CommandLine):
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
def test_H01_a_question_is_answered_at_the_prompt(chat: Chat, model: Model, toolyard: CommandLine, answer, ran, told):
    model.script(runs("touch made && echo made"), says("Fine."))
    terminal = chat("go", **ASK)
    seen = terminal.until("Allow?")
    assert "touch made && echo made" in seen
    assert "reach work" in seen
    terminal.line(answer)
    seen = terminal.until("Fine.")
    assert (toolyard.folder / "made").exists() is ran
    assert ("└ done, " in seen, "└ not run" in seen) == (ran, not ran)
    assert told in last_results(model)[0]


@pytest.mark.parametrize(("answer", "again"), [("s", False), ("a", False), ("y", True)])
def test_H01_a_yes_holds_as_long_as_it_was_meant_to(chat: Chat, model: Model, answer, again):
    model.script(runs("date +%Y"), runs("date +%Y", id="c2"), says("Fine."))
    terminal = chat("go", **ASK)
    assert "always would save: date" in terminal.until("Allow?")
    terminal.line(answer)
    if again:
        terminal.until("wants to run:", count=2)
        terminal.line("y")
    seen = terminal.until("Fine.")
    assert seen.count("wants to run:") == (2 if again else 1)


def test_H01_a_call_can_be_changed_before_it_runs(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("touch wrong"), says("Fine."))
    terminal = chat("go", **ASK)
    terminal.until("Allow?")
    terminal.line("e")
    terminal.until("instead: touch wrong")
    terminal.key(*["BSpace"] * len("wrong"))
    terminal.line("right")
    terminal.until("| touch right")
    terminal.line("y")
    assert "└ not run" not in terminal.until("Fine.")
    assert (toolyard.folder / "right").exists()
    assert not (toolyard.folder / "wrong").exists()
    assert 'A person changed this call; its arguments were {"command":"touch right"}' in last_results(model)[0]


def test_H01_what_is_typed_while_it_works_is_queued_and_read_after_the_call(
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


def test_H01_commands_and_files_are_completed(chat: Chat, model: Model, toolyard: CommandLine):
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


def test_H01_several_lines_are_one_message(chat: Chat, model: Model):
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


def test_H02_it_fits_a_narrow_terminal_and_one_that_changes(chat: Chat, model: Model):
    model.script(says("word " * 40), says("Wide again."))
    terminal = chat("go", width=30, height=12)
    seen = terminal.until("word", READY)
    assert all(len(line) <= 30 for line in seen.split("\n"))
    terminal.resize(100, 30)
    terminal.line("and now")
    terminal.until("Wide again.")


def test_H02_without_colour_nothing_is_coloured(chat: Chat, model: Model):
    model.script(runs("echo x; false", text=MARKDOWN), says("Done."))
    terminal = chat("go", env={"NO_COLOR": "1"})
    terminal.until("Done.")
    codes = set(re.findall(r"\x1b\[([\d;]*)m", terminal.seen(colours=True)))
    assert not any(re.match(r"3[0-7]|4[0-7]|9[0-7]", part) for code in codes for part in code.split(";")), codes


def test_H02_a_terminal_that_can_only_write_is_enough(model: Model, toolyard: CommandLine):
    model.script(runs("echo from the call", text="I look."), says("Plain *words*."))
    configure(toolyard, model, **ASK)
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


def test_H02_in_a_pipe_it_is_one_turn(model: Model, toolyard: CommandLine):
    configure(toolyard, model)
    model.script(says("For a script."))
    ran = toolyard("chat", stdin="from a pipe")
    assert (ran.code, ran.out) == (0, "For a script.\n")
    assert model.asked()[-1]["messages"][-1]["content"] == "from a pipe"


def test_H02_without_a_provider_it_says_how_to_set_one(toolyard: CommandLine):
    toolyard.config("shell:session")
    with Terminal(toolyard, toolyard.path, "chat") as terminal:
        assert terminal.finish() == 2
    said = terminal.text.split("has no provider.\n")[1]
    assert said.count("\n") == 3
    assert '"provider": "anthropic"' in said
    assert '"provider": "local"' in said


def test_H01_a_change_is_shown_as_a_diff_before_it_is_allowed(chat: Chat, model: Model, toolyard: CommandLine):
    toolyard.file("notes.txt", "one\ntwo\nthree\n")
    read = Reply(events=chat_events(Said(calls=(("c1", "read", json.dumps({"file_path": "notes.txt"})),))))
    edit = {"file_path": "notes.txt", "old_string": "two", "new_string": "2"}
    change = Reply(events=chat_events(Said(calls=(("c2", "edit", json.dumps(edit)),))))
    model.script(read, change, says("Changed."))
    terminal = chat("go", also=["files:all"], permissions={"preset": "workspace", "ask": [{"tool": "edit"}]})
    seen = terminal.until("Allow?")
    assert "-two\n" in seen
    assert "+2\n" in seen
    terminal.line("y")
    terminal.until("Changed.")
    assert (toolyard.folder / "notes.txt").read_text() == "one\n2\nthree\n"


def test_H01_a_picture_is_sent_with_what_is_said(chat: Chat, model: Model, toolyard: CommandLine):
    data = b"\x89PNG\r\n\x1a\nnot really"
    (toolyard.folder / "shot.png").write_bytes(data)
    model.script(says("I see it."))
    terminal = chat("what is on @shot.png")
    terminal.until("I see it.")
    (picture,) = [part for part in model.asked()[-1]["messages"][-1]["content"] if part["type"] == "image_url"]
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(data).decode()}"


def test_H01_what_was_typed_is_found_again(chat: Chat, model: Model):
    model.script(says("First."), says("Second."))
    terminal = chat()
    terminal.until(READY)
    terminal.line("say it")
    terminal.until("First.")
    terminal.key("Up", "Enter")
    terminal.until("Second.")
    assert [one["messages"][-1]["content"] for one in model.asked()] == ["say it", "say it"]


def test_H01_help_names_every_command(chat: Chat):
    terminal = chat(width=120, height=60)
    terminal.until(READY)
    terminal.line("/help")
    seen = terminal.until("Tab completes")
    assert [name for name in COMMANDS if f"\n{name} " not in seen] == []


def test_H02_the_local_model_is_offered_where_it_can_run(toolyard: CommandLine):
    with Terminal(toolyard, toolyard.path, "chat") as terminal:
        terminal.read_until("has no provider")
        terminal.read_until(r"Talk to the small model on this machine now\? \[Y/n\] ")
        terminal.type("n\n")
        assert terminal.finish() == 2


def test_T09_ctrl_c_ends_the_turn_and_not_the_program(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(stalls("Half of an answer"), says("A whole answer."))
    terminal = chat("go")
    terminal.until("Half of an")
    terminal.key("C-c")
    terminal.until("interrupted: a person ended the turn")
    terminal.line("once more")
    terminal.until("A whole answer.")
    terminal.key("C-d")
    assert terminal.left()


def test_T09_esc_has_what_is_queued_read_at_once(chat: Chat, model: Model):
    model.script(stalls("On and on"), says("Now otherwise."))
    terminal = chat("go")
    terminal.until("On and")
    terminal.line("do it otherwise")
    terminal.until("1 queued")
    terminal.key("Escape")
    terminal.until("Now otherwise.")
    assert model.asked()[-1]["messages"][-1]["content"] == "do it otherwise"


def test_T09_ctrl_c_gives_back_what_was_queued(chat: Chat, model: Model):
    model.script(stalls("On and on"), says("never"))
    terminal = chat("go")
    terminal.until("On and")
    terminal.line("do it otherwise")
    terminal.until("1 queued")
    terminal.key("C-c")
    terminal.until("interrupted:", "\n> do it otherwise")
    assert len(model.asked()) == 1
