"""The processes that do the work: one for a call at a time, inside the sandbox of its reach, kept for the next."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.reach import REACHES
from toolyard.process.companion import CompanionRequest
from toolyard.process.json_rpc import JsonRpcClient
from toolyard.process.limits import Limits
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject
    from toolyard.process.json_rpc import RpcAnswer
    from toolyard.process.runner import Runner

log = logging.getLogger("toolyard.files")
PACKAGE_FOLDER = Path(__file__).parents[3]
START = "import sys; sys.path.append(sys.argv[1]); from toolyard.files.workspace.main import main; main()"
"""Run without the environment and the installed packages, which it does not need: it starts in milliseconds."""
KEPT_MEMORY = {b"MALLOC_TRIM_THRESHOLD_": b"33554432", b"MALLOC_MMAP_THRESHOLD_": b"33554432"}
"""Memory for texts of a few megabytes is not given back and asked for again with each: that took longest of all."""
MOST_AT_ONCE = 4
MOST_IDLE = 1
"""Of each reach; a second one is only for calls at the same time."""


class FileWorkers:
    """Started when first needed; one that breaks, or whose call is given up, is replaced."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._idle: dict[Reach, list[JsonRpcClient]] = {reach: [] for reach in REACHES}
        self._room = {reach: asyncio.Semaphore(MOST_AT_ONCE) for reach in REACHES}

    async def ask(self, method: str, params: JsonObject, *, reach: Reach, timeout: float) -> RpcAnswer | None:
        """The answer to a request; None when it takes too long, and then the process is ended."""
        async with self._room[reach]:
            worker = self._take(reach)
            try:
                answer = await worker.ask(method, params).answer(within=timeout)
            except BaseException:
                await run_shielded(worker.aclose("its call was given up"))
                raise
            if answer is None:
                await run_shielded(worker.aclose("its call took too long"))
            else:
                self._give_back(worker, reach)
            return answer

    async def aclose(self) -> None:
        workers = [worker for idle in self._idle.values() for worker in idle]
        self._idle = {reach: [] for reach in REACHES}
        await asyncio.gather(*(worker.aclose() for worker in workers))

    def _take(self, reach: Reach) -> JsonRpcClient:
        idle = self._idle[reach]
        while idle:
            if not (worker := idle.pop()).has_ended:
                return worker
        return JsonRpcClient(self.runner.children[reach].keeper, worker_request(self.runner), log=log)

    def _give_back(self, worker: JsonRpcClient, reach: Reach) -> None:
        if len(self._idle[reach]) < MOST_IDLE:
            self._idle[reach].append(worker)
        else:
            worker.kill("it was not needed any more")


def worker_request(runner: Runner) -> CompanionRequest:
    """How a worker is started; processor time is not limited, because it serves many calls, each with its time."""
    given = runner.limits
    limits = Limits(file_bytes=given.file_bytes, open_files=given.open_files, processes=given.processes)
    argv = [sys.executable, "-I", "-S", "-c", START, str(PACKAGE_FOLDER), "3", "4"]
    return CompanionRequest(argv=argv, cwd="/", env=KEPT_MEMORY, limits=limits, private=True)
