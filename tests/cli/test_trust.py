"""`toolyard trust`: accepting, listing and taking back what may be obeyed although tools may have changed it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support import CommandLine, Terminal
from toolyard.files import accepted
from toolyard.files.write_times import OpenSpan


def test_what_is_accepted_is_listed_and_can_be_taken_back(toolyard: CommandLine):
    file = toolyard.folder / "some file.json"
    file.write_text("{}")
    assert "accepted" in toolyard("trust", "accept", str(file)).err
    (row,) = json.loads(toolyard("trust", "list", "--json").out)
    assert (row["path"], row["state"]) == (str(file), "in use")
    file.write_text("{ }")
    assert json.loads(toolyard("trust", "list", "--json").out)[0]["state"] == "changed since"
    assert toolyard("trust", "revoke", row["digest"][:8]).code == 0
    assert json.loads(toolyard("trust", "list", "--json").out) == []


def test_what_cannot_be_read_is_not_accepted_and_nothing_else_with_it(toolyard: CommandLine):
    (file := toolyard.folder / "file").write_text("x")
    for missing in ("missing", str(toolyard.folder), "/dev/zero"):
        ran = toolyard("trust", "accept", str(file), missing)
        assert ran.code == 2, missing
    assert json.loads(toolyard("trust", "list", "--json").out) == []
    assert toolyard("trust", "revoke", str(file)).code == 2


def test_a_list_with_nothing_says_so(toolyard: CommandLine):
    ran = toolyard("trust", "list")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing was accepted" in ran.err


@pytest.fixture
def running(toolyard: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """Something runs that can write the working folder."""
    monkeypatch.setenv("XDG_STATE_HOME", toolyard.env["XDG_STATE_HOME"])
    span = OpenSpan([os.path.realpath(toolyard.folder)], {})
    yield span
    span.close(0.0, {})


def test_while_something_runs_that_could_write_a_file_only_its_digest_says_what_is_accepted(toolyard, running):
    (file := toolyard.folder / "toolyard.json").write_text("{}")
    for words in ((), ("--yes",), ("--json",)):
        ran = toolyard("trust", "accept", str(file), *words)
        assert (ran.code, "could write" in ran.err) == (3, True)
    looked_at = accepted.digest_now(str(file))
    assert looked_at in ran.err, "what to type is said"
    file.write_text('{"evil": 1}')
    ran = toolyard("trust", "accept", str(file), "--digest", looked_at)
    assert (ran.code, "says something else" in ran.err) == (3, True)
    assert json.loads(toolyard("trust", "list", "--json").out) == []
    assert toolyard("trust", "accept", str(file), "--digest", accepted.digest_now(str(file))).code == 0


def test_a_file_that_is_guarded_all_the_time_is_accepted_as_ever(toolyard, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", toolyard.env["XDG_STATE_HOME"])
    (file := toolyard.folder / "toolyard.json").write_text("{}")
    facts = file.stat()
    span = OpenSpan([os.path.realpath(toolyard.folder)], {os.path.realpath(file): (facts.st_dev, facts.st_ino)})
    assert toolyard("trust", "accept", str(file)).code == 0
    span.close(0.0, {})


def test_what_was_read_is_accepted_and_not_what_is_there_by_then(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (file := tmp_path / "toolyard.json").write_text("{}")
    found = accepted.candidate(str(file))
    file.write_text("other")
    assert accepted.accept(found).digest == accepted.digest_of(b"{}")


def test_at_a_terminal_all_of_a_file_is_shown_and_what_was_shown_is_accepted(toolyard, running):
    (file := toolyard.folder / "toolyard.json").write_text('{"a": "\x1b[2Jhidden"}\n')
    with Terminal(toolyard, toolyard.path, "trust", "accept", str(file)) as terminal:
        shown = terminal.read_until(r"\[Y/n\]")
        assert accepted.digest_now(str(file)) in shown
        assert '| {"a": "\\x1b[2Jhidden"}' in shown
        before = accepted.digest_now(str(file))
        file.write_text("other")
        terminal.type("y\n")
        assert terminal.finish() == 0
    (row,) = json.loads(toolyard("trust", "list", "--json").out)
    assert (row["digest"], row["state"]) == (before, "changed since")


def test_a_no_at_the_terminal_accepts_nothing(toolyard):
    (file := toolyard.folder / "toolyard.json").write_text("{}")
    with Terminal(toolyard, toolyard.path, "trust", "accept", str(file)) as terminal:
        terminal.read_until(r"\[Y/n\]")
        terminal.type("n\n")
        assert terminal.finish() == 3
    assert json.loads(toolyard("trust", "list", "--json").out) == []
