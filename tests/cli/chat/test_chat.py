"""`toolyard chat` as a person has it, in a terminal that is drawn."""

from __future__ import annotations

import json
import re
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
    terminal.line("/redo")
    terminal.until("bring back made", "Bring back what was gone back from?")
    terminal.line("y")
    terminal.until("as it was before it went back")
    assert (toolyard.folder / "made").read_text() == "hello\n"


def test_to_look_at_the_preset_changes_nothing(chat: Chat, model: Model):
    model.script(runs("echo x > made"), says("Refused."), runs("echo x > made"), says("Made it."))
    terminal = chat(width=140)
    terminal.until(READY)
    terminal.line("/preset read-only")
    terminal.until("the session now has the preset read-only")
    terminal.line("/preset")
    terminal.until("the session has the preset read-only", "and configured for that of the configuration")
    terminal.line("go")
    terminal.until("Allow?")
    terminal.line("n")
    terminal.until("Refused.")
    terminal.line("/preset configured")
    terminal.until("the session now has the preset of the configuration")
    terminal.line("go")
    terminal.until("Made it.")


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


def test_the_session_to_resume_is_one_of_this_folder(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(says("From elsewhere."))
    configure(toolyard, model)
    elsewhere = toolyard.folder / "elsewhere"
    elsewhere.mkdir()
    config = str(toolyard.folder / "toolyard.json")
    ran = toolyard("--config", config, "--workspace", str(elsewhere), "chat", "-p", "over there")
    assert (ran.code, ran.out) == (0, "From elsewhere.\n"), ran.err
    terminal = chat()
    terminal.until(READY)
    terminal.line("/resume")
    terminal.until("there is no other session of this folder", "/resume ID")


def test_a_terminal_that_gets_narrow_shows_what_is_under_way_once(chat: Chat, model: Model):
    words = [f"word{number:02} and some more" for number in range(20)]
    model.script(stalls(" ".join(words)))
    terminal = chat("go", width=100, height=40)
    terminal.until("word19")
    for width in (45, 120, 60):
        terminal.resize(width, 40)
        terminal.until_that(lambda _, width=width: is_drawn(terminal.screen(), words, width), width)


def is_drawn(screen: str, words: list[str], width: int) -> bool:
    """Whether each is there once, in lines as long as they can be; what tmux put into its history is beyond reach."""
    lines = [len(line) for line in screen.splitlines() if "word" in line]
    return all(screen.count(word.split()[0]) == 1 for word in words) and max(lines) > width - 24


def test_what_was_typed_is_shown_whole_and_ctrl_c_only_drops_what_is_being_typed(chat: Chat, model: Model):
    model.script(says("Read it."))
    terminal = chat("a sentence " * 12 + "and its end", width=50)
    terminal.until("Read it.", "and its end")
    terminal.type("never mind")
    terminal.until("> never mind")
    terminal.key("C-c")
    seen = terminal.until_that(lambda seen: "never mind" not in seen)
    assert "leaves; /help says" not in seen
    terminal.key("C-c")
    terminal.until("Ctrl-D or /quit leaves")


def test_long_output_is_folded_to_its_tail_with_the_number_of_all_its_lines(chat: Chat, model: Model):
    model.script(runs("seq 1 10000"), runs("printf '日%.0s' {1..200}", id="c2"), says("Done."))
    terminal = chat("go", width=60)
    seen = terminal.until("Done.", "done, ", count=1)
    assert "│ … 9994 lines above\n  │ 9995\n" in seen
    (wide,) = [line for line in seen.splitlines() if line.startswith("  │ 日")]
    assert wide == f"  │ {'日' * 27}…"


def test_a_question_on_a_narrow_terminal_is_read_word_by_word(chat: Chat, model: Model):
    model.script(runs("echo hello"), says("Done."))
    terminal = chat("go", width=40, **ASK)
    seen = terminal.until("Allow? [y]es once")
    assert "  reach work: the workspace can be\n  | changed, and hosts can be reached" in seen
    assert re.search(r"● bash  echo hello  \(\d+ s\)", seen)
    terminal.line("y")
    terminal.until("Done.")


def test_help_on_a_narrow_terminal_breaks_no_word(chat: Chat):
    terminal = chat(width=60)
    terminal.until(READY)
    terminal.line("/help")
    seen = terminal.until("commands and files.")
    assert re.search(
        r"\n/resume \[ID\] +go on with another session, without\s+an\s+id\s+the\s+latest\s+of\s+this\s+folder\n", seen
    )
    assert "queued. Alt-Enter,\nCtrl-J or a \\ at the end begin another line.\n" in seen


def test_it_stops_for_ctrl_z_and_goes_on_in_the_foreground(chat: Chat, model: Model, toolyard: CommandLine):
    model.script(runs("echo begun; until [ -e go ]; do sleep 0.05; done"), says("Came back."))
    terminal = chat("go")
    terminal.until("│ begun")
    terminal.type("half a sen")
    terminal.until("> half a sen")
    terminal.key("C-z")
    terminal.until("Stopped")
    assert " icanon " in terminal.modes()
    assert " echo " in terminal.modes()
    (toolyard.folder / "go").write_text("")
    terminal.line("fg")
    terminal.until("Came back.", "> half a sen")


def test_what_is_pasted_is_one_message(chat: Chat, model: Model):
    pasted = "one\n\ttwo 日本語\n\nשלום 👍"
    model.script(says("Got it."))
    terminal = chat()
    terminal.until(READY)
    terminal.paste(pasted)
    terminal.until("日本語", "שלום")
    assert model.asked() == []
    terminal.key("Enter")
    terminal.until("Got it.")
    assert model.asked()[0]["messages"][-1]["content"] == pasted


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
