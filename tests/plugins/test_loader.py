"""Sources are loaded side by side, and one that breaks stops no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolyard.plugins.loader import load_all

pytestmark = pytest.mark.anyio


class Source:
    """A source of the test's: it breaks, or waits until the others are loading too."""

    def __init__(self, name: str, error: Exception | None = None, *, at_first: bool = False) -> None:
        self.file = Path(name)
        self.loaded = False
        self._error, self._at_first = error, at_first

    def is_current(self) -> bool:
        return False

    async def load(self, *, without_running: bool = False) -> bool:
        if self._error and without_running == self._at_first:
            raise self._error
        if without_running:
            return False
        await asyncio.sleep(0)
        self.loaded = True
        return True


@pytest.mark.parametrize("at_first", [False, True])
async def test_a_source_that_breaks_is_a_problem_and_the_others_load(at_first):
    broken = Source("broken.py", KeyError("Color"), at_first=at_first)
    others = [Source(f"{number}.py") for number in range(20)]
    failures = await load_all([others[0], broken, *others[1:]])
    assert all(source.loaded for source in others)
    (problem,) = failures.values()
    assert list(failures) == [id(broken)]
    assert (problem.code, str(problem.where)) == ("plugin_crashed", "broken.py")
    assert "KeyError: 'Color'" in problem.message


async def test_nothing_goes_on_loading_after_a_cancellation():
    started, ended = asyncio.Event(), asyncio.Event()

    class Slow(Source):
        async def load(self, *, without_running: bool = False) -> bool:
            if without_running:
                return False
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return True

    loading = asyncio.create_task(load_all([Slow("slow.py")]))
    async with asyncio.timeout(30):
        await started.wait()
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        await ended.wait()
