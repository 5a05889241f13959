"""What may be obeyed: not what tools may have changed, unless a person accepted it."""

from __future__ import annotations

import os
import time

import pytest

from toolyard.files.accepted import accept, accepted_file, revoke
from toolyard.files.door import Door, FileRefused
from toolyard.files.write_times import MOST_SPANS, TICK, OpenSpan, identity, live_folder, may_be_from_tools, record_file


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (work := tmp_path / "work").mkdir()
    return work


def why(file) -> str | None:
    try:
        Door().read_accepted(file, largest=1 << 20)
    except FileRefused as refused:
        return refused.strerror
    return None


def write(file, text="{}"):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def past_a_tick(work) -> None:
    """Wait until a change has a time that is certainly later than that of anything before."""
    probe, moment = work.parent / "probe", time.time() + 2 * TICK
    for _ in range(1_000_000):
        probe.touch()
        if os.stat(probe).st_ctime > moment:
            return
    raise TimeoutError("the clock stands still")


def test_what_is_older_than_any_tool_is_obeyed(work):
    file = write(work / "toolyard.json")
    past_a_tick(work)
    OpenSpan([str(work)], {})
    assert why(file) is None


@pytest.mark.parametrize("name", ["toolyard.json", "below/toolyard.json"])
def test_what_came_to_be_while_tools_could_write_it_is_not_until_it_is_accepted(work, name):
    span = OpenSpan([str(work)], {})
    file = write(work / name)
    assert "was changed while tools could write it" in (why(file) or "")
    span.close(time.time(), {})
    assert why(file), "nor when they have ended"
    kept = accept(str(file))
    assert why(file) is None
    file.write_text("other")
    past_a_tick(work)
    assert why(file) is None, "an edit when nothing ran is its owner's"
    again = OpenSpan([str(work)], {})
    file.write_text("changed again")
    assert why(file)
    file.write_text("{}")
    assert why(file) is None, "this was accepted, whoever wrote it"
    revoke(kept.digest)
    assert why(file)
    again.close(time.time(), {})


def test_times_that_are_set_back_do_not_help(work):
    OpenSpan([str(work)], {})
    file = write(work / "toolyard.json")
    os.utime(file, (1, 1))
    assert why(file)


def test_a_file_that_was_guarded_all_the_time_is_obeyed_whatever_its_owner_wrote_into_it(work):
    file = write(work / "toolyard.json")
    OpenSpan([str(work)], {str(file): identity(os.stat(file))})
    file.write_text("{ }")
    assert why(file) is None
    write(work / "new", "evil").rename(file)
    assert why(file), "but not another file in its place"


def test_what_lies_in_a_folder_that_was_guarded_all_the_time_is_obeyed(work):
    (folder := work / "plugins").mkdir()
    OpenSpan([str(work)], {str(folder): identity(os.stat(folder))})
    write(folder / "new", "{ }").rename(folder / "toolyard.json")
    assert why(folder / "toolyard.json") is None
    folder.rename(work / "moved")
    assert why(write(work / "plugins" / "toolyard.json")), "but not in another one in its place"


def test_elsewhere_nothing_is_asked(work):
    OpenSpan([str(work)], {})
    assert why(write(work.parent / "other" / "toolyard.json")) is None


def test_a_span_whose_owner_was_killed_has_ended(work):
    span = OpenSpan([str(work)], {})
    file = write(work / "toolyard.json")
    os.close(span._lock)  # as the kernel does
    assert why(file)
    past_a_tick(work)
    file.write_text("an edit of its owner")
    assert why(file) is None


def test_whoever_cleaned_up_says_when_a_span_ended(work):
    span = OpenSpan([str(work)], {})
    os.close(span._lock)
    span.live.rename(f"{span.live}.ended")
    os.utime(f"{span.live}.ended")
    past_a_tick(work)
    assert why(write(work / "toolyard.json")) is None


def test_a_record_that_cannot_be_read_trusts_nothing(work):
    file = write(work / "toolyard.json")
    record_file(str(work)).parent.mkdir(parents=True)
    record_file(str(work)).write_text("damaged")
    assert why(file)


def test_records_do_not_grow_without_end_and_never_say_too_little(work):
    lasting = OpenSpan([str(work)], {})
    first = OpenSpan([str(work)], {})
    file = write(work / "toolyard.json")
    first.close(time.time(), {})
    for _ in range(MOST_SPANS + 5):
        OpenSpan([str(work)], {}).close(time.time(), {})
    assert why(write(work / "later")), "one that lasts is never forgotten"
    lasting.close(0.0, {})
    assert record_file(str(work)).read_bytes().count(b'"since"') <= MOST_SPANS
    assert may_be_from_tools(str(file), os.stat(file))
    assert list(live_folder().iterdir()) == []


def test_what_others_could_have_accepted_counts_for_nothing(work):
    OpenSpan([str(work)], {})
    file = write(work / "toolyard.json")
    accept(str(file))
    accepted_file().chmod(0o666)
    assert why(file)
