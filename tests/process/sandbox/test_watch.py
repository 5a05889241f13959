"""Files behind mounts that others replace: noticed however often, and however long ago, it was asked before."""

from __future__ import annotations

import os

import pytest

from toolyard.process.sandbox.folder_events import FOLLOW_AT, FolderEvents
from toolyard.process.sandbox.watch import FileWatch


def changed(events, watch) -> bool:
    events.hear()
    return watch.changed()


def looks_due(events, groups) -> list[bool]:
    events.hear()
    return [group.is_look_due(list) for group in groups]


@pytest.fixture
def events():
    events = FolderEvents()
    yield events
    events.close()


def replace(path) -> None:
    beside = path.with_name("beside")
    beside.write_text("another")
    os.replace(beside, path)


@pytest.mark.parametrize("times_asked_before", range(FOLLOW_AT + 2))
@pytest.mark.parametrize("how", ["created", "created with its folder", "replaced", "removed", "its folder replaced"])
def test_a_secret_that_changes_is_noticed_at_the_next_question(tmp_path, events, how, times_asked_before):
    secret = tmp_path / "home" / "keys" / "secret"
    (tmp_path / "home").mkdir()
    if how != "created with its folder":
        secret.parent.mkdir()
    if how in ("replaced", "removed"):
        secret.write_text("one")
    watch = FileWatch(events, secret=[str(secret)])
    assert [changed(events, watch) for _ in range(times_asked_before)] == [False] * times_asked_before
    match how:
        case "replaced":
            replace(secret)
        case "removed":
            secret.unlink()
        case "its folder replaced":
            secret.parent.rename(tmp_path / "before")
            secret.parent.mkdir()
            assert not changed(events, watch), "there still is none"
            secret.write_text("new")
        case _:
            secret.parent.mkdir(exist_ok=True)
            secret.write_text("new")
    assert changed(events, watch)
    watch.close()


@pytest.mark.parametrize("times_asked_before", range(FOLLOW_AT + 2))
@pytest.mark.parametrize("what", ["folder", "link", "folder that a link leads to"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_secret_is_noticed_when_something_far_above_it_is_replaced(
    tmp_path, events, what, levels, times_asked_before
):
    inner = ("a", "b", "c", "secret")
    for name in ("data", "other"):
        tmp_path.joinpath(name, *inner[:3]).mkdir(parents=True)
        tmp_path.joinpath(name, *inner).write_text(name)
    top = tmp_path.joinpath("data", *inner[: 3 - levels])
    way = tmp_path / "way"
    way.symlink_to(top)
    secret = tmp_path.joinpath("data", *inner) if what == "folder" else way.joinpath(*inner[3 - levels :])
    watch = FileWatch(events, secret=[str(secret)])
    assert not any(changed(events, watch) for _ in range(times_asked_before))
    if what == "link":
        way.unlink()
        way.symlink_to(tmp_path.joinpath("other", *inner[: 3 - levels]))
    else:
        top.rename(tmp_path / "before")
        tmp_path.joinpath("other", *inner[: 3 - levels]).rename(top)
    assert changed(events, watch)
    watch.close()


def test_what_happens_beside_folders_further_up_makes_nobody_look(tmp_path, events):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    group = events.new_group()
    for _ in range(FOLLOW_AT):
        group.is_look_due(lambda: [str(inner)])
    (tmp_path / "a" / "beside").touch()
    (tmp_path / "beside").mkdir()
    assert looks_due(events, [group]) == [False]


@pytest.mark.parametrize("times_asked_before", range(FOLLOW_AT + 2))
def test_a_guarded_file_that_is_replaced_is_noticed_and_one_that_is_written_is_the_same(
    tmp_path, events, times_asked_before
):
    guarded = tmp_path / "guarded"
    guarded.write_text("one")
    watch = FileWatch(events, guarded=[str(guarded)])
    assert not any(changed(events, watch) for _ in range(times_asked_before))
    guarded.write_text("two")
    assert not changed(events, watch)
    replace(guarded)
    assert changed(events, watch)
    watch.close()


def test_one_that_is_asked_a_few_times_only_leaves_the_kernel_alone(tmp_path, events):
    watch = FileWatch(events, secret=[str(tmp_path / "secret")])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(FOLLOW_AT - 1):
        changed(events, watch)
    assert len(os.listdir("/proc/self/fd")) == before
    changed(events, watch)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    watch.close()


def test_what_happens_in_one_group_of_folders_is_no_matter_of_another(tmp_path, events):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    groups = []
    for folder in (ours, theirs):
        folder.mkdir()
        groups.append(events.new_group())
        for _ in range(FOLLOW_AT):
            groups[-1].is_look_due(lambda folder=folder: [str(folder)])
    assert looks_due(events, groups) == [False, False]
    (ours / "file").touch()
    assert looks_due(events, groups) == [True, False]


@pytest.mark.parametrize(("writes", "noticed"), [(True, True), (False, False)])
def test_a_file_that_is_written_where_it_is_counts_only_if_that_is_asked_for(tmp_path, events, writes, noticed):
    file = tmp_path / "file"
    file.touch()
    group = events.new_group(writes=writes)
    for _ in range(FOLLOW_AT):
        group.is_look_due(lambda: [str(tmp_path)])
    file.write_text("more")
    assert looks_due(events, [group]) == [noticed]


def test_more_than_the_kernel_can_tell_counts_as_a_change_of_everything(tmp_path, events):
    busy, quiet = tmp_path / "busy", tmp_path / "quiet"
    groups = []
    for folder in (busy, quiet):
        folder.mkdir()
        groups.append(events.new_group())
        for _ in range(FOLLOW_AT):
            groups[-1].is_look_due(lambda folder=folder: [str(folder)])
    for number in range(2000):
        (busy / f"a file with a rather long name {number}").touch()
    assert looks_due(events, groups) == [True, True]
