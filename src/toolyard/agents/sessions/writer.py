"""Who writes the file of all sessions: what must reach the disk a thread, the rest at once where nobody else writes."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import apsw
import msgspec

from toolyard.agents.sessions.database import PATIENCE_MS, StoreError, connect, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Given = TypeVar("Given")
LONGEST_LOG = 1000
"""Pages that wait to be moved from the log into the file; that takes its time, so that only the thread does it."""


class Write(msgspec.Struct, Generic[Given], kw_only=True, eq=False):
    """Something to be written, and who waits for it."""

    action: Callable[[apsw.Connection], Given]
    durable: bool
    then: Callable[[Given], None] | None = None
    """Told what the action gave, in the order of the writes, whether or not somebody still waits."""


class QueuedWrite(msgspec.Struct, kw_only=True, eq=False):
    """A write that the thread does, and the loop in which it is waited for."""

    write: Write[Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class Writer:
    """All writing of one process, by one connection; whatever waits at the same time goes into one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path)
        self._connection.wal_autocheckpoint(0)
        self._connection.set_wal_hook(self._note_log)
        self._log_pages = 0
        self._synchronous = ""
        self._connected = threading.Lock()
        """Held by who uses the connection."""
        self._queue: queue.SimpleQueue[QueuedWrite | None] = queue.SimpleQueue()
        self._under_way: set[QueuedWrite] = set()
        """What the thread has to do, and what its loop has not heard of yet."""
        self._thread = threading.Thread(target=self._work, name="toolyard-store", daemon=True)
        self._thread.start()

    async def run(self, write: Write[Given], *, small: bool = False) -> Given:
        """Carry out an action in a transaction; what it returns.

        What is small and need not reach the disk takes less time than to tell a thread, so that it is done here,
        unless something else is under way, which must come first.
        """
        if small and not write.durable and (results := self._at_once(write)):
            return results[0]
        loop = asyncio.get_running_loop()
        waiting = QueuedWrite(write=write, loop=loop, done=loop.create_future())
        self._under_way.add(waiting)
        self._queue.put(waiting)
        # Who stops waiting does not take back what was asked: a result that is on its way must not get lost.
        return await asyncio.shield(waiting.done)

    def close(self) -> None:
        """End, after all that was asked for."""
        self._queue.put(None)
        self._thread.join()

    def _at_once(self, write: Write[Given]) -> list[Given]:
        """Write without waiting for anybody; what came of it, nothing when somebody else writes or waits to."""
        if self._under_way or self._log_pages >= LONGEST_LOG or not self._connected.acquire(blocking=False):
            return []
        try:
            self._connection.set_busy_timeout(0)
            results: list[Given] = self._carry_out([write])
        except apsw.BusyError:
            return []
        except apsw.Error as error:
            raise StoreError(f"{self._path}: {error}") from None
        finally:
            self._connection.set_busy_timeout(PATIENCE_MS)
            self._connected.release()
        if write.then:
            write.then(results[0])
        return results

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, ended = [first], False
            while not self._queue.empty():
                if (waiting := self._queue.get()) is None:
                    ended = True
                    break
                batch.append(waiting)
            with self._connected:
                self._settle(batch)
                self._shorten_log()
            if ended:
                break
        self._connection.close()

    def _settle(self, batch: list[QueuedWrite]) -> None:
        """All in one transaction; when one fails, each in one of its own, so that it fails alone."""
        try:
            results = self._carry_out([one.write for one in batch])
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._settle([one])
                return
            told = StoreError(f"{self._path}: {error}") if isinstance(error, apsw.Error) else error
            self._tell(batch[0], None, told)
        else:
            for one, result in zip(batch, results, strict=True):
                self._tell(one, result, None)

    def _carry_out(self, writes: Sequence[Write[Any]]) -> list[Any]:
        wanted = "FULL" if any(write.durable for write in writes) else "NORMAL"
        if wanted != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        with transaction(self._connection):
            return [write.action(self._connection) for write in writes]

    def _note_log(self, connection: apsw.Connection, database: str, pages: int) -> int:  # noqa: ARG002
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _shorten_log(self) -> None:
        if self._log_pages < LONGEST_LOG:
            return
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:  # somebody else does it, or the next write will
            return
        self._log_pages = 0

    def _tell(self, waiting: QueuedWrite, result: Any, error: Exception | None) -> None:
        def settle() -> None:
            self._under_way.discard(waiting)
            if error is None and waiting.write.then:
                waiting.write.then(result)
            if waiting.done.done():
                return
            if error is not None:
                waiting.done.set_exception(error)
            else:
                waiting.done.set_result(result)

        try:
            waiting.loop.call_soon_threadsafe(settle)
        except RuntimeError:  # its loop is closed: nobody waits any more
            self._under_way.discard(waiting)
