"""Terminal output as a person would see it: overwritten text is gone, and so is all that is not text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolyard.core.screen_text import as_seen, readable

MUCH = 2_000_000
"""What takes more than linear time would take hours for so many characters."""
ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
PLAIN = st.text(st.characters(exclude_categories=["Cc"], include_characters="\n\t"))
STROKES = st.lists(
    st.one_of(
        st.sampled_from(
            ["\r", "\b", "\n", "\r\n", "\t", f"{ESC}[K", f"{ESC}[0K", f"{ESC}[2K", f"{ESC}[3D", f"{ESC}[2C"]
        ),
        st.sampled_from([f"{ESC}[2G", f"{ESC}[J", f"{ESC}[1A", f"{ESC}[31m", f"{ESC}]0;t{BEL}", f"{ESC}(B", BEL, "\0"]),
        st.text("abcdefé漢", max_size=6),
    )
).map("".join)
HOSTILE = st.text(st.sampled_from("\x1b\x9b\x9d\x90\x9c[]P_^XNO\\K2;?( 0mGa\r\n\b\x07\x00\x7f"))


def test_binary_output_is_counted_instead_of_shown():
    text = "".join(chr(number % 32) + "\ufffdELF" for number in range(300))
    assert readable(text) == f"[{len(text)} characters of binary output, which cannot be shown]"


@pytest.mark.parametrize("text", ["plain\n", "é " * 500, "a\0b\n", "x" * 1000 + "\ufffd"])
def test_text_is_shown_although_it_has_a_strange_character(text):
    assert readable(text) == as_seen(text)


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        ("", ""),
        ("one\ntwo\n", "one\ntwo\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\r\ntwo", "one\ntwo"),
        ("abc\rX", "Xbc"),
        ("abc\rXYZW", "XYZW"),
        ("abc\r", "abc"),
        ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
        ("long\rab\rX\nnext", "Xbng\nnext"),
        ("abc\bX", "abX"),
        ("abc\b\b\b\b\bX", "Xbc"),
        ("a\b_b\b_", "__"),
        ("a\tb\rX", "X\tb"),
        ("漢字\rあ", "あ字"),
    ],
)
def test_a_line_shows_its_last_state(printed, seen):
    assert as_seen(printed) == seen


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (f"abcdef\rX{ESC}[K", "X"),
        (f"abcdef\rX{ESC}[0K", "X"),
        (f"abcdef\r{ESC}[J", ""),
        (f"abc{ESC}[2K\rX", "X"),
        (f"abc\r{ESC}[2KX", "X"),
        (f"abc{ESC}[2K{ESC}[1GX", "X"),
        (f"abc{ESC}[GX", "Xbc"),
        (f"abc{ESC}[2GX", "aXc"),
        (f"abc{ESC}[2DX", "aXc"),
        (f"abc\r{ESC}[CX", "aXc"),
        (f"ab{ESC}[0DX", "aX"),
        (f"ab{ESC}[500CX", "abX"),
        (f"ab{ESC}[500GX", "abX"),
        ("abc\r\x9bKX", "X"),
    ],
)
def test_erasures_and_moves_within_a_line_happen(printed, seen):
    assert as_seen(printed) == seen


@pytest.mark.parametrize(
    "sequence",
    [
        f"{ESC}[31m",
        f"{ESC}[1;38;5;208m",
        f"{ESC}[38:2::1:2:3m",
        f"{ESC}[?25l",
        f"{ESC}[2J",
        f"{ESC}[H",
        f"{ESC}[1K",
        f"{ESC}[3A",
        f"{ESC}[12;40H",
        f"{ESC}[4 q",
        f"{ESC}[99999999999999999999G",
        "\x9b31m",
        f"{ESC}]0;a title{BEL}",
        f"{ESC}]8;;https://example.org{ST}",
        "\x9d0;title\x9c",
        f"{ESC}P1;2|data\nmore{ST}",
        f"{ESC}Ptmux;{ESC}{ESC}]52;c;aGk={BEL}{ST}",
        f"{ESC}_application{ST}",
        f"{ESC}^private{ST}",
        f"{ESC}Xstart{ST}",
        f"{ESC}7",
        f"{ESC}8",
        f"{ESC}=",
        f"{ESC}c",
        f"{ESC}(B",
        f"{ESC})0",
        f"{ESC}%G",
        f"{ESC}#8",
        f"{ESC}OA",
        f"{ESC}Nx",
        ESC,
        BEL,
        "\0",
        "\x7f",
        "\x0e\x0f",
        "\x85",
    ],
)
def test_what_is_not_text_is_not_there(sequence):
    assert as_seen(f"one {sequence}\ttwo\n") == "one \ttwo\n"


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (f"a{ESC}]0;never ended\nb", "a\nb"),
        (f"a{ESC}]0;never ended{ESC}[1mb", "ab"),
        (f"a{ESC}Pnever ended\nb", "a\nb"),
        (f"a{ESC}[31", "a"),
        (f"a{ESC}[31\nb", "a\nb"),
        (f"a{ESC}[é", "aé"),
        (f"a{ESC}", "a"),
        (f"a{ESC}\x07[31m", "a[31m"),
    ],
)
def test_what_never_ends_takes_its_own_line_at_most(printed, seen):
    assert as_seen(printed) == seen


@given(PLAIN)
@example("\t \n\n")
@example("a\u2028b\xa0c\U0010ffff")
def test_plain_text_is_as_it_is(text):
    assert as_seen(text) is text


@given(st.one_of(st.text(), HOSTILE, STROKES))
def test_nothing_but_text_is_left_and_a_second_look_sees_the_same(text):
    seen = as_seen(text)
    assert {char for char in seen if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}
    assert as_seen(seen) == seen
    assert len(seen) <= len(text)


@given(STROKES)
def test_a_slow_terminal_shows_the_same(text):
    assert as_seen(text) == slow_terminal(text)


@pytest.mark.parametrize(
    ("once", "again"),
    [
        ("", "50% done\r"),
        ("", ESC),
        ("", f"{ESC}["),
        ("", f"{ESC}]"),
        ("", f"{ESC}P"),
        ("", "\x9d"),
        (f"{ESC}P", "a\n"),
        (f"{ESC}]", "a"),
        (f"{ESC}[", "1"),
        ("a" * MUCH, f"\b{ESC}[KX"),
        ("a" * MUCH, f"{ESC}[2KX"),
        ("a" * MUCH, f"{ESC}[99999GX\rX"),
    ],
    ids=lambda text: ascii(text[:16]),
)
def test_megabytes_of_anything_come_to_an_end(once, again):
    text = once + again * (MUCH // len(again))
    assert len(as_seen(text)) <= len(text)


def slow_terminal(text: str) -> str:
    """The same by other means: character by character, with a dictionary for each line."""
    lines: list[dict[int, str]] = [{}]
    column = 0
    while text:
        cells = lines[-1]
        for sequence, action in SEQUENCES.items():
            if text.startswith(sequence):
                text = text[len(sequence) :]
                column = action(cells, column)
                break
        else:
            char, text = text[0], text[1:]
            if char == "\n":
                lines.append({})
                column = 0
            else:
                cells[column] = char
                column += 1
    return "\n".join("".join(cells[place] for place in sorted(cells)) for cells in lines)


def erased(cells: dict[int, str], start: int) -> int:
    for place in [place for place in cells if place >= start]:
        del cells[place]
    return start


SEQUENCES = {
    "\r": lambda cells, column: 0,
    "\b": lambda cells, column: max(0, column - 1),
    f"{ESC}[K": erased,
    f"{ESC}[0K": erased,
    f"{ESC}[J": erased,
    f"{ESC}[2K": lambda cells, column: erased(cells, 0),
    f"{ESC}[3D": lambda cells, column: max(0, column - 3),
    f"{ESC}[2C": lambda cells, column: min(len(cells), column + 2),
    f"{ESC}[2G": lambda cells, column: min(len(cells), 1),
    **dict.fromkeys(
        [f"{ESC}[1A", f"{ESC}[31m", f"{ESC}]0;t{BEL}", f"{ESC}(B", BEL, "\0"], lambda cells, column: column
    ),
}
