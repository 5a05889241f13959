"""The audit log: one file for each day, whole lines in one chain, said once when it fails."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from toolyard.config.settings import AuditPolicy
from toolyard.core.tool import ToolResult
from toolyard.files import locks
from toolyard.runtime.audit import writers as audit_writers
from toolyard.runtime.audit.chain import Head, head_path, seal
from toolyard.runtime.audit.log import AuditUnavailable, NdjsonAudit
from toolyard.runtime.audit.record import outcome_record
from toolyard.runtime.audit.verify import check_log
from toolyard.runtime.audit.writers import LogLock, log_id, own_place

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CHAIN = ("seq", "prev", "hash")


def make(folder, *, on_failure="continue", said=None, clock=lambda: NOON):
    said = [] if said is None else said
    policy = AuditPolicy(on_failure=on_failure)
    return NdjsonAudit(folder, policy=policy, on_failure=said.append, clock=lambda: nanoseconds(clock()))


def nanoseconds(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000_000 + time.microsecond * 1000


def write(folder, *numbers, **options):
    """Lines by a writer of their own."""
    audit = make(folder, **options)
    for number in numbers:
        audit.write({"n": number})
    audit.close()


def at(*times):
    """A clock that shows these times."""
    shown = iter(times)
    return lambda: next(shown)


def records(folder) -> list[dict]:
    lines = [line for file in sorted(folder.glob("*.ndjson")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def day(folder, name="2026-01-02") -> Path:
    return folder / f"{name}.ndjson"


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "deep" / "audit"


def test_half_a_character_is_written_as_its_escape(folder):
    audit = make(folder)
    audit.write({"tool": "a\ud800", "cwd": folder, "argv": ("ü",)})
    audit.close()
    (record,) = records(folder)
    assert (record["tool"], record["cwd"], record["argv"]) == ("a\ud800", str(folder), ["ü"])


def test_midnight_begins_a_new_file(folder):
    times = [datetime(2026, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)]
    write(folder, 1, 2, clock=at(*times))
    files = {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
    assert {name: {key: line[key] for key in line if key not in CHAIN} for name, line in files.items()} == {
        "2026-01-02.ndjson": {"time": "2026-01-02T23:59:59.999999+00:00", "n": 1},
        "2026-01-03.ndjson": {"time": "2026-01-03T00:00:00.000000+00:00", "n": 2},
    }
    assert files["2026-01-03.ndjson"]["prev"] == files["2026-01-02.ndjson"]["hash"]
    assert [line["seq"] for line in files.values()] == [1, 1]
    assert check_log(folder).broken is None


def test_a_clock_that_was_wrong_once_does_not_decide_where_later_lines_go(folder):
    future = datetime(2031, 5, 6, tzinfo=UTC)
    write(folder, 1, 2, 3, 4, clock=at(NOON, future, NOON, datetime(2026, 1, 3, tzinfo=UTC)))
    write(folder, 5, clock=at(datetime(2026, 1, 4, tzinfo=UTC)))
    found = {file.stem: [record["n"] for record in parsed(file)] for file in folder.iterdir()}
    assert found == {"2026-01-02": [1, 3], "2026-01-03": [4], "2026-01-04": [5], "2031-05-06": [2]}
    assert check_log(folder) == replace(check_log(folder), lines=5, days=4, broken=None)


WHEN = [datetime(2026, 1, number, tzinfo=UTC) for number in (1, 2, 3)] + [datetime(2031, 1, 1, tzinfo=UTC)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(WHEN), st.integers(0, 1), st.integers(0, 400) | st.none()), max_size=12),
    head_lost=st.booleans(),
)
def test_whatever_the_clock_shows_and_wherever_a_writer_dies_the_chain_goes_on(tmp_path, steps, head_lost):
    """Two writers with clocks of their own; one dies after any byte of a line, before its head is written."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "audit"
    shown = [NOON]
    writers = [make(folder, clock=lambda: shown[0]) for _ in range(2)]
    for number, (when, who, dies_after) in enumerate(steps):
        shown[0] = when
        writers[who].write({"n": number})
        assert check_log(folder).broken is None
        if dies_after is not None:
            die_within_a_line(folder, {"n": "lost", "text": "x" * 200}, when, dies_after)
    for writer in writers:
        writer.close()
    if head_lost:
        head_path(folder).unlink(missing_ok=True)
    write(folder, "last", clock=lambda: shown[0])
    checked = check_log(folder)
    assert checked.broken is None, checked.broken
    kept = {record["n"] for file in folder.iterdir() for record in parsed(file) if "n" in record}
    assert kept >= {*range(len(steps)), "last"}, "nothing that was written is gone"


