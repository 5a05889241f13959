"""A folder whose name is no text: everything works in it, and nothing that happens in it is hidden."""

from __future__ import annotations

import json
import os

import pytest

from support import CommandLine, need_backend


@pytest.fixture
def toolyard(tmp_path):
    need_backend("bubblewrap", "bubblewrap-pids")
    return CommandLine(tmp_path)


@pytest.fixture
def odd(toolyard):
    folder = toolyard.folder / os.fsdecode(b"od\xffd")
    folder.mkdir()
    (folder / "toolyard.json").write_text(json.dumps({"plugins": ["shell:session", "shell:command"]}))
    return folder


@pytest.mark.parametrize(("tool", "command"), [("bash", "touch a"), ("shell", "touch b")])
def test_E10_calls_run_and_are_shown(toolyard, odd, tool, command):
    called = toolyard("call", tool, json.dumps({"command": command}), cwd=odd)
    assert called.code == 0, called.err
    assert (odd / command[-1]).exists()
    assert command in toolyard("audit", "show", cwd=odd).out
    ends = [json.loads(line) for line in toolyard("audit", "show", "--json", cwd=odd).out.splitlines()]
    assert [os.fsencode(line["cwd"]) for line in ends] == [os.fsencode(odd)] * len(ends)
    assert toolyard("audit", "verify", cwd=odd).code == 0


def test_E05_a_file_in_it_can_be_accepted_and_what_is_granted_there_damages_no_other_grant(toolyard, odd):
    accepted = toolyard("trust", "accept", "toolyard.json", cwd=odd)
    assert accepted.code == 0, accepted.err
    assert "toolyard.json" in toolyard("trust", "list", cwd=odd).out
    for words in (["allow", "make test", "--everywhere"], ["allow", "ls **"]):
        assert toolyard("permissions", *words, cwd=odd).code == 0
    listed = toolyard("permissions", "list", cwd=odd)
    assert "make test" in listed.out
    assert "cannot be used" not in listed.err
