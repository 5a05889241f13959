"""A disk that becomes full does not stop the audit log: it has room of its own, which nobody else can use up."""

from __future__ import annotations

import json
from pathlib import Path

from small_disk import run_on_small_disk

SET_UP = """
import json
from toolyard.config.settings import AuditPolicy
from toolyard.runtime.audit.log import AuditUnavailable, NdjsonAudit
from toolyard.runtime.audit.verify import check_log

DAY = 86_400 * 10**9
now = 1_800_000_000 * 10**9
said = []
folder = disk / "sessions/audit"

def new(on_failure="continue"):
    return NdjsonAudit(folder, policy=AuditPolicy(on_failure=on_failure), on_failure=said.append, clock=lambda: now)

def records():
    return [json.loads(line) for file in sorted(folder.glob("*.ndjson")) for line in file.read_text().splitlines()]

def show(**more):
    events = [record["event"] for record in records()]
    print(json.dumps({"said": said, "lines": len(events), "gaps": events.count("gap"),
                      "broken": str(check_log(folder).broken), **more}))

line = {"event": "end", "text": "x" * 1000}
audit = new()
audit.write(line)
fill()
"""


def run(tmp_path: Path, script: str) -> dict[str, object]:
    said: dict[str, object] = json.loads(run_on_small_disk(tmp_path, SET_UP + script))
    return said


def test_lines_go_on_being_written_on_a_full_disk_and_that_is_said_once(tmp_path):
    found = run(tmp_path, "for _ in range(200): audit.write(line)\nshow(shortage=audit.shortage)")
    assert (found["lines"], found["gaps"], found["broken"]) == (201, 0, "None")
    (said,) = found["said"]
    assert said.startswith("the disk is full; the audit log has room for")
    assert found["shortage"]


def test_another_application_finds_the_same_room(tmp_path):
    found = run(tmp_path, "audit.close()\naudit = new()\nfor _ in range(200): audit.write(line)\nshow()")
    assert (found["lines"], found["gaps"], len(found["said"])) == (201, 0, 1)


def test_what_is_lost_when_that_room_is_full_too_is_told_as_soon_as_there_is_more_and_room_is_kept_again(tmp_path):
    script = """
for _ in range(400): audit.write(line)
lost, before = audit.trouble, len(records())
(disk / "filler").unlink()
audit.write(line)
(gap,) = [record for record in records() if record["event"] == "gap"]
fill()
for _ in range(100): audit.write(line)
show(lost=lost, before=before, gap=gap["lines"])
"""
    found = run(tmp_path, script)
    assert "cannot be written" in str(found["lost"])
    assert found["gap"] == 401 - found["before"], "each line that is missing is counted"
    assert (found["lines"], found["broken"]) == (found["before"] + 1 + 1 + 100, "None")


def test_the_next_day_has_room_too(tmp_path):
    script = """
used = lambda: sum(file.stat().st_blocks * 512 for file in [*folder.iterdir(), *folder.parent.glob('audit.*')])
now += DAY
for _ in range(200): audit.write(line)
days = len(list(folder.glob("*.ndjson")))
(disk / "filler").unlink()
for _ in range(5):
    now += DAY
    audit.write(line)
show(days=days, used=used())
"""
    found = run(tmp_path, script)
    assert (found["days"], found["lines"], found["gaps"]) == (2, 206, 0)
    assert found["used"] < 900_000, "of days that are over nothing is kept"


def test_where_nothing_may_run_unrecorded_calls_stop_while_there_is_room_for_the_ends_of_others(tmp_path):
    script = """
audit.close()
audit = new("stop")
started = 0
try:
    for _ in range(400):
        audit.write({**line, "event": "start"})
        started += 1
except AuditUnavailable as error:
    why = str(error)
for _ in range(20): audit.write(line)
try:
    new("stop").write({**line, "event": "start"})
    why = "another one started"
except AuditUnavailable:
    pass
show(started=started, why=why)
"""
    found = run(tmp_path, script)
    assert found["why"] == "the audit log cannot be written: the disk is full"
    assert 100 < found["started"] < 200
    assert found["lines"] >= found["started"] + 21
