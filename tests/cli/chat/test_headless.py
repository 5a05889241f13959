"""`toolyard chat -p --json`: one event a line, whatever tools print."""

from __future__ import annotations

import json

import pytest

from chat_terminal import Model, configure, runs, says
from support import CommandLine


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("seq 1 200000", "the whole is in"),
        (r"mkdir $'\xff'; git init -q $'\xff'; git -C $'\xff' config core.fsmonitor evil", ""),
        (r"printf 'a\xffb'", "a�b"),
    ],
)
def test_every_event_is_a_line_whatever_a_tool_prints(toolyard: CommandLine, model: Model, command: str, told: str):
    configure(toolyard, model)
    model.script(runs(command), says("Done."))
    ran = toolyard("chat", "-p", "go", "--json")
    assert ran.code == 0, ran.err
    events = [json.loads(line) for line in ran.out.splitlines()]
    (answered,) = [event for event in events if event["type"] == "result"]
    assert told in json.dumps(answered, ensure_ascii=False)
    assert events[-1]["type"] == "turn_ended"


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(("words", "stdin"), [([b"caf\xe9 \xf0"], b""), (["-"], b"caf\xe9 \xf0")])
def test_what_is_no_utf_8_is_said_with_signs_in_its_place(toolyard: CommandLine, model: Model, words, stdin, errors):
    configure(toolyard, model)
    model.script(says("Read it."))
    ran = toolyard("chat", "-p", *words, stdin=stdin, env={"PYTHONIOENCODING": f"utf-8:{errors}"})
    assert (ran.code, ran.out) == (0, "Read it.\n"), ran.err
    assert set(model.asked()[0]["messages"][-1]["content"].removeprefix("caf")) == {"\ufffd", " "}
    assert "caf\ufffd" in toolyard("sessions", "list").out
    found = toolyard("sessions", "search", b"caf\xe9")
    assert (found.code, "caf" in found.out) == (0, True), found.err


@pytest.mark.parametrize("config", [None, {}, {"plugins": ["files:all"]}])
def test_without_a_provider_three_lines_say_how_to_set_one_and_offer_the_local_model(toolyard: CommandLine, config):
    if config is not None:
        toolyard.file("toolyard.json", json.dumps(config))
    ran = toolyard("chat", "-p", "hi")
    assert ran.code == 2
    said = ran.err.split("has no provider\n")[1].split("session ")[0]
    assert said.count("\n") == 3
    assert '"provider": "anthropic"' in said
    assert '"provider": "local"' in said
    told = json.loads(toolyard("chat", "--json", "-p", "hi").out.splitlines()[-1])
    assert (told["type"], told["fault"]) == ("turn_ended", "setup")
    assert '"provider": "local"' in told["hint"]


@pytest.mark.parametrize("how", [["-p", "hi"], ["--json", "-p", "hi"]])
def test_a_configuration_that_cannot_be_read_is_told_and_nothing_is_begun(toolyard: CommandLine, how: list[str]):
    toolyard.file("toolyard.json", '{"provider": ')
    ran = toolyard("chat", *how)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("toolyard.json:1:")
    assert "has no provider" not in ran.err
    assert toolyard("sessions", "list").out == ""


def test_a_plugin_that_is_not_there_is_told_beside_the_provider_that_is_missing(toolyard: CommandLine):
    toolyard.file("toolyard.json", json.dumps({"plugins": ["path:./nowhere"], "provider": "mine", "model": "m"}))
    ran = toolyard("chat", "-p", "hi")
    assert ran.code == 2
    assert "nowhere" in ran.err.splitlines()[0]
    assert "no plugin is the provider 'mine'" in ran.err


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ("nosuch", "hint: add the plugin that has it"),
        ("anthropic", 'hint: add "path:${env:BUILTIN_PLUGINS}/anthropic" to "plugins"\n'),
    ],
)
def test_a_provider_that_is_nowhere_is_told_with_what_to_write(toolyard: CommandLine, provider: str, said: str):
    toolyard.file("toolyard.json", json.dumps({"provider": provider, "model": "m"}))
    ran = toolyard("chat", "-p", "hi")
    assert ran.code == 2
    assert said in ran.err


def test_what_is_piped_in_is_said_with_the_prompt(toolyard: CommandLine, model: Model):
    configure(toolyard, model)
    model.script(says("One."), says("Two."), says("Three."), says("Four."))
    assert toolyard("chat", "-p", "Explain this:", stdin="the log\n").code == 0
    assert toolyard("chat", "Explain this:", stdin="").code == 0
    (id, *_) = toolyard("sessions", "list").out.split()
    assert toolyard("sessions", "resume", id, "-p", "And this:", stdin="more").code == 0
    assert toolyard("chat", "--session", id, stdin="the end").code == 0
    assert [asked["messages"][-1]["content"] for asked in model.asked()] == [
        "Explain this:\n\nWhat was piped in:\nthe log\n",
        "Explain this:",
        "And this:\n\nWhat was piped in:\nmore",
        "the end",
    ]


@pytest.mark.parametrize("words", [["-p", "Count:"], []])
def test_of_a_great_deal_that_is_piped_in_the_beginning_is_said_and_that_it_was_cut(
    toolyard: CommandLine, model: Model, words: list[str]
):
    configure(toolyard, model)
    model.script(says("Many."))
    ran = toolyard("chat", *words, stdin="line\n" * 300_000)
    assert (ran.code, "only the first 1 MiB" in ran.err) == (0, True), ran.err
    said = model.asked()[0]["messages"][-1]["content"]
    assert said.endswith("[cut here: only the first 1 MiB of it are said]")
    assert len(said) < (1 << 20) + 200
