"""Plugins that watch conversations: started before the first event, told each in order, stopped after the last.

No turn waits for them. What one does wrong or too slowly is logged, and after a few times it is told nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.agents.sessions.event_lines import as_object
from toolyard.agents.sessions.events import PromptGiven, Stored
from toolyard.plugins.author_code.hooks import AuthorCode
from toolyard.plugins.author_code.running import Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.contract import ApplicationContext
    from toolyard.plugins.plugin import Plugin

log = logging.getLogger("toolyard.plugins")
LIMIT = 10.0
"""Seconds for one call of a plugin."""
LAST_WAIT = 15.0
"""Seconds in which all that is left to tell must be told, at the end."""
MOST_WAITING = 1000
"""Events that wait for a plugin, beyond which what is not kept, such as pieces of answers, is not told any more."""
MOST_FAILURES = 3


class EventWatchers:
    """The application plugins of an application, each started once."""

    def __init__(self) -> None:
        self._watchers: dict[int, EventWatcher] = {}

    async def begin(self, plugins: Iterable[Plugin], config: JsonObject) -> list[EventWatcher]:
        """Those of these plugins that watch, started."""
        watching = [plugin for plugin in plugins if plugin.kind == "application"]
        for plugin in watching:
            if id(plugin.instance) not in self._watchers:
                self._watchers[id(plugin.instance)] = watcher = EventWatcher(plugin)
                await watcher.start(config)
        return [self._watchers[id(plugin.instance)] for plugin in watching]

    async def aclose(self) -> None:
        """Tell what is left, then stop each."""
        await asyncio.gather(*(watcher.stop() for watcher in self._watchers.values()))


def told_to(
    watchers: Sequence[EventWatcher], context: Callable[[], ApplicationContext]
) -> Callable[[SessionUpdate], None]:
    """Who hears of what happens in one session; the context is made anew for each thing that is said."""
    known = context()

    def hear(update: SessionUpdate) -> None:
        nonlocal known
        if isinstance(update, Stored) and isinstance(update.event, PromptGiven):
            known = context()
        for watcher in watchers:
            watcher.hear(update, known)

    return hear


class EventWatcher:
    """One plugin, which hears of events one after the other."""

    def __init__(self, plugin: Plugin) -> None:
        self._id = plugin.id
        self._instance = plugin.instance
        wanted = getattr(plugin.instance, "event_types", None)
        self._wanted = frozenset(wanted) if wanted is not None else None
        self._author = AuthorCode(roots=(), limit=LIMIT, file=Path(plugin.id))
        self._queue: asyncio.Queue[tuple[JsonObject, ApplicationContext]] = asyncio.Queue()
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self, config: JsonObject) -> None:
        await self._call("start", {"config": config})
        self._task = asyncio.create_task(self._tell_all())

    def hear(self, update: SessionUpdate, context: ApplicationContext) -> None:
        """Have it told, some time soon."""
        if self._is_given_up or not hasattr(self._instance, "on_event"):
            return
        if not isinstance(update, Stored) and self._queue.qsize() > MOST_WAITING:
            return
        event = as_object(update)
        if self._wanted is None or event["type"] in self._wanted:
            self._queue.put_nowait((event, context))

    async def stop(self) -> None:
        if self._task:
            try:
                async with asyncio.timeout(LAST_WAIT):
                    await self._queue.join()
            except TimeoutError:
                log.warning("the plugin '%s' was not told everything: it takes too long", self._id)
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._call("stop", {})

    @property
    def _is_given_up(self) -> bool:
        return self._failures >= MOST_FAILURES

    async def _tell_all(self) -> None:
        while True:
            event, context = await self._queue.get()
            try:
                if not self._is_given_up:
                    await self._call("on_event", {"event": event, "context": context})
            finally:
                self._queue.task_done()

    async def _call(self, method: str, given: Mapping[str, Any]) -> None:
        function = getattr(self._instance, method, None)
        if not callable(function):
            return
        outcome = await self._author.hook(function, given)
        if isinstance(outcome, Returned):
            self._failures = 0
            return
        self._failures += 1
        problem = self._author.problem(outcome, f"{method} of '{self._id}'")
        given_up = "; it is told nothing more" if self._is_given_up else ""
        log.error("%s%s", problem, given_up)
