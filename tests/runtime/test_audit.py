"""The audit log: one file for each day, whole lines, said once when it fails."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from toolyard.config.settings import AuditPolicy
from toolyard.runtime.audit import AuditUnavailable, NdjsonAudit


def make(folder, *, on_failure="continue", said=None, clock=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)):
    said = [] if said is None else said
    return NdjsonAudit(folder, policy=AuditPolicy(on_failure=on_failure), on_failure=said.append, clock=clock)


def test_half_a_character_is_written_as_its_escape(tmp_path):
    audit = make(tmp_path)
    audit.write({"tool": "a\ud800", "cwd": tmp_path, "argv": ("ü",)})
    audit.close()
    (file,) = tmp_path.iterdir()
    record = json.loads(file.read_text())
    assert (record["tool"], record["cwd"], record["argv"]) == ("a\ud800", str(tmp_path), ["ü"])


def test_midnight_begins_a_new_file(tmp_path):
    times = iter([datetime(2026, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)])
    audit = make(tmp_path / "deep" / "audit", clock=lambda: next(times))
    audit.write({"n": 1})
    audit.write({"n": 2})
    audit.close()
    files = {file.name: json.loads(file.read_text()) for file in (tmp_path / "deep" / "audit").iterdir()}
    assert files == {
        "2026-01-02.ndjson": {"time": "2026-01-02T23:59:59.999999+00:00", "n": 1},
        "2026-01-03.ndjson": {"time": "2026-01-03T00:00:00.000000+00:00", "n": 2},
    }


def test_lines_are_added_to_what_is_there_and_only_the_owner_may_read_them(tmp_path):
    for number in range(3):
        audit = make(tmp_path / "audit")
        audit.write({"n": number})
        audit.close()
    (file,) = (tmp_path / "audit").iterdir()
    assert [json.loads(line)["n"] for line in file.read_text().splitlines()] == [0, 1, 2]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_failure_is_said_once_until_it_is_mended(tmp_path):
    blocked = tmp_path / "audit"
    blocked.write_text("in the way")
    said: list[str] = []
    audit = make(blocked, said=said)
    for _ in range(3):
        audit.write({})
    assert len(said) == 1
    blocked.unlink()
    audit.write({})
    assert len(said) == 1
    audit.close()


def test_policy_can_stop_everything(tmp_path):
    (tmp_path / "audit").write_text("in the way")
    with pytest.raises(AuditUnavailable, match="cannot be written"):
        make(tmp_path / "audit", on_failure="stop").write({})


def test_a_full_disk_is_a_failure():
    said: list[str] = []

    class Full(NdjsonAudit):
        def _file_for(self, day):
            import os

            self._fd = os.open("/dev/full", os.O_WRONLY)
            return self._fd

    audit = Full("/nowhere", policy=AuditPolicy(), on_failure=said.append)
    audit.write({})
    assert "No space left" in said[0]