def parsed(file):
    for line in file.read_text().splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def die_within_a_line(folder, record, when, size):
    """What a writer leaves that is killed while it writes: so many bytes of its line, or all, and the head before."""
    head = head_path(folder).read_bytes()
    before = {file: file.stat().st_size for file in folder.iterdir()}
    last = Head.read(head)
    if last is None or last.day != f"{when:%Y-%m-%d}":
        return
    line, _ = seal(f"{when:%Y-%m-%dT%H:%M:%S}.000000+00:00", record, last)
    file = day(folder, last.day)
    with file.open("ab") as log:
        log.write(line[:size])
    assert file.stat().st_size - before[file] == min(size, len(line))


def test_lines_are_added_to_what_is_there_and_only_the_owner_may_read_them(folder):
    for number in range(3):
        write(folder, number)
    (file,) = folder.iterdir()
    assert [line["n"] for line in records(folder)] == [0, 1, 2]
    assert file.stat().st_mode & 0o777 == 0o600
    assert head_path(folder).stat().st_mode & 0o777 == 0o600


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


@contextmanager
def room_for(size):
    """A disk on which a file can have so many bytes; Python ignores the signal that comes with the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_failure(folder):
    write(folder, 1)
    said: list[str] = []
    with room_for(day(folder).stat().st_size):
        write(folder, 2, said=said)
    assert said == ["the audit log cannot be written: File too large"]
    assert check_log(folder).broken is None
    write(folder, 3)
    assert gaps(folder) == [(0, 1, "File too large")]


def test_a_disk_that_fills_in_the_middle_of_a_line_leaves_a_log_that_goes_on(folder):
    write(folder, 1)
    said: list[str] = []
    with room_for(day(folder).stat().st_size + 50):
        write(folder, 2, said=said)
    assert said == ["the audit log cannot be written: the disk is full"]
    assert check_log(folder).broken is None, "of a line that has no room nothing stays"
    write(folder, 3)
    assert check_log(folder).broken is None
    assert gaps(folder) == [(0, 1, "the disk is full")]


@pytest.mark.parametrize("make_other", [lambda path: path.symlink_to("elsewhere"), os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_written_to(folder, make_other):
    folder.mkdir(parents=True)
    make_other(day(folder))
    said: list[str] = []
    write(folder, 1, said=said)
    assert len(said) == 1
    assert not (folder / "elsewhere").exists()


def test_a_line_that_a_crash_tore_is_closed_by_a_line_that_tells_of_it(folder):
    write(folder, 1, 2)
    with day(folder).open("a") as log:
        log.write('{"n": 3, "half')
    broken = check_log(folder).broken
    assert broken is not None
    assert (broken.line, "cut short" in broken.reason) == (3, True)
    before = day(folder).read_bytes()
    write(folder, 4)
    assert day(folder).read_bytes().startswith(before + b"\n"), "nothing that was written is changed"
    repair = json.loads(day(folder).read_text().splitlines()[3])
    assert (repair["event"], repair["found"]) == ("repair", "torn or foreign lines")
    assert check_log(folder).broken is None


def test_a_line_torn_yesterday_is_closed_in_yesterdays_file(folder):
    write(folder, 1)
    with day(folder).open("a") as log:
        log.write('{"half')
    write(folder, 2, clock=lambda: datetime(2026, 1, 3, tzinfo=UTC))
    assert day(folder).read_text().count("\n") == 3
    assert day(folder, "2026-01-03").read_text().count("\n") == 1
    assert check_log(folder).broken is None


def test_a_torn_line_that_is_changed_afterwards_is_found(folder):
    write(folder, 1)
    with day(folder).open("a") as log:
        log.write('{"half')
    write(folder, 2)
    day(folder).write_text(day(folder).read_text().replace('{"half', '{"gone'))
    assert str(check_log(folder).broken) == f"{day(folder)}:2: it is not a line of the log"


def test_a_writer_that_is_killed_between_a_line_and_its_head_costs_nothing(folder):
    write(folder, 1)
    head = head_path(folder).read_bytes()
    write(folder, 2, 3)
    head_path(folder).write_bytes(head)
    assert check_log(folder).broken is None
    write(folder, 4)
    assert [line["n"] for line in records(folder)] == [1, 2, 3, 4]
    assert check_log(folder).broken is None


def test_a_writer_that_is_killed_before_it_says_that_a_day_began_costs_nothing(folder):
    write(folder, 1)
    head = head_path(folder).read_bytes()
    tomorrow = datetime(2026, 1, 3, tzinfo=UTC)
    write(folder, 2, clock=lambda: tomorrow)
    head_path(folder).write_bytes(head)
    write(folder, 3, clock=lambda: tomorrow)
    assert [line["n"] for line in records(folder)] == [1, 2, 3]
    assert check_log(folder).broken is None


def test_a_line_that_somebody_else_wrote_meanwhile_is_followed(folder):
    first = make(folder)
    first.write({"n": 1})
    write(folder, 2)
    first.write({"n": 3})
    with day(folder).open("a") as log:
        log.write('{"half')
    first.write({"n": 4})
    write(folder, 5, clock=lambda: datetime(2026, 1, 3, tzinfo=UTC))
    first.write({"n": 6})
    first.close()
    found = [json.loads(line) for line in day(folder).read_text().splitlines() if line != '{"half']
    assert [line.get("found", line.get("n")) for line in found] == [1, 2, 3, "torn or foreign lines", 4, 6]
    assert [json.loads(line)["n"] for line in day(folder, "2026-01-03").read_text().splitlines()] == [5]
    assert check_log(folder).broken is None


def drop(*numbers):
    return lambda lines: [line for number, line in enumerate(lines, 1) if number not in numbers]


def change(lines):
    lines[1] = lines[1].replace('"n":2', '"n":9')
    return lines


def swap(lines):
    lines[1], lines[2] = lines[2], lines[1]
    return lines


def forge(lines):
    """A line with a hash that fits itself."""
    from toolyard.runtime.audit.chain import Head, seal

    lines.insert(2, seal("", {"n": 9}, Head("2026-01-02", 0, 2, json.loads(lines[1])["hash"]))[0].decode())
    return lines


@pytest.mark.parametrize(
    ("how", "place", "reason"),
    [
        (change, 2, "it was changed after it was written"),
        (drop(1), 1, "it does not follow the line before"),
        (drop(2), 2, "it does not follow the line before"),
        (drop(4), None, "lines are missing at its end, up to line 4 of 2026-01-02"),
        (drop(3, 4), None, "lines are missing at its end, up to line 4 of 2026-01-02"),
        (drop(1, 2, 3, 4), None, "lines are missing at its end"),
        (swap, 2, "it does not follow the line before"),
        (forge, 4, "it does not follow the line before"),
        (lambda lines: [*lines[:2], '{"n":9}\n', *lines[2:]], 3, "it is not a line of the log"),
        (lambda lines: [*lines, '{"n":9}\n'], 5, "it is not a line of the log"),
        (lambda lines: [*lines, "\n", "\n"], 6, "it is not a line of the log"),
        (lambda lines: [*lines, lines[0]], 5, "it does not follow the line before"),
        (lambda lines: [line.replace(',"hash":', ', "hash":') for line in lines], 2, "it is not a line of the log"),
    ],
)
def test_the_first_line_that_is_not_what_was_written_is_named(folder, how, place, reason):
    write(folder, 1, 2, 3, 4)
    assert check_log(folder).broken is None
    day(folder).write_text("".join(how(day(folder).read_text().splitlines(keepends=True))))
    broken = check_log(folder).broken
    assert broken is not None
    assert (broken.file, broken.line) == (day(folder), place)
    assert broken.reason.startswith(reason)


def test_what_was_removed_stays_missed_when_the_log_goes_on(folder):
    write(folder, 1, 2, 3)
    day(folder).write_text("".join(day(folder).read_text().splitlines(keepends=True)[:2]))
    write(folder, 4)
    assert [line.get("found", line.get("n")) for line in records(folder)] == [1, 2, "missing lines", 4]
    assert str(check_log(folder).broken).startswith(f"{day(folder)}:3: it does not follow")


def test_a_day_that_is_removed_between_others_is_missed_and_one_before_all_others_is_not(folder):
    write(folder, 1, 2, 3, clock=at(*(datetime(2026, 1, number, tzinfo=UTC) for number in (1, 2, 3))))
    assert check_log(folder).starts_at_the_beginning
    day(folder, "2026-01-01").unlink()
    checked = check_log(folder)
    assert (checked.broken, checked.starts_at_the_beginning) == (None, False)
    day(folder, "2026-01-02").rename(folder / "away")
    day(folder, "2026-01-03").rename(day(folder, "2026-01-01"))
    assert "lines are missing" in str(check_log(folder).broken)


def test_a_log_without_its_head_is_not_whole_and_says_so_when_it_goes_on(folder):
    write(folder, 1, 2)
    head_path(folder).unlink()
    assert str(check_log(folder).broken).startswith(f"{head_path(folder)}: it is missing")
    write(folder, 3)
    assert records(folder)[2]["found"] == "no head"
    assert check_log(folder).broken is None


def test_a_file_that_is_taken_from_under_a_writer_is_noticed(folder):
    audit = make(folder)
    audit.write({"n": 1})
    day(folder).unlink()
    audit.write({"n": 2})
    audit.close()
    assert [line.get("found", line.get("n")) for line in records(folder)] == ["missing lines", 2]
    assert check_log(folder).broken is not None


def test_a_head_that_is_taken_from_under_a_writer_breaks_no_chain(folder):
    first, second = make(folder), make(folder)
    first.write({"n": 1})
    head_path(folder).unlink()
    first.write({"n": 2})
    second.write({"n": 3})
    first.write({"n": 4})
    second.write({"n": 5})
    first.close()
    second.close()
    assert [line.get("found", line.get("n")) for line in records(folder)] == [1, 2, "no head", 3, 4, 5]
    assert check_log(folder).broken is None


def test_a_line_behind_the_head_is_told_until_the_next_one_takes_it_over(folder):
    write(folder, 1, 2)
    head = head_path(folder).read_bytes()
    line, _ = seal("2026-01-02T00:00:00.000000+00:00", {"event": "forged"}, Head.read(head))
    with day(folder).open("ab") as log:
        log.write(line)
    checked = check_log(folder)
    assert (checked.broken, checked.behind_head, checked.is_whole) == (None, 1, False)
    write(folder, 3)
    assert check_log(folder).is_whole


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_an_emptied_log_is_not_an_empty_one(folder, left):
    write(folder, 1, 2)
    head_path(folder).unlink()
    if left == "nothing":
        day(folder).unlink()
    else:
        day(folder).write_bytes(b"")
    checked = check_log(folder)
    assert not checked.is_whole
    assert "head" in str(checked.broken)


def test_an_empty_log_is_whole(folder):
    assert check_log(folder).broken is None


WRITER = """
import sys
from pathlib import Path
from toolyard.runtime.audit.log import NdjsonAudit
audit = NdjsonAudit(Path(sys.argv[1]), on_failure=sys.exit)
for number in range(int(sys.argv[2])):
    audit.write({"n": number, "who": sys.argv[3], "text": "x" * (number % 3000)})
