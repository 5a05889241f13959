"""Questions that nobody is there to answer wait in the session, until somebody comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support import CommandLine

ASKING = {"preset": "workspace", "ask": ["touch **"]}


def answers(*lines: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def bash(*commands: str) -> dict[str, Any]:
    return {"calls": [{"id": str(n), "name": "bash", "arguments": {"command": one}} for n, one in enumerate(commands)]}


@pytest.fixture
def session(toolyard: CommandLine) -> str:
    """A turn that waits: one of its calls is asked about, the other is not."""
    settings = {"provider": "replay", "replay": "${env:CONFIG_DIR}/answers.jsonl", "permissions": ASKING}
    toolyard.config("shell:session", "path:${env:BUILTIN_PLUGINS}/replay", **settings)
    toolyard.file("answers.jsonl", answers(bash("touch one", "echo x >> two"), bash("touch three"), {"text": "Done."}))
    ran = toolyard("chat", "-p", "go")
    assert (ran.code, ran.out) == (4, "")
    assert "asks: touch one" in ran.err
    row = json.loads(toolyard("sessions", "list", "--json").out)
    assert row["state"] == "waiting"
    assert f"--session {row['id'][:12]} --answer" in ran.err
    assert made(toolyard) == ["two"]
    return str(row["id"])


def made(toolyard: CommandLine) -> list[str]:
    return sorted(file.name for file in toolyard.folder.iterdir() if file.suffix not in (".json", ".jsonl"))


def test_an_answer_is_for_what_waited_and_later_questions_wait_again(toolyard: CommandLine, session: str) -> None:
    assert toolyard("chat", "--session", session, "--answer", "yes").code == 4
    assert made(toolyard) == ["one", "two"]
    ran = toolyard("chat", "--session", session, "--answer", "no")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert f"session {session}" in ran.err
    assert made(toolyard) == ["one", "two"]
    assert (toolyard.folder / "two").read_text() == "x\n", "a call that had its result ran again"


def test_who_comes_back_without_an_answer_is_asked_the_same_again(toolyard: CommandLine, session: str) -> None:
    ran = toolyard("chat", "--session", session, "--json")
    last = json.loads(ran.out.splitlines()[-1])
    assert (ran.code, last["type"], last["questions"]) == (4, "turn_waits", ["0"])
    assert made(toolyard) == ["two"]


def test_yes_answers_every_question_from_then_on(toolyard: CommandLine, session: str) -> None:
    ran = toolyard("sessions", "resume", session, "--yes")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert made(toolyard) == ["one", "three", "two"]


def test_a_rule_that_was_written_since_answers_it(toolyard: CommandLine, session: str) -> None:
    config = toolyard.folder / "toolyard.json"
    config.write_text(config.read_text().replace('"ask": ["touch **"]', '"allow": ["touch **"]'))
    assert toolyard("chat", "--session", session).code == 0
    assert made(toolyard) == ["one", "three", "two"]


def test_no_refuses_with_the_reason(toolyard: CommandLine, session: str) -> None:
    ran = toolyard("chat", "--session", session, "--no")
    assert ran.code == 0
    assert "answered with --no" in toolyard("sessions", "show", session).out
    assert made(toolyard) == ["two"]


def test_an_answer_without_a_question_is_a_mistake(toolyard: CommandLine, session: str) -> None:
    toolyard("chat", "--session", session, "--yes")
    ran = toolyard("chat", "--session", session, "-p", "again", "--answer", "yes")
    assert ran.code == 2
    assert "no question waits" in ran.err
