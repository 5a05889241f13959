"""The terminal of a chat: what is said goes into its history, and below stand what is under way and the line to type.

prompt_toolkit draws the lower part. Whatever `cli.render` writes meanwhile is put above it.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.containers import ConditionalContainer, VerticalAlign
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth

from toolyard.cli.chat.terminal.resized import ResizedApplication
from toolyard.cli.chat.terminal.typed import offers
from toolyard.cli.shell.prompt import CommandHistory, plain_output
from toolyard.process.keeper.terminal_guard import TerminalGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from prompt_toolkit.application import Application
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from toolyard.cli.chat.terminal.listening import Listener

PROMPT = "> "
MOST_TYPED_LINES = 8
MOST_OFFERS = 8
ESCAPE_SECONDS = 0.1
"""How long an Esc may be the beginning of another key, as it is when a terminal sends that."""


class TerminalScreen:
    """A terminal that can move its cursor, for as long as it is entered."""

    def __init__(self, listener: Listener, completer: Completer, history: Path) -> None:
        self._listener = listener
        self._history = CommandHistory(history)
        self._output = plain_output()
        self._label = PROMPT
        self._live = ""
        """What is under way, as it was drawn last."""
        self._question: asyncio.Future[str | None] | None = None
        self._left = asyncio.Event()
        self._buffer = Buffer(
            completer=completer, complete_while_typing=True, history=self._history, multiline=True, name="typed"
        )
        self._app: Application[None] = ResizedApplication(
            layout=self._layout(),
            key_bindings=self._keys(),
            output=self._output,
            input=create_input(sys.stdin),
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            erase_when_done=True,
        )
        self._app.ttimeoutlen = self._app.timeoutlen = ESCAPE_SECONDS
        self._app.before_render += self._look
        self._guard = TerminalGuard(sys.stdin.fileno())
        # Not before the prompt is there, which nobody waits for longer because of it.
        self._app.after_render += lambda _: self._guard.start()
        self._running: asyncio.Task[None] | None = None
        self._streams: tuple[TextIO, TextIO] = (sys.stdout, sys.stderr)

    async def __aenter__(self) -> TerminalScreen:
        self._streams = (sys.stdout, sys.stderr)
        real = sys.stdout
        sys.stdout = sys.stderr = ScreenStream(self, real)
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._app.is_running:
            self._app.exit()
        if self._running:
            await asyncio.wait({self._running})
        sys.stdout, sys.stderr = self._streams
        self._guard.dismiss()
        if kind is None and self._running and (broken := self._running.exception()):
            raise broken

    async def until_left(self) -> None:
        """Wait until the person leaves, or the terminal is gone."""
        await self._left.wait()

    def leave(self) -> None:
        self._left.set()

    def refresh(self) -> None:
        """Draw what is under way again."""
        self._app.invalidate()

    def put_above(self, text: str) -> None:
        """Write into the history of the terminal, above what is under way."""
        if self._app.is_running:
            self._app.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        self._app.invalidate()

    async def ask(self, label: str, text: str = "") -> str | None:
        """A line that answers a question; None when the person gives it up. What was being typed comes back after."""
        draft, self._buffer.text = self._buffer.text, text
        self._buffer.cursor_position = len(text)
        self._label, self._question = label, asyncio.get_running_loop().create_future()
        self._app.invalidate()
        try:
            return await self._question
        finally:
            self._question, self._label = None, PROMPT
            self.put_back(draft)

    def put_back(self, text: str) -> None:
        """Have something in the line again, to be typed on."""
        self._buffer.text = text
        self._buffer.cursor_position = len(text)
        self._app.invalidate()

    async def _run(self) -> None:
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            pass
        finally:
            self._left.set()

    def _submit(self) -> None:
        text = self._buffer.text
        if self._question is not None:
            if not self._question.done():
                self._question.set_result(text)
            return
        self._buffer.reset()
        if text.strip():
            self._history.keep(text)
            self._listener.submit(text)

    def give_up(self) -> None:
        """Ctrl-C: first what is under way, then what is being typed; with neither, how to leave is said."""
        if self._question is not None and not self._question.done():
            self._question.set_result(None)
        if self._buffer.text and not self._listener.is_working:
            self._buffer.reset()
        else:
            self._listener.interrupt()

    def _layout(self) -> Layout:
        has_offers = Condition(lambda: self._buffer.complete_state is not None)
        return Layout(
            HSplit(
                [
                    ConditionalContainer(
                        Window(FormattedTextControl(lambda: ANSI(self._live)), dont_extend_height=True),
                        Condition(lambda: bool(self._live)),
                    ),
                    Window(
                        BufferControl(self._buffer, input_processors=[BeforeInput(lambda: self._label)]),
                        height=Dimension(min=1, max=MOST_TYPED_LINES),
                        wrap_lines=True,
                        dont_extend_height=True,
                    ),
                    ConditionalContainer(CompletionsMenu(max_height=MOST_OFFERS), has_offers),
                    ConditionalContainer(
                        Window(FormattedTextControl(self._status), height=1, dont_extend_height=True), ~has_offers
                    ),
                ],
                align=VerticalAlign.TOP,
            )
        )

    def _status(self) -> ANSI:
        return ANSI(self._listener.status())

    def _look(self, app: Application[None]) -> None:
        """See what is under way, and give rows back that are needed no more; prompt_toolkit would keep them."""
        size = self._output.get_size()
        self._live = self._listener.live(size.columns, max(2, size.rows - MOST_TYPED_LINES))
        drawn = app.renderer.last_rendered_screen
        if drawn and drawn.height > app.layout.container.preferred_height(size.columns, size.rows).preferred:
            app.renderer.erase()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for names, act in (
            (("enter",), self._enter),
            (("escape", "enter"), self._new_line),
            (("c-j",), self._new_line),
            (("c-c",), self.give_up),
            (("escape",), self._escape),
            (("c-d",), self._delete_or_leave),
            (("tab",), self._complete),
            (("c-l",), lambda: self._app.renderer.clear()),
            (("c-z",), lambda: self._app.suspend_to_background()),
        ):
            keys.add(*names)(lambda _, act=act: act())
        return keys

    def _enter(self) -> None:
        offered = self._buffer.complete_state
        if offered and offered.current_completion:
            self._buffer.complete_state = None
        elif self._buffer.text.endswith("\\") and self._question is None:
            self._buffer.delete_before_cursor()
            self._new_line()
        else:
            self._submit()

    def _new_line(self) -> None:
        self._buffer.newline(copy_margin=False)

    def _escape(self) -> None:
        if self._buffer.complete_state:
            self._buffer.cancel_completion()
        elif self._question is not None and not self._question.done():
            self._question.set_result(None)
        else:
            self._listener.hurry()

    def _delete_or_leave(self) -> None:
        if self._buffer.text:
            self._buffer.delete()
        else:
            self.leave()

    def _complete(self) -> None:
        if self._buffer.complete_state:
            self._buffer.complete_next()
        else:
            self._buffer.start_completion(select_first=True)


class ScreenStream(io.TextIOBase):
    """Standard output and error while a screen is there: whole lines go above what is under way."""

    def __init__(self, screen: TerminalScreen, terminal: TextIO) -> None:
        self._screen = screen
        self._terminal = terminal
        self._rest = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return self._terminal.encoding

    def write(self, text: str) -> int:
        lines, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._screen.put_above(f"{lines}\n".replace("\n", "\r\n"))
        return len(text)

    def fileno(self) -> int:
        return self._terminal.fileno()

    def isatty(self) -> bool:
        return True


class ChatCompleter(Completer):
    """Offers commands after a slash and files after an @."""

    def __init__(self, commands: Iterable[str]) -> None:
        self._commands = sorted(commands)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        begun, found = offers(document.text_before_cursor, self._commands, Path(os.getcwd()))
        for name in found:
            yield Completion(name, start_position=-len(begun))
