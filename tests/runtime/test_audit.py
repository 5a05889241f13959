"""The audit log: one file for each day, whole lines in one chain, said once when it fails."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolyard.config.settings import AuditPolicy
from toolyard.runtime.audit import chain as audit_chain
from toolyard.runtime.audit.chain import head_path
from toolyard.runtime.audit.log import AuditUnavailable, NdjsonAudit
from toolyard.runtime.audit.verify import check_log

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


def test_a_clock_that_is_set_back_writes_into_no_day_that_is_over(folder):
    write(folder, 1, 2, clock=at(datetime(2026, 1, 3, tzinfo=UTC), NOON))
    assert [file.name for file in folder.iterdir()] == ["2026-01-03.ndjson"]
    assert check_log(folder).broken is None


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


def test_a_disk_that_fills_in_the_middle_of_a_line_leaves_a_log_that_goes_on(folder):
    write(folder, 1)
    said: list[str] = []
    with room_for(day(folder).stat().st_size + 50):
        write(folder, 2, said=said)
    assert said == ["the audit log cannot be written: the disk is full"]
    assert "cut short" in str(check_log(folder).broken)
    write(folder, 3)
    assert check_log(folder).broken is None


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
    assert [line.get("found", line.get("n")) for line in found] == [1, 2, 3, "torn or foreign lines", 4]
    assert [json.loads(line)["n"] for line in day(folder, "2026-01-03").read_text().splitlines()] == [5, 6]
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


def test_a_lock_that_is_never_let_go_is_a_failure_and_not_a_hang(folder, monkeypatch):
    monkeypatch.setattr(audit_chain, "LOCK_PATIENCE", 0.0)
    said: list[str] = []
    write(folder, 1)
    with head_path(folder).open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        write(folder, 2, said=said)
    assert said == ["the audit log cannot be written: another process holds its lock"]
    write(folder, 3)
    assert check_log(folder).broken is None


def test_nothing_but_the_log_and_its_head_is_left_open(folder):
    before = os.listdir("/proc/self/fd")
    write(folder, 1, 2, clock=at(NOON, datetime(2026, 1, 3, tzinfo=UTC)))
    assert os.listdir("/proc/self/fd") == before
