"""Markdown that comes piece by piece: whole blocks are drawn once, the open one anew with each piece."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.screen_text import as_seen

if TYPE_CHECKING:
    from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(```+|~~~+)[ \t]*([\w+#.-]*)")
ITEM = re.compile(r"([-*+]|\d{1,9}[.)])\s")
MOST_OPEN_LINES = 24
"""Lines of code, or of a list, after which what is there is drawn for good, so that a word costs no more at its end."""
TRAILING_BLANKS = re.compile(r"[ \t]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


class Block(msgspec.Struct, frozen=True):
    """A piece of Markdown that can be drawn by itself; `language` is None for all that is no code."""

    text: str
    language: str | None = None
    goes_on: bool = False
    """Whether more of the same listing or list follows."""


class MarkdownStream:
    """Cuts what comes into blocks."""

    def __init__(self) -> None:
        self._text = ""
        self._language: str | None = None
        """Of the fence that is open, and the marks that close it."""
        self._closing = ""

    def feed(self, text: str) -> list[Block]:
        """The blocks that are whole now."""
        self._text += text
        return list(self._whole())

    @property
    def open(self) -> Block | None:
        """What has come of the last block."""
        return Block(self._text, self._language) if self._text.strip() else None

    def finish(self) -> list[Block]:
        """Nothing follows: what is left is a block, too."""
        left, self._text, self._language = self.open, "", None
        return [left] if left else []

    def _whole(self) -> Iterator[Block]:
        while True:
            found = self._code() if self._language is not None else self._prose()
            if found is None:
                return
            if found.text.strip() or found.goes_on:
                yield found

    def _code(self) -> Block | None:
        """Code up to the end of its fence, or so much of it that it is drawn already."""
        lines = self._text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.endswith("\n") and closes(line, self._closing):
                return self._take(lines, number, skip=1, language=None)
        if len(lines) > MOST_OPEN_LINES:
            return msgspec.structs.replace(self._take(lines, len(lines) - 1, language=self._language), goes_on=True)
        return None

    def _prose(self) -> Block | None:
        """Text up to a fence, or up to an empty line after which something begins anew."""
        lines = self._text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.endswith("\n") and (fence := FENCE.match(line)):
                block = self._take(lines, number, skip=1, language=fence[2])
                self._closing = fence[1]
                return block
            begun = lines[number + 1] if number + 1 < len(lines) else ""
            if not line.strip() and begun.strip() and not begun[0].isspace():
                return self._take(lines, number, skip=1, language=None)
        return self._items(lines) if len(lines) > MOST_OPEN_LINES else None

    def _items(self, lines: list[str]) -> Block | None:
        """The items of a list but for the last, which may not be over."""
        first = ITEM.match(lines[0])
        begun = [number for number, line in enumerate(lines) if first and begins_like(line, first[1])]
        if len(begun) < 2:
            return None
        return msgspec.structs.replace(self._take(lines, begun[-1], language=None), goes_on=True)

    def _take(self, lines: list[str], upto: int, *, language: str | None, skip: int = 0) -> Block:
        block = Block("".join(lines[:upto]), self._language)
        self._text, self._language = "".join(lines[upto + skip :]), language
        return block


def begins_like(line: str, mark: str) -> bool:
    """Whether a line begins an item of the list whose first has this mark."""
    item = ITEM.match(line)
    return item is not None and (item[1] == mark or (item[1][-1] == mark[-1] and mark[:-1].isdecimal()))


def closes(line: str, marks: str) -> bool:
    """Whether a line ends a fence: at least as many of the same marks, and nothing else."""
    bare = line.strip()
    return len(bare) >= len(marks) and set(bare) == {marks[0]}


class MarkdownPainter:
    """Draws blocks as lines for a terminal; rich is imported when the first is drawn."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._consoles: dict[int, Any] = {}

    def paint(self, block: Block, width: int) -> str:
        """The block in lines of at most this width, without whatever could move the cursor elsewhere."""
        console = self._console(max(width, 10))
        with console.capture() as captured:
            console.print(drawable(msgspec.structs.replace(block, text=as_seen(block.text).expandtabs(4))))
        drawn = TRAILING_BLANKS.sub(r"\1", captured.get())
        return drawn.strip("\n") if block.language is None else drawn.removesuffix("\n")

    def _console(self, width: int) -> Any:
        if width not in self._consoles:
            import io

            from rich.console import Console

            self._consoles[width] = Console(
                file=io.StringIO(),
                width=width,
                force_terminal=self._colour,
                color_system="standard" if self._colour else None,
                highlight=False,
                legacy_windows=False,
            )
        return self._consoles[width]


@cache
def markdown_class() -> Any:
    """Rich's Markdown, but for tables: it would cut what does not fit into a cell, and nobody could read it."""
    from rich.markdown import Markdown, TableElement

    class WholeTable(TableElement):
        def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
            for table in super().__rich_console__(console, options):
                for column in getattr(table, "columns", ()):
                    column.overflow = "fold"
                yield table

    class WholeMarkdown(Markdown):
        elements = {**Markdown.elements, "table_open": WholeTable}  # noqa: RUF012 - as the class above has it

    return WholeMarkdown


def drawable(block: Block) -> Any:
    if block.language is None:
        return markdown_class()(block.text, code_theme="ansi_dark", hyperlinks=False)
    from rich.padding import Padding
    from rich.syntax import Syntax

    code = Syntax(
        block.text.removesuffix("\n") if block.goes_on else block.text.rstrip("\n"),
        block.language or "text",
        theme="ansi_dark",
        background_color="default",
        word_wrap=True,
    )
    return Padding(code, (0, 0, 0, 2))
