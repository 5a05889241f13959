"""Files behind mounts that others replace: noticed however often, and however long ago, it was asked before."""

from __future__ import annotations

import os

import pytest

from toolyard.process.sandbox.watch import FileWatch


def replace(path) -> None:
    beside = path.with_name("beside")
    beside.write_text("another")
    os.replace(beside, path)


@pytest.mark.parametrize("times_asked_before", range(4))
@pytest.mark.parametrize("how", ["created", "created with its folder", "replaced", "removed", "its folder replaced"])
def test_a_secret_that_changes_is_noticed_at_the_next_question(tmp_path, how, times_asked_before):
    secret = tmp_path / "home" / "keys" / "secret"
    (tmp_path / "home").mkdir()
    if how != "created with its folder":
        secret.parent.mkdir()
    if how in ("replaced", "removed"):
        secret.write_text("one")
    watch = FileWatch(roughly=[str(secret)])
    assert [watch.changed() for _ in range(times_asked_before)] == [False] * times_asked_before
    match how:
        case "replaced":
            replace(secret)
        case "removed":
            secret.unlink()
        case "its folder replaced":
            secret.parent.rename(tmp_path / "before")
            secret.parent.mkdir()
            assert not watch.changed(), "there still is none"
            secret.write_text("new")
        case _:
            secret.parent.mkdir(exist_ok=True)
            secret.write_text("new")
    assert watch.changed()
    watch.close()


@pytest.mark.parametrize("times_asked_before", range(4))
def test_a_guarded_file_that_is_replaced_is_noticed_and_one_that_is_written_is_the_same(tmp_path, times_asked_before):
    guarded = tmp_path / "guarded"
    guarded.write_text("one")
    watch = FileWatch(exactly=[str(guarded)])
    assert not any(watch.changed() for _ in range(times_asked_before))
    guarded.write_text("two")
    assert not watch.changed()
    replace(guarded)
    assert watch.changed()
    watch.close()


def test_one_that_is_asked_once_leaves_the_kernel_alone(tmp_path):
    watch = FileWatch(roughly=[str(tmp_path / "secret")])
    before = len(os.listdir("/proc/self/fd"))
    watch.changed()
    assert len(os.listdir("/proc/self/fd")) == before
    watch.changed()
    assert len(os.listdir("/proc/self/fd")) == before + 1
    watch.close()