"""


def test_several_processes_write_one_chain(folder):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, "100", str(who)]) for who in range(3)]
    while any(writer.poll() is None for writer in writers):
        assert check_log(folder).broken is None, "also while it is being written"
    assert [writer.wait() for writer in writers] == [0] * 3
    lines = records(folder)
    for who in "012":
        assert [line["n"] for line in lines if line["who"] == who] == [*range(100)]
    assert check_log(folder).lines == 300


@pytest.mark.parametrize("kind", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_whoever_locks_the_head_does_not_stop_recording_but_is_told_of(folder, kind):
    said: list[str] = []
    write(folder, 1)
    with head_path(folder).open() as held:
        fcntl.flock(held, kind)
        write(folder, 2, 3, said=said)
        assert check_log(folder).broken is None
    write(folder, 4)
    assert said == []
    disturbed = "a lock on the head that is not given back; recording goes on"
    assert [line.get("found", line.get("n")) for line in records(folder)] == [1, disturbed, 2, 3, 4]
    assert check_log(folder).is_whole


@pytest.mark.parametrize("lock", [fcntl.F_RDLCK, fcntl.F_WRLCK])
def test_locks_of_another_sort_on_the_head_and_on_the_files_stop_nothing(folder, lock):
    write(folder, 1)
    source = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, int(sys.argv[2])); print(flush=True); input()"
    )
    kind = str(fcntl.LOCK_SH if lock == fcntl.F_RDLCK else fcntl.LOCK_EX)
    argv = [sys.executable, "-c", source]
    with ExitStack() as held:
        for path in (head_path(folder), day(folder)):
            process = subprocess.Popen([*argv, path, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            held.enter_context(process)
            held.callback(process.kill)
            assert process.stdout.readline() == b"\n"
        write(folder, 2)
    assert [line["n"] for line in records(folder)] == [1, 2]


@contextmanager
def locked(folder):
    """Our own lock, held by another application that was stopped."""
    lock = LogLock(folder)
    with head_path(folder).open("r+") as head:
        lock.take(head.fileno())
        try:
            yield
        finally:
            lock.close()


def test_our_own_lock_that_is_never_let_go_is_a_failure_and_a_gap(folder, monkeypatch):
    monkeypatch.setattr(audit_writers, "LOCK_PATIENCE", 0.0)
    said: list[str] = []
    write(folder, 1)
    with locked(folder):
        audit = make(folder, said=said)
        for number in (2, 3):
            audit.write({"event": "start", "call_id": f"call-{number}"})
            audit.write({"event": "end", "call_id": f"call-{number}"})
    assert said == ["the audit log cannot be written: another application holds its lock"]
    audit.write({"n": 4})
    audit.close()
    assert gaps(folder) == [(2, 4, "another application holds its lock")]
    gap = records(folder)[1]
    assert (gap["call_ids"], gap["since"]) == (["call-2", "call-3"], "2026-01-02T12:00:00.000000+00:00")
    assert check_log(folder).broken is None
    assert not check_log(folder).is_whole


def test_only_the_first_of_several_failures_waits_for_a_lock(folder, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(audit_writers, "LOCK_PATIENCE", 0.05)
    # Not slept, but asked for again and again; only there, since threads of others may sleep meanwhile.
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append, time=time.time)
    monkeypatch.setattr(locks, "time", clock)
    write(folder, 1)
    with locked(folder):
        audit = make(folder)
        audit.write({})
        waited = len(waits)
        for _ in range(50):
            audit.write({})
    assert waited > 0
    assert len(waits) == waited
    audit.close()


def gaps(folder) -> list[tuple[int, int, str]]:
    return [(gap.calls, gap.lines, gap.reason) for gap in check_log(folder).gaps]


def test_what_an_application_could_not_write_until_its_end_is_written_by_the_next(folder):
    write(folder, 1)
    with room_for(day(folder).stat().st_size):
        write(folder, 2, 3)
    write(folder, 4)
    assert [line.get("event", line.get("n")) for line in records(folder)] == [1, "gap", 4]
    assert gaps(folder) == [(0, 2, "File too large")]
    write(folder, 5)
    assert len(gaps(folder)) == 1, "once"


def test_a_loss_of_many_calls_is_counted_and_some_are_named(folder):
    write(folder, 0)
    audit = make(folder)
    with room_for(day(folder).stat().st_size):
        for number in range(100):
            audit.write({"event": "start", "session": "s", "call_id": f"call-{number}"})
            audit.write({"event": "end", "session": "s", "call_id": f"call-{number}"})
    audit.close()
    assert gaps(folder) == [(100, 200, "File too large")]
    assert len(records(folder)[1]["call_ids"]) == 20


KILLED = """
import os, signal, sys
from pathlib import Path
from toolyard.runtime.audit.log import NdjsonAudit
audit = NdjsonAudit(Path(sys.argv[1]), on_failure=sys.exit)
session = str(os.getpid())
for number in range(3):
    audit.write({"event": "start", "session": session, "call_id": f"call-{number}"})
