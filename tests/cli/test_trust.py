"""`toolyard trust`: accepting, listing and taking back what may be obeyed although tools may have changed it."""

from __future__ import annotations

import json

from support import CommandLine


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
