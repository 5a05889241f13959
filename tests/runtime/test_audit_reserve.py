"""A disk that becomes full does not stop the audit log: it has room of its own, which nobody else can use up."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

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
for number in range(30): audit.write({**line, "event": "start", "call_id": str(number)})
started = 30
try:
    for _ in range(400):
        audit.write({**line, "event": "start"})
        started += 1
except AuditUnavailable as error:
    why = str(error)
for number in range(30): audit.write({**line, "call_id": str(number)})
try:
    new("stop").write({**line, "event": "start"})
    why = "another one started"
except AuditUnavailable:
    pass
show(started=started, why=why)
"""
    found = run(tmp_path, script)
    assert found["why"] == "the audit log cannot be written: the disk is full"
    assert 100 < found["started"] < 300
    assert found["lines"] == 1 + found["started"] + 30


MODEL = """
def start(id, **more):
    audit.write({"event": "start", "session": "s", "call_id": id, "tool": "shell", **more})

def end(id, **more):
    audit.write({"event": "end", "session": "s", "call_id": id, "tool": "shell", "failure": None, **more})

def deny(number, size):
    try:
        end(f"denied{number}", failure="denied", reason="r" * size, command=f"curl {number} " + "x" * size)
    except AuditUnavailable:
        pass

def use_up_by_denied():
    sizes = (120_000, 120_000, 60_000, 60_000, 30_000, 15_000, 8000, 4000, 2000, 1000, 500, 250, 100, 50, 0)
    for number in range(15):
        for size in sizes:
            deny(number, size)

def ended():
    return {record.get("call_id") for record in records() if record["event"] == "end"}

def begin(count, command="sleep 5"):
    (disk / "filler").unlink()
    for number in range(count):
        start(f"runs{number}", command=command)
    fill()

def ends_lost(count, command="sleep 5"):
    for number in range(count):
        try:
            end(f"runs{number}", command=command)
        except AuditUnavailable:
            pass
    return len({f"runs{number}" for number in range(count)} - ended())

"""


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
@pytest.mark.parametrize(("count", "command"), [(40, "sleep 5"), (400, "sleep 5"), (40, "sleep 5; " + "y" * 20_000)])
def test_denied_calls_of_any_length_do_not_use_up_the_room_for_the_ends_of_what_runs(
    tmp_path, on_failure, count, command
):
    script = f"""
audit = new("{on_failure}")
begin({count}, "{command}")
use_up_by_denied()
lost = ends_lost({count}, "{command}")
show(lost=lost)
"""
    found = run(tmp_path, MODEL + script)
    assert (found["lost"], found["broken"]) == (0, "None")


def test_a_long_line_just_before_the_disk_is_known_to_be_full_does_not_use_the_room_up(tmp_path):
    script = """
(disk / "filler").unlink()
start("runs", command="sleep 5")
fill()
deny(0, 200_000)
denied = records()[-1]
show(denied=denied, shown=len(denied["command"]), lost=[end("runs"), "runs" not in ended()][1])
"""
    found = run(tmp_path, MODEL + script)
    assert found["lost"] is False
    assert found["denied"]["command"].startswith("curl 0 xxx")
    assert found["shown"] == 300
    assert found["denied"]["cut"]["command"]["length"] == 200_007
    assert found["denied"]["cut"]["command"]["sha256"] == sha256(b"curl 0 " + b"x" * 200_000).hexdigest()
    assert "cut" in found["denied"]
    assert len(found["denied"]["reason"]) == 300


def test_while_there_is_room_lines_are_written_whole_also_after_it_was_short(tmp_path):
    script = """
deny(0, 50_000)
(disk / "filler").unlink()
deny(1, 5000)
show(cut=["cut" in record for record in records()[-2:]])
"""
    assert run(tmp_path, MODEL + script)["cut"] == [True, False]


def test_commands_that_run_where_the_model_fills_the_log_are_on_record_as_long_as_short_lines_fit(tmp_path):
    script = """
for number, size in enumerate((120_000, 120_000, 60_000, 60_000, 30_000, 15_000, 8000, 4000, 2000, 1000, 500, 250)):
    deny(number, size)
for number in range(30):
    command = f"echo UNRECORDED-{number}-" + "z" * 300
    start(f"late{number}", command=command)
    end(f"late{number}", command=command)
on_record = [record["command"] for record in records() if record.get("call_id", "").startswith("late")]
show(missing=[n for n in range(30) if not any(f"UNRECORDED-{n}-" in command for command in on_record)])
"""
    found = run(tmp_path, MODEL + script)
    assert (found["missing"], found["gaps"]) == ([], 0)


def test_what_ran_unrecorded_is_counted_by_call_in_one_line_that_the_check_names(tmp_path):
    script = """
begin(3)
number = 0
while not audit.trouble:
    start(f"used{number}")
    number += 1
before = len(records())
for number in range(50):
    start(f"late{number}", command="echo")
    end(f"late{number}", command="echo")
for number in range(30):
    deny(number, 5)
lost = ends_lost(3)
quiet = len(records()) - before
(disk / "filler").unlink()
audit.write(line)
(gap,) = [record for record in records() if record["event"] == "gap"]
named = [str(gap) for gap in check_log(folder).gaps]
show(lost=lost, quiet=quiet, calls=gap["calls"], missing=gap["lines"], named=named)
"""
    found = run(tmp_path, MODEL + script)
    assert found["lost"] == 0
    assert found["quiet"] == 3, "no gap is told in the room for ends"
    assert (found["calls"], found["missing"]) == (1 + 50 + 30, 1 + 100 + 30)
    assert "131 lines of 81 calls could not be written: the disk is full" in found["named"][0]


def test_a_log_that_is_closed_on_a_full_disk_tells_of_its_gap_in_what_room_is_left(tmp_path):
    script = """
number = 0
while not audit.trouble:
    start(f"used{number}")
    number += 1
audit.close()
show(last=records()[-1])
"""
    found = run(tmp_path, MODEL + script)
    assert (found["last"]["event"], found["last"]["calls"]) == ("gap", 1)
