"""Threads of blocking code: used again after a job that came to its end, and after no other."""

from __future__ import annotations

import os
import threading
import time

import pytest

from support import PATIENCE
from toolyard.errors import ToolStopped
from toolyard.plugins.author_code.threads import JobThread, JobThreads, ThreadJob


def done(threads: JobThreads, work) -> ThreadJob:
    job = ThreadJob(work)
    threads.do(job)
    return job


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> JobThreads:
    made = JobThreads()
    monkeypatch.setattr("toolyard.plugins.author_code.threads.THREADS", made)
    return made


def idle(threads: JobThreads, count: int) -> None:
    """Wait until so many threads have nothing to do."""
    until = time.monotonic() + PATIENCE
    while len(threads._idle) != count:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_thread_does_another_job_after_one_that_ended(threads):
    first = done(threads, threading.get_ident)
    assert first.wait(PATIENCE)
    idle(threads, 1)
    second = done(threads, threading.get_ident)
    assert second.wait(PATIENCE)
    assert first.outcome == second.outcome


def test_a_job_that_does_not_end_holds_up_no_other(threads):
    go = threading.Event()
    stuck = done(threads, lambda: go.wait(PATIENCE) and threading.get_ident())
    other = done(threads, threading.get_ident)
    assert other.wait(PATIENCE)
    assert not stuck.is_done
    go.set()
    assert stuck.wait(PATIENCE)
    assert stuck.outcome != other.outcome


def test_a_thread_that_was_stopped_is_not_used_again(threads):
    begun = threading.Event()
    caught: list[BaseException] = []

    def work() -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.001)
        except ToolStopped as stopped:
            caught.append(stopped)

    job = done(threads, work)
    assert begun.wait(PATIENCE)
    job.stop()
    assert job.wait(PATIENCE)
    assert caught
    after = done(threads, lambda: 1)
    assert after.wait(PATIENCE)
    idle(threads, 1)


def test_who_asks_after_the_end_is_told_at_once(threads):
    job = done(threads, lambda: 1)
    assert job.wait(PATIENCE)
    told: list[int] = []
    job.tell(lambda: told.append(1))
    assert told == [1]


def test_a_thread_that_waited_long_ends_unless_it_was_chosen_meanwhile(threads):
    resting = JobThread(ThreadJob(lambda: None))
    assert threads.rest(resting)
    assert threads.leave(resting)
    assert not threads.leave(resting)


def test_a_forked_process_starts_threads_of_its_own(threads):
    assert done(threads, lambda: 1).wait(PATIENCE)
    idle(threads, 1)
    pid = os.fork()
    if not pid:
        os._exit(0 if done(threads, lambda: 1).wait(PATIENCE) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
