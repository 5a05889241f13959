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
