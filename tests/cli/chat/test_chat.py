"""`toolyard chat` as a person has it, in a terminal that is drawn."""

from __future__ import annotations

import json
import signal

import pytest

from chat_terminal import Chat, Model, configure, runs, says, stalls
from fake_model_server import Reply
from support import CommandLine, Terminal

ASK = {"permissions": {"preset": "ask-everything"}}
READY = "default ·"
MARKDOWN = "# Plan\n\nSome *words* and `code`.\n\n- one\n- two\n\n```python\nprint('hello')\n```\n"


def test_a_prompt_on_the_command_line_is_the_first_thing_said(chat: Chat, model: Model):
    model.script(says("Hello back."))
    terminal = chat("hello there")
    terminal.until("> hello there", "Hello back.")
    assert model.asked()[0]["messages"][-1]["content"] == "hello there"


def test_ctrl_c_ends_a_call_that_runs(chat: Chat, model: Model):
    model.script(runs("echo begun; sleep 600"), says("never"))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.key("C-c")
    terminal.until("interrupted: a person ended the turn")
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


def test_a_command_for_the_time_after_a_turn_waits_for_it(chat: Chat, model: Model, toolyard: CommandLine):
    go_on = toolyard.folder / "go"
    model.script(runs("echo begun; until [ -e go ]; do sleep 0.05; done"), says("Over."))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.line("/clear")
    terminal.line("/nonsense")
    terminal.until("/clear waits until the turn is over", "there is no command /nonsense")
    go_on.write_text("")
    seen = terminal.until("Over.", "a new session")
    assert seen.index("Over.") < seen.index("a new session")


def test_an_interrupt_gives_back_a_command_that_waits(chat: Chat, model: Model):
    model.script(runs("echo begun; sleep 600"), says("never"))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.line("/clear")
    terminal.until("/clear waits")
    terminal.key("C-c")
    terminal.until("interrupted: a person ended the turn", "\n> /clear")
    assert "a new session" not in terminal.seen()


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(chat: Chat, model: Model, number: int):
    model.script(stalls("On and on"))
    terminal = chat("go")
    terminal.until("On and")
    terminal.signal(number)
    assert terminal.left(130)


def test_a_chat_that_is_killed_leaves_the_terminal_as_it_was(chat: Chat, model: Model):
    model.script(stalls("Half of it"))
    terminal = chat("go")
    terminal.until("Half of it")
    assert " -echo " in terminal.modes()
    terminal.signal(signal.SIGKILL)
    terminal.until("left 137-here")
    terminal.until_that(lambda _: " echo " in terminal.modes(), "the modes of before")
    assert terminal.left(137)


def test_a_plain_terminal_can_interrupt_and_queue_too(model: Model, toolyard: CommandLine):
    model.script(stalls("On and on"), says("A whole answer."))
    configure(toolyard, model)
    with Terminal(toolyard, toolyard.path, "chat", "go") as terminal:
        terminal.read_until("On and")
        terminal.type("and more\n")
        terminal.read_until("queued: and more")
        terminal.type("\x03")
        terminal.read_until(r"not sent: and more\n(?s:.*)interrupted: a person ended the turn\n> $")
        terminal.type("\x03")
        terminal.read_until("Ctrl-D or /quit leaves")
        terminal.type("again\n")
        terminal.read_until(r"A whole answer\.\n> $")
        terminal.type("/quit\n")
        assert terminal.finish() == 0
