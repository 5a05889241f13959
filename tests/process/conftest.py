"""A desk to run real children from, and to find what they leave behind."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from boxes import Box
from marks import end_marked, fresh_mark, marked
from support import until
from toolyard.process.child import Children, ChildRequest
from toolyard.process.sandbox import secrets
from toolyard.process.sandbox.backends import confinement
from toolyard.process.sandbox.policy import BACKENDS
from toolyard.process.sandbox.secrets import FilesOfRoot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from toolyard.core.tool import Stream
    from toolyard.process.child import ChildOutcome

BASH = shutil.which("bash") or "/bin/bash"
PATIENCE = 30.0
"""No wait of any test is longer; a healthy one needs a fraction."""


class Running:
    """A call under way, and what has been heard of it so far."""

    def __init__(self) -> None:
        self.task: asyncio.Task[ChildOutcome]
        self.pieces: list[tuple[Stream, str]] = []
        self._changed = asyncio.Event()

    def hear(self, stream: Stream, text: str) -> None:
        self.pieces.append((stream, text))
        self._changed.set()

    def heard(self, stream: Stream = "stdout") -> str:
        return "".join(text for source, text in self.pieces if source == stream)

    async def until_heard(self, words: str, stream: Stream = "stdout") -> None:
        async with asyncio.timeout(PATIENCE):
            while words not in self.heard(stream):
                assert not self.task.done(), self.task.result()
                self._changed.clear()
                await self._changed.wait()

    async def outcome(self) -> ChildOutcome:
        async with asyncio.timeout(PATIENCE):
            return await self.task


class Desk:
    """Runs scripts as children. Each has the mark as `$1`, so that all its processes can be found by it."""

    bash = BASH
    python = sys.executable
    patience = PATIENCE

    def __init__(self, children: Children, cwd: Path) -> None:
        self.children = children
        self.cwd = cwd
        self.env = {b"PATH": os.fsencode(os.environ.get("PATH", os.defpath))}
        self.mark = fresh_mark()
        self._running: list[Running] = []

    def request(self, script: str, *words: str, **conditions: Any) -> ChildRequest:
        return self.program(BASH, "-c", script, "tool", self.mark, *words, **conditions)

    def python_request(self, source: str, *words: str, **conditions: Any) -> ChildRequest:
        return self.program(sys.executable, "-I", "-S", "-c", source, self.mark, *words, **conditions)

    def program(self, *argv: str, **conditions: Any) -> ChildRequest:
        return ChildRequest(argv=argv, **({"cwd": self.cwd, "env": self.env} | conditions))

    async def run(self, script: str, *words: str, **conditions: Any) -> ChildOutcome:
        return await self.run_request(self.request(script, *words, **conditions))

    async def run_request(self, request: ChildRequest) -> ChildOutcome:
        async with asyncio.timeout(PATIENCE):
            return await self.children.run(request)

    def start(self, script: str, *words: str, **conditions: Any) -> Running:
        """Begin a call whose output can be heard while it runs."""
        running = Running()
        request = self.request(script, *words, on_output=running.hear, **conditions)
        running.task = asyncio.ensure_future(self.children.run(request))
        self._running.append(running)
        return running

    async def end_all(self) -> None:
        """Whatever a test left running, and the children's owner with it."""
        await self.children.aclose()
        await asyncio.gather(*(running.task for running in self._running), return_exceptions=True)

    def alive(self) -> list[str]:
        """The living processes that carry the mark."""
        return marked(self.mark)

    async def until(self, claim: Callable[[], object]) -> None:
        """Wait for something that another process brings about."""
        await until(claim)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """Children with nothing running yet; whatever a test does, nothing may be left at its end."""
    desk = Desk(Children(), tmp_path)
    yield desk
    async with asyncio.timeout(PATIENCE):
        await desk.end_all()
    if left := desk.alive():
        end_marked(desk.mark)
    assert left == []


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark for processes that no desk starts."""
    mark = fresh_mark()
    yield mark
    end_marked(mark)


@pytest.fixture
def bash() -> str:
    return BASH


@pytest.fixture
def desk_request(tmp_path: Path) -> ChildRequest:
    """A request for tests that bring their own event loop."""
    return ChildRequest(argv=[BASH, "-c", "exit 0"], cwd=tmp_path, env={})


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object]], None]:
    """The same wait for tests that have no event loop."""
    return wait_for


@pytest.fixture
def find_marked() -> Callable[[str], list[str]]:
    return marked


def wait_for(claim: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.01)


@functools.cache
def all_of_root() -> FilesOfRoot:
    return secrets.files_of_root()


@pytest.fixture(autouse=True)
def looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What root keeps on this machine is looked for once: it can take a second before each sandbox without mounts.

    A test that says where to look has what is there at the moment.
    """
    usual = secrets.ROOTS_ALONE

    def files_of_root() -> FilesOfRoot:
        return all_of_root() if usual == secrets.ROOTS_ALONE else secrets.files_of_root()

    monkeypatch.setattr(confinement, "files_of_root", files_of_root)


@pytest.fixture
async def box(tmp_path) -> AsyncIterator[Box]:
    box = Box(Path(os.path.realpath(tmp_path)))
    yield box
    for children in box.open:
        await children.aclose()


@pytest.fixture(params=BACKENDS)
def backend(request) -> str:
    return request.param
