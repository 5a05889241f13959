"""Threads for blocking code of authors: one does one job at a time, and another after one that came to its end."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolyard.errors import ToolStopped

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
MOST_IDLE = 16
"""How many threads wait for a next call; more end with their call."""
LONGEST_IDLE = 10.0
"""How many seconds one waits."""


class ThreadJob(Generic[T]):
    """Something to be done in a thread, in the context of whoever wants it, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self._finished = threading.Lock()
        self._finished.acquire()
        self._changing = threading.Lock()
        self._tell: Callable[[], None] | None = None
        self._thread: int | None = None
        self.outcome: T | None = None
        """Set when it is done; None of one that was stopped while it ended by itself."""
        self.is_done = False
        self.was_stopped = False

    def wait(self, seconds: float) -> bool:
        """Block for a moment; whether it is done."""
        return self._finished.acquire(timeout=seconds)

    def tell(self, tell: Callable[[], None]) -> None:
        """Call this when it is done, in its thread; at once if it is."""
        with self._changing:
            if not self.is_done:
                self._tell = tell
                return
        tell()

    def stop(self) -> None:
        """Raise `ToolStopped` in code that still runs; it arrives at the next step of Python code, not in a C call."""
        import ctypes

        with self._changing:
            if self.is_done or self._thread is None:
                return
            self.was_stopped = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(ToolStopped))

    def run(self) -> None:
        try:
            self._thread = threading.get_ident()
            self.outcome = self._context.run(self._work)
            with self._changing:
                self.is_done = True
        except ToolStopped:  # it came while the work was ending by itself
            self.is_done = True
        self._finished.release()
        if self._tell:
            self._tell()


class JobThread:
    """A thread that does one job after the other."""

    def __init__(self, job: ThreadJob[Any]) -> None:
        self._job: ThreadJob[Any] | None = job
        self._given = threading.Lock()
        self._given.acquire()

    def start(self) -> None:
        threading.Thread(target=self._run, name="toolyard-tool", daemon=True).start()

    def give(self, job: ThreadJob[Any]) -> None:
        self._job = job
        self._given.release()

    def _run(self) -> None:
        while self._job:
            job, self._job = self._job, None
            with contextlib.suppress(ToolStopped):
                job.run()
            # Into one that was stopped the exception may still be on its way.
            if job.was_stopped or not THREADS.rest(self):
                return
            del job
            if not self._given.acquire(timeout=LONGEST_IDLE) and not THREADS.leave(self):
                self._given.acquire()  # it was chosen just now


class JobThreads:
    """Those that wait for a job. There is one such set in a process: an event loop does not own threads."""

    def __init__(self) -> None:
        self._idle: deque[JobThread] = deque()
        self._process = os.getpid()

    def do(self, job: ThreadJob[Any]) -> None:
        """Have it done by a thread that does nothing else meanwhile: one that never ends holds up no other."""
        if self._process != os.getpid():  # a fork, which takes no threads along
            self._idle, self._process = deque(), os.getpid()
        try:
            self._idle.pop().give(job)
        except IndexError:
            JobThread(job).start()

    def rest(self, thread: JobThread) -> bool:
        """Whether a thread should wait for another job."""
        if len(self._idle) >= MOST_IDLE:
            return False
        self._idle.append(thread)
        return True

    def leave(self, thread: JobThread) -> bool:
        """Whether a thread that has waited long may end; not if it was chosen meanwhile."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True


THREADS = JobThreads()
