"""What may be obeyed: not what tools may have changed, unless a person accepted it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from toolyard.files.accepted import accept, accepted_file, revoke
from toolyard.files.door import Door, FileRefused
from toolyard.files.user_folders import records_folder
from toolyard.files.walk import digest, scan
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


def rewrite(file):
    file.write_text("evil")


def replace_by_an_old_one(file):
    (file.parent / "old").rename(file)


def write_with_the_time_of(moment):
    def plant(file):
        rewrite(file)
        os.utime(file, (moment, moment))

    return plant


LATER = {
    "rights": lambda file: file.chmod(0o600),
    "a second name that is removed": lambda file: (file.parent / "second").unlink(),
    "a second name that is moved": lambda file: (file.parent / "second").rename(file.parent / "third"),
    "a way to another name and back": lambda file: file.rename(file.parent / "x").rename(file),
    "a second name that is written": lambda file: (file.parent / "second").open("a").close(),
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
@pytest.mark.parametrize(
    "plant",
    [rewrite, replace_by_an_old_one, write_with_the_time_of(1), write_with_the_time_of(4e9)],
    ids=["written", "moved", "set_back", "set_ahead"],
)
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "old"])
def test_what_tools_wrote_stays_theirs_whatever_changes_later_but_its_content(work, is_new, plant, later):
    file = work / "toolyard.json"
    for name in ["old"] if is_new else ["old", "toolyard.json"]:
        write(work / name)
    past_a_tick(work)
    span = OpenSpan([str(work)], {})
    plant(file)
    (work / "second").hardlink_to(file)
    span.close(time.time(), {})
    past_a_tick(work)
    later(file)
    assert why(file)


def test_what_is_written_by_a_second_name_is_not_taken_for_a_change_of_the_first(work):
    span = OpenSpan([str(work)], {})
    file = write(work / "plugin.py", "evil()\n")
    (work / "notes").hardlink_to(file)
    span.close(time.time(), {})
    past_a_tick(work)
    with (work / "notes").open("a") as notes:
        notes.write("# a line of its owner's\n")
    assert why(file)


@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "in_place"])
@pytest.mark.parametrize("spans", [1, 3])
def test_what_its_owner_writes_while_nothing_runs_is_obeyed_between_whatever_tools_run(work, is_replaced, spans):
    file = write(work / "toolyard.json")
    for number in range(spans):
        past_a_tick(work)
        span = OpenSpan([str(work)], {})
        span.close(time.time(), {})
        past_a_tick(work)
        if is_replaced:
            write(work / "beside", str(number)).rename(file)
            file.chmod(0o600)
        else:
            file.write_text(str(number))
        assert why(file) is None
    past_a_tick(work)
    OpenSpan([str(work)], {})
    assert why(file) is None


def test_what_changes_while_we_clean_up_may_be_theirs(work):
    span = OpenSpan([str(work)], {})
    until = time.time()
    past_a_tick(work)
    edited = write(work / "edited")
    past_a_tick(work)
    began = time.time()
    swept = write(work / "swept")
    span.close(until, {}, [(began, time.time())])
    assert why(edited) is None
    assert why(swept)


def test_a_file_with_the_number_of_the_one_that_was_guarded_is_another_one(work):
    span = OpenSpan([str(work)], {})
    past_a_tick(work)
    file = write(work / "toolyard.json")
    span.close(time.time(), {str(file): identity(os.stat(file))})
    assert why(file), "it came to be while tools ran: the number was used again"


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


def test_a_span_whose_owner_was_killed_lasts_until_somebody_has_cleaned_up(work):
    span = OpenSpan([str(work)], {})
    os.makedirs(records_folder())
    (record := Path(records_folder(), "killed.json")).write_text(json.dumps({"span": str(span.live)}))
    os.close(span._lock)
    past_a_tick(work)
    file = write(work / "toolyard.json")
    assert why(file)
    past_a_tick(work)
    file.write_text("by what goes on")
    assert why(file), "to have looked at it once ends nothing"
    span.live.rename(f"{span.live}.ended")
    os.utime(f"{span.live}.ended")
    record.unlink()
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


def test_what_was_guarded_and_when_nothing_ran_is_still_known_when_there_are_many_records(work):
    guarded = write(work / "toolyard.json")
    past_a_tick(work)
    kept = {str(guarded): identity(os.stat(guarded))}
    for number in range(MOST_SPANS + 5):
        OpenSpan([str(work)], kept).close(time.time(), kept)
        if number == 10:
            past_a_tick(work)
            edited = write(work / "edited")
            past_a_tick(work)
    guarded.chmod(0o600)
    assert [why(guarded), why(edited)] == [None, None]


def test_what_others_could_have_accepted_counts_for_nothing(work):
    OpenSpan([str(work)], {})
    file = write(work / "toolyard.json")
    accept(str(file))
    accepted_file().chmod(0o666)
    assert why(file)


def test_a_tree_with_a_file_that_tools_may_have_written_is_not_obeyed_until_that_is_accepted(work):
    old = write(work / "plug/old.py", "1")
    past_a_tick(work)
    OpenSpan([str(work)], {})
    digest(str(work / "plug"), scan(str(work / "plug")), only_accepted=True)
    new = write(work / "plug/new.py", "2")
    tree = scan(str(work / "plug"))
    with pytest.raises(FileRefused, match=r"new\.py was changed while tools could write it"):
        digest(str(work / "plug"), tree, only_accepted=True)
    accept(str(new))
    assert digest(str(work / "plug"), tree, only_accepted=True) == digest(str(work / "plug"), tree)
    old.write_text("3")
    with pytest.raises(FileRefused, match=r"old\.py was changed"):
        digest(str(work / "plug"), scan(str(work / "plug")), only_accepted=True)
