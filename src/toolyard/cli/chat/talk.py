"""A person and an agent at one terminal: what is typed is said, commanded or answered; what happens is shown."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from toolyard.agents.checkpoints.store import CheckpointError
from toolyard.agents.sessions.database import StoreError
from toolyard.agents.sessions.events import Stored, TurnEnded
from toolyard.cli.application import known_agent
from toolyard.cli.chat.commands import COMMANDS, run_command
from toolyard.cli.chat.terminal.transcript import cut, said_in_words, usage_text
from toolyard.cli.chat.terminal.typed import read_prompt
from toolyard.cli.render import paint_line, show_note, terminal_width
from toolyard.core.conversation import Usage
from toolyard.errors import ProviderError, ToolyardError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from toolyard.agents.session import AgentSession
    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.agents.sessions.history import History
    from toolyard.app import AgentApplication
    from toolyard.core.content import Part

Thing = TypeVar("Thing")
TICK = 0.25
"""Seconds after which what is under way is drawn again, since the time goes on."""
LEAVING = "Ctrl-D or /quit leaves; /help says what else there is"


class View(Protocol):
    """Shows a turn."""

    def hear(self, update: SessionUpdate) -> None: ...
    def recall(self, history: History) -> None:
        """Show the end of what was said in a session that goes on."""

    def live(self, width: int, rows: int) -> str:
        """What is under way."""


class Screen(Protocol):
    """Where a person types."""

    async def ask(self, label: str, text: str = "") -> str | None: ...
    def leave(self) -> None: ...
    def put_back(self, text: str) -> None: ...
    def refresh(self) -> None: ...


class Talk:
    """The one who listens to both."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._screen: Screen | None = None
        self._app: AgentApplication | None = None
        self._session: AgentSession | None = None
        self._early: list[str] = []
        """Typed before the application was open."""
        self._waiting: list[str] = []
        """Commands that are for the time after the turn."""
        self._work: asyncio.Task[None] | None = None
        self._beside: set[asyncio.Task[None]] = set()
        """Commands that run while a turn does."""
        self._started = 0.0
        self._usage = Usage()
        self._bug: BaseException | None = None
        self._is_closing = False

    # What the program asks of it.

    def sit_at(self, screen: Screen) -> None:
        self._screen = screen

    async def begin(self, app: AgentApplication, session: AgentSession) -> None:
        """Everything is there."""
        self._app = app
        await self._take_up(session)

    def take_early(self) -> None:
        """Take up what was typed before there was an application."""
        early, self._early = self._early, []
        for text in early:
            self.submit(text)

    async def close(self) -> None:
        """End what is under way."""
        self._is_closing = True
        self._stop()
        working = {task for task in (self._work, *self._beside) if task and not task.done()}
        if self._session is None or not self._session.is_working:
            for task in working:
                task.cancel()
        if working:
            await asyncio.wait(working)
        if self._bug:
            raise self._bug

    # What the screen asks of it.

    @property
    def is_working(self) -> bool:
        return self._work is not None and not self._work.done()

    def submit(self, text: str) -> None:
        """Take what was typed: a command, something for the agent that works, or the beginning of a turn."""
        if self._session is None:
            self._early.append(text)
        elif text.lstrip().startswith("/") and "\n" not in text.strip():
            self._take_command(text.strip())
        elif self.is_working:
            self._session.say(self._read(text))
            show_note(f"queued: {text.strip().splitlines()[0]}", "faint")
        else:
            self.say(text)

    def interrupt(self) -> None:
        """End the turn; what was queued comes back to be typed on."""
        if not self.is_working or self._session is None:
            show_note(LEAVING, "faint")
            return
        queued = [*map(said_in_words, self._session.take_back()), *self._waiting]
        self._waiting = []
        if queued and self._screen:
            self._screen.put_back("\n".join(queued))
        self._stop()

    def hurry(self) -> None:
        """Have what was queued read at once; with nothing queued this ends the turn."""
        if self.is_working:
            self._stop()

    def live(self, width: int, rows: int) -> str:
        parts = [self.view.live(width, rows)]
        if self.is_working:
            queued = f", {self._session.queued} queued" if self._session and self._session.queued else ""
            seconds = time.monotonic() - self._started
            parts.append(paint_line(cut(f"… {seconds:.0f} s{queued} (Ctrl-C ends the turn)", width), "faint"))
        return "\n".join(part for part in parts if part)

    def status(self) -> str:
        if self._session is None:
            return paint_line("opening …", "faint")
        used = f" · {usage_text(self._usage)}" if self._usage.input else ""
        line = f"{self._session.agent} · {self._session.id[:8]}{used} · /help"
        return paint_line(cut(line, terminal_width()), "faint")

    # What commands ask of it.

    @property
    def application(self) -> AgentApplication:
        return there(self._app)

    @property
    def conversation(self) -> AgentSession:
        return there(self._session)

    @property
    def lines(self) -> Screen:
        return there(self._screen)

    def leave(self) -> None:
        self.lines.leave()

    def usage(self) -> Usage:
        return self._usage

    def say(self, text: str | None) -> None:
        """Begin a turn; None goes on with one that was cut off."""
        self._start(self._turn(self._read(text) if text is not None else None))

    async def open(self, *, id: str | None = None, agent: str | None = None) -> None:
        """Go on with another session, or with this one and another agent; what fails leaves all as it is."""
        before = self.conversation
        if agent:
            known_agent(self.application.agents(), agent)
        if id == before.id:
            await before.aclose()
        session = await self.application.open_session(agent or (None if id else before.agent), id=id)
        if id != before.id:
            await before.aclose()
        await self._take_up(session)
        show_note(f"session {session.id[:8]}", "faint")

    # Its own.

    async def _take_up(self, session: AgentSession) -> None:
        self._session = session
        ended = [one.event for one in session.history().events if isinstance(one.event, TurnEnded)]
        self._usage = sum((one.usage for one in ended), Usage())
        self.view.recall(session.history())
        self._refresh()

    def _take_command(self, text: str) -> None:
        name = text.split()[0]
        if not self.is_working:
            self._start(run_command(self, text))
        elif name not in COMMANDS or COMMANDS[name].while_working:
            task = asyncio.ensure_future(self._guarded(run_command(self, text)))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
        else:
            self._waiting.append(text)
            show_note(f"{name} waits until the turn is over; Ctrl-C ends it", "faint")

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._started = time.monotonic()
        self._work = asyncio.ensure_future(self._ticking(work))
        self._work.add_done_callback(self._after)

    def _after(self, work: asyncio.Task[None]) -> None:
        """A command may have waited. What nobody foresaw ends the chat, and is told when the terminal is as it was."""
        if not work.cancelled() and (error := work.exception()):
            self._bug = error
            self.leave()
        elif self._waiting and not self._is_closing:
            self._take_command(self._waiting.pop(0))

    def _stop(self) -> None:
        if self._session and self._session.is_working:
            self._session.interrupt()
        elif self._work:
            self._work.cancel()

    async def _ticking(self, work: Coroutine[Any, Any, None]) -> None:
        ticker = asyncio.ensure_future(self._tick())
        try:
            await self._guarded(work)
        finally:
            ticker.cancel()
            asyncio.get_running_loop().call_soon(self._refresh)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._refresh()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What goes wrong is said, and the chat goes on."""
        try:
            await work
        except ProviderError as error:
            show_note(str(error), "error", hint=error.hint)
        except click.ClickException as error:
            show_note(error.format_message(), "error")
        except (ToolyardError, StoreError, CheckpointError, OSError) as error:
            show_note(str(error), "error")

    async def _turn(self, parts: tuple[Part, ...] | None) -> None:
        async for update in self.conversation.send(parts):
            self.view.hear(update)
            if isinstance(update, Stored) and isinstance(update.event, TurnEnded):
                self._usage += update.event.usage
            self._refresh()

    def _refresh(self) -> None:
        if self._screen:
            self._screen.refresh()

    def _read(self, text: str) -> tuple[Part, ...]:
        typed = read_prompt(text, Path(os.getcwd()))
        for problem in typed.problems:
            show_note(problem, "warning")
        return typed.parts


def there(thing: Thing | None) -> Thing:
    """What is there as soon as anybody can ask for it."""
    if thing is None:
        raise RuntimeError("the chat has not begun")
    return thing
