"""What the user granted for good: written whole or not at all, and nothing allowed by a file that is damaged."""

from __future__ import annotations

import json
import threading

import pytest

from toolyard.permissions.grants import ANSWERED, GrantStore


@pytest.fixture
def store(tmp_path):
    return GrantStore(tmp_path / "state" / "permissions.json")


def add(store, rule, decision="allow", workspace=None):
    return store.add(decision, {"command": rule}, workspace=workspace, source="typed", by="test")


def texts(store, workspace="/w"):
    return [(rule.decision, rule.text) for rule in store.load().rules(workspace, store.file)]


def test_a_grant_is_kept_once_with_where_it_comes_from(store):
    first, again = add(store, "ls **", workspace="/w"), add(store, "ls **", workspace="/w")
    assert first == again
    (written,) = json.loads(store.file.read_text())["grants"]
    assert {key: written[key] for key in ("id", "source", "by", "workspace")} == {
        "id": first.id,
        "source": "typed",
        "by": "test",
        "workspace": "/w",
    }
    assert written["at"]
    assert store.file.stat().st_mode & 0o077 == 0
    (rule,) = store.load().rules("/w", store.file)
    assert str(rule.origin) == f"{store.file}, grant {first.id}"


def test_a_grant_holds_for_its_workspace_or_for_all(store):
    add(store, "ls **", workspace="/w")
    add(store, "rm **", "deny")
    assert texts(store) == [("allow", "ls **"), ("deny", "rm **")]
    assert texts(store, "/other") == [("deny", "rm **")]


@pytest.mark.parametrize(("by", "server"), [(ANSWERED, ""), ("toolyard permissions allow", None)])
def test_what_an_answer_left_for_a_tool_holds_for_no_server_s_tool_of_that_name(store, by, server):
    store.add("allow", {"tool": "deploy"}, workspace="/w", source="deploy", by=by)
    (rule,) = store.load().rules("/w", store.file)
    assert (rule.tool, rule.server) == ("deploy", server)


def test_a_grant_is_revoked_by_its_id_or_its_rule(store):
    kept, by_id = add(store, "ls **"), add(store, "cat **")
    assert [grant.id for grant in store.revoke(by_id.id)] == [by_id.id]
    assert [grant.id for grant in store.revoke("ls **")] == [kept.id]
    assert store.revoke("nothing") == []
    assert texts(store) == []


def test_another_process_changes_what_holds_here(store):
    other = GrantStore(store.file)
    assert texts(store) == []
    add(other, "ls **")
    assert texts(store) == [("allow", "ls **")]
    assert other.load() is other.load(), "an unchanged file is not read again"


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"version": 2, "grants": []}', '{"version": 1}', '{"version": 1, "grants": [{"id": "x"}]}', "\x00",
     '{"version": 1, "grants": [{"id": "x", "decision": "deny", "rule": {"command": "rm ** x"}}]}'],
)  # fmt: skip
def test_a_damaged_file_keeps_the_last_good_denies_and_no_allows(store, damage):
    add(store, "ls **")
    add(store, "rm **", "deny")
    store.file.write_text(damage)
    assert texts(store) == [("deny", "rm **")]
    problem = store.load().problem
    assert problem is not None
    assert (problem.code, problem.severity, problem.where.file) == ("grants_damaged", "error", store.file)
    assert texts(GrantStore(store.file)) == [("deny", "rm **")], "also for who never saw the good one"
    add(store, "cat **")
    assert texts(store) == [("deny", "rm **"), ("allow", "cat **")]
    assert store.load().problem is None
    assert store.file.with_suffix(".damaged.json").read_text() == damage, "what was damaged is not thrown away"


def test_a_file_that_others_may_write_allows_nothing(store):
    add(store, "ls **")
    store.file.chmod(0o666)
    assert texts(store) == []
    assert store.load().problem is not None


def test_a_removed_file_grants_nothing(store):
    add(store, "ls **")
    store.file.unlink()
    assert texts(store) == []
    assert store.load().problem is None


def test_writers_at_the_same_time_lose_nothing(store):
    def write(number):
        add(GrantStore(store.file), f"tool{number} **")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(texts(store)) == 12
    assert not list(store.file.parent.glob(".*")), "nothing half-written is left"


def test_a_write_that_fails_leaves_the_file_as_it_was(store, monkeypatch):
    add(store, "ls **")
    before = store.file.read_text()

    def full(descriptor):
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        add(store, "cat **")
    monkeypatch.undo()
    assert store.file.read_text() == before
    assert not list(store.file.parent.glob(".*"))


def test_a_grant_of_before_folders_were_kept_holds_in_the_top_of_its_workspace(store):
    store.add("allow", {"command": "git push", "reach": "outside"}, workspace="/w", source="", by="test")
    store.add("allow", {"command": "ls **"}, workspace="/w", source="", by="test")
    of_the_top, anywhere = store.load().rules("/w", store.file)
    assert (of_the_top.folder, anywhere.folder) == ((), None)