audit.write({"event": "end", "session": session, "call_id": "call-1"})
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
print("waits", flush=True)
input()
"""


def kill_application(folder):
    ran = subprocess.run([sys.executable, "-c", KILLED, folder, "kill"], timeout=60)
    assert ran.returncode == -signal.SIGKILL


def test_calls_of_an_application_that_was_killed_are_told_of_once(folder):
    kill_application(folder)
    assert check_log(folder).broken is None
    for number in range(2):
        write(folder, number)
    assert gaps(folder) == [(2, 0, "an application ended before it recorded the end of its calls")]
    gap = next(record for record in records(folder) if record.get("event") == "gap")
    assert gap["call_ids"] == ["call-0", "call-2"]
    assert check_log(folder).is_whole, "the calls are on record, if not their ends"
    assert str(check_log(folder).gaps[0]).endswith("2 calls have no end: " + gap["reason"])


def test_calls_of_an_application_that_lives_are_not_taken_for_interrupted(folder):
    argv = [sys.executable, "-c", KILLED, folder, "wait"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout.readline() == "waits\n"
        kill_application(folder)
        write(folder, 1)
        assert [calls for calls, _, _ in gaps(folder)] == [2], "only of the one that was killed"
        living.kill()
    write(folder, 2)
    assert [calls for calls, _, _ in gaps(folder)] == [2, 2]


def test_calls_from_before_the_start_of_the_machine_are_told_of_though_nobody_remembers_their_application(folder):
    kill_application(folder)
    for file in own_files(folder):
        os.unlink(file)
    os.utime(head_path(folder), (1, 1))
    write(folder, 1)
    assert [calls for calls, _, _ in gaps(folder)] == [2]
    os.utime(head_path(folder), (1, 1))
    write(folder, 2)
    assert [calls for calls, _, _ in gaps(folder)] == [2], "once"


def own_files(folder) -> list[str]:
    place = own_place(folder)
    return [os.path.join(place, name) for name in os.listdir(place) if name.startswith(log_id(folder))]


def test_an_application_that_ends_well_leaves_nothing_in_memory(folder):
    audit = make(folder)
    audit.write({"n": 1})
    assert len(own_files(folder)) == 1
    audit.close()
    assert own_files(folder) == []


def test_the_place_of_the_lock_is_used_only_if_nobody_else_could_have_made_it(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_writers, "PLACES", (str(tmp_path / "shm"), str(tmp_path / "other")))
    for name in ("shm", "other"):
        (tmp_path / name).mkdir()
    folder.mkdir(parents=True)
    squatted = tmp_path / "shm" / f"toolyard-audit-{os.geteuid()}"
    squatted.symlink_to(tmp_path)
    assert own_place(folder) == str(tmp_path / "other" / squatted.name)
    squatted.unlink()
    squatted.mkdir(mode=0o777)
    squatted.chmod(0o777)
    assert own_place(folder) == str(tmp_path / "other" / squatted.name)
    (tmp_path / "other" / squatted.name).chmod(0o755)
    assert own_place(folder) is None
    write(folder, 1)
    with head_path(folder).open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        said: list[str] = []
        monkeypatch.setattr(audit_writers, "LOCK_PATIENCE", 0.0)
        write(folder, 2, said=said)
    assert said == ["the audit log cannot be written: another process holds its lock"]


def test_nothing_but_the_log_and_its_head_is_left_open(folder):
    before = os.listdir("/proc/self/fd")
    write(folder, 1, 2, clock=at(NOON, datetime(2026, 1, 3, tzinfo=UTC)))
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("later", ["2026-01-02", "2026-01-03", "2026-01-04"])
def test_a_writer_that_is_killed_when_the_head_says_that_a_day_begins_costs_nothing(folder, later):
    write(folder, 1)
    (first,) = records(folder)
    head_path(folder).write_bytes(Head("2026-01-03", 0, 0, first["hash"]).as_bytes())
    assert check_log(folder).broken is None
    write(folder, 2, clock=lambda: datetime.fromisoformat(f"{later}T12:00:00+00:00"))
    assert [line["n"] for line in records(folder)] == [1, 2]
    assert check_log(folder).broken is None


def test_how_long_a_call_took_is_told_in_milliseconds():
    result = ToolResult(text="", exit_code=3, failure="exit_code", bytes_out=7)
    record = outcome_record(result, 1.5)
    assert (record["ms"], outcome_record(result, 0.000_25)["ms"]) == (1500.0, 0.25)
    assert (record["exit"], record["failure"], record["timed_out"], record["truncated"]) == (
        3,
        "exit_code",
        False,
        False,
    )
    assert outcome_record(ToolResult(text="", failure="timeout"), 0)["timed_out"] is True
    assert record["bytes_out"] == 7
