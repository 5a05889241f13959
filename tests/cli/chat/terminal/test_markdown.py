"""Markdown that comes piece by piece is drawn as if it had come at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.cli.chat.terminal.markdown import MOST_OPEN_LINES, Block, MarkdownPainter, MarkdownStream

LINES = ["# Title", "", "some words", "- one", "  two", "1. first", "```python", "```", "x = 1", "~~~", "| a | b |"]


def blocks_of(*pieces: str) -> list[Block]:
    stream = MarkdownStream()
    return [*(block for piece in pieces for block in stream.feed(piece)), *stream.finish()]


def joined(blocks: list[Block]) -> list[Block]:
    """With those as one that were only drawn in parts."""
    found: list[Block] = []
    for block in blocks:
        parts = [found.pop()] if found and found[-1].goes_on else []
        found.append(Block("".join(part.text for part in (*parts, block)), block.language, block.goes_on))
    return found


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\n\ntwo\n", [Block("one\n"), Block("two\n")]),
        ("- a\n\n  still a\n\nb", [Block("- a\n\n  still a\n"), Block("b")]),
        ("see:\n```sh\nls\n\nls\n```\nso\n", [Block("see:\n"), Block("ls\n\nls\n", "sh"), Block("so\n")]),
        ("````\n```\n````\n", [Block("```\n", "")]),
        ("```\nnever closed", [Block("never closed", "")]),
        ("", []),
        ("\n\n\n", []),
    ],
)
def test_text_is_cut_where_something_begins_anew(text: str, blocks: list[Block]):
    assert blocks_of(text) == blocks


@given(st.lists(st.sampled_from(LINES), max_size=80), st.data())
def test_it_does_not_matter_in_which_pieces_it_comes(lines: list[str], data: st.DataObject):
    text = "\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert joined(blocks_of(*pieces)) == joined(blocks_of(text))


def test_a_long_listing_is_drawn_for_good_in_parts_so_that_a_word_costs_the_same_at_its_end():
    stream = MarkdownStream()
    done = stream.feed("```\n")
    longest = 0
    for number in range(500):
        done += stream.feed(f"line {number}\n")
        longest = max(longest, len((stream.open or Block("")).text.split("\n")))
    done += [*stream.feed("```\n"), *stream.finish()]
    assert longest <= MOST_OPEN_LINES + 1
    assert "".join(block.text for block in done) == "".join(f"line {number}\n" for number in range(500))


def test_the_parts_of_a_long_listing_are_one_listing_on_the_screen():
    code = "".join(f"x = {number}\n" if number % 3 else "\n" for number in range(100))
    parts = blocks_of(*f"```python\n{code}```\n".splitlines(keepends=True))
    painter = MarkdownPainter(colour=False)
    shown = "\n".join(painter.paint(part, 60) for part in parts)
    assert [part.goes_on for part in parts] == [True] * (len(parts) - 1) + [False]
    assert len(parts) > 2
    assert [line.removeprefix("  ") for line in shown.split("\n")] == code.rstrip("\n").split("\n")


@pytest.mark.parametrize("mark", ["-", "{}."])
def test_a_long_list_is_drawn_for_good_in_parts_and_is_one_list_on_the_screen(mark: str):
    items = [f"{mark.format(number)} item {number}\n  goes on\n" for number in range(100, 400)]
    stream, painter = MarkdownStream(), MarkdownPainter(colour=False)
    done, longest = [], 0
    for item in items:
        done += stream.feed(item)
        longest = max(longest, len((stream.open or Block("")).text.split("\n")))
    done += stream.finish()
    assert longest <= MOST_OPEN_LINES + 2
    shown = "\n".join(painter.paint(part, 60) for part in done)
    assert shown == painter.paint(Block("".join(items)), 60)
    assert [part.goes_on for part in done] == [True] * (len(done) - 1) + [False]


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_that_a_model_writes_reaches_the_terminal_as_a_command(colour: bool):
    painted = MarkdownPainter(colour=colour).paint(Block("a\x1b[2Jb\x1b]0;title\x07c\rd\x9b1mz [x](http://host/p)"), 60)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted).isprintable()
    assert "http://host/p" in painted, "where a link leads is seen"


@given(st.text(max_size=300), st.integers(10, 60))
def test_no_line_is_wider_than_the_terminal(text: str, width: int):
    from rich.cells import cell_len

    painted = MarkdownPainter(colour=False).paint(Block(text), width)
    assert all(cell_len(line) <= width for line in painted.split("\n"))


def test_a_cell_of_a_table_is_shown_whole_where_it_does_not_fit():
    address = "https://example.test/" + "a" * 60
    shown = MarkdownPainter(colour=False).paint(Block(f"| where | what |\n|---|---|\n| {address} | b |\n"), 40)
    assert "…" not in shown
    assert "".join(line.split()[0] for line in shown.splitlines()[2:]) == address
