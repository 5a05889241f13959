"""What is kept of a long output: whole characters from both ends, exact counts, and the whole in a file."""

from __future__ import annotations

import re
import resource
import tempfile
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolyard.core.tool import KeptFile
from toolyard.process.output import Captured, HeadTail, LastWords, Transcript, limit_text
from toolyard.runtime.redaction import Redactor

MISSING_LINE = re.compile(r"\n\[\.\.\. (\d+) bytes, (\d+) lines? left out(?:; the whole is in (.*))? \.\.\.\]\n")
MIXED = "aé€😀\nz\u0301ñ\n日本語🇨🇭\n" * 2
CHOPPED = st.lists(
    st.sampled_from([b"\x80", b"\xbf", b"\xc3", b"\xa9", b"\xe2", b"\x82", b"\xf0", b"\x9f", b"\xff", b"a", b"\n"])
)
"""Bytes that are parts of characters in any order: all that can go wrong at a cut."""
DATA = st.one_of(st.binary(max_size=80), st.text(max_size=40).map(str.encode), CHOPPED.map(b"".join))


def keep(data: bytes, limit: int, cuts: list[int] | None = None, **options: Path) -> Captured:
    """Feed the data in pieces, cut at these places."""
    kept = HeadTail(limit, **options)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    for start, end in pairwise(places):
        kept.add(data[start:end])
    return kept.finish()


def ends_of(text: str) -> tuple[str, str, int, int]:
    """Head, tail and the two counts between them."""
    found = MISSING_LINE.search(text)
    assert found
    return text[: found.start()], text[found.end() :], int(found[1]), int(found[2])


@pytest.mark.parametrize("limit", range(len(MIXED.encode()) + 2))
def test_a_text_is_cut_at_whole_characters_whatever_the_limit(limit):
    data = MIXED.encode()
    captured = keep(data, limit)
    assert captured.total_bytes == len(data)
    if limit >= len(data):
        assert (captured.text, captured.truncated) == (MIXED, None)
        return
    head, tail, omitted_bytes, omitted_lines = ends_of(captured.text)
    kept = len((head + tail).encode())
    assert MIXED.startswith(head)
    assert MIXED.endswith(tail)
    assert limit - 6 <= kept <= limit
    assert omitted_bytes == captured.truncated.omitted_bytes == len(data) - kept
    assert omitted_lines == captured.truncated.omitted_lines == MIXED.count("\n") - (head + tail).count("\n")
    assert limit_text(MIXED, limit) == (captured.text, captured.truncated)


@given(data=DATA, limit=st.integers(0, 60), cuts=st.lists(st.integers(0, 80), max_size=12))
@example(data=b"ab\xf0\x9f\x98\x80\x80\x80\x80\x80", limit=6, cuts=[])
@example(data=b"\xe2\x82\xac\xe2\x82\xac", limit=1, cuts=[1, 2, 3, 4, 5])
def test_any_bytes_keep_a_true_head_and_tail_however_they_came(data, limit, cuts):
    captured = keep(data, limit, cuts)
    whole = data.decode("utf-8", "replace")
    assert captured == keep(data, limit)
    if len(data) <= limit:
        assert (captured.text, captured.truncated) == (whole, None)
        return
    head, tail, omitted_bytes, omitted_lines = ends_of(captured.text)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(data) - limit <= omitted_bytes <= len(data) - limit + 6
    assert omitted_lines == whole.count("\n") - (head + tail).count("\n")


def heard_pieces(data: Iterable[bytes]) -> list[str]:
    """What a listener hears after each piece, and at the end."""
    heard: list[str] = []
    transcript = Transcript(1 << 20, listener=heard.append)
    pieces = []
    for piece in data:
        transcript.add(piece)
        pieces.append("".join(heard))
        heard.clear()
    transcript.finish()
    return [*pieces, "".join(heard)]


@given(data=DATA, cuts=st.lists(st.integers(0, 80), max_size=12))
def test_the_pieces_of_a_decoded_stream_add_up_to_the_whole(data, cuts):
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = heard_pieces(data[start:end] for start, end in pairwise(places))
    assert "".join(pieces) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(("data", "pieces"), [
    (b"\xc3|\xa9",             ["", "é", ""]),
    (b"a\xf0|\x9f\x98|\x80b",  ["a", "", "😀b", ""]),
    (b"\xf0\x9f|a",            ["", "\ufffda", ""]),
    (b"\xff|\xe2\x82",         ["\ufffd", "", "\ufffd"]),
])  # fmt: skip
def test_a_character_comes_when_it_is_complete(data, pieces):
    assert heard_pieces(data.split(b"|")) == pieces


@given(text=st.text(st.characters(), max_size=60), limit=st.integers(0, 60))
@example(text="\ud800" * 9, limit=7)
def test_a_text_in_memory_is_cut_like_a_stream_and_keeps_half_pairs(text, limit):
    size = len(text.encode("utf-8", "surrogatepass"))
    short, truncation = limit_text(text, limit)
    if size <= limit:
        assert (short, truncation) == (text, None)
        return
    head, tail, omitted_bytes, omitted_lines = ends_of(short)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert (omitted_bytes, omitted_lines) == (truncation.omitted_bytes, truncation.omitted_lines)
    assert omitted_bytes == size - len((head + tail).encode("utf-8", "surrogatepass"))


def test_one_line_left_out_is_called_a_line():
    assert "[... 4 bytes, 1 line left out ...]" in limit_text("aaabbb\nccc", 6)[0]
    assert "[... 9 bytes, 0 lines left out ...]" in limit_text("a" * 15, 6)[0]


@pytest.mark.parametrize("size", [1, 2, 5, 100_000])
def test_memory_is_bounded_by_the_limit_whatever_the_size_of_the_pieces(size):
    limit, piece = 20_000, b"x" * size
    tracemalloc.start()
    kept = HeadTail(limit)
    for _ in range(max(3 * limit // size, 10)):
        kept.add(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.finish().total_bytes == kept.total
    assert peak < 2 * limit + 3 * size


@given(data=DATA, limit=st.integers(0, 60), cuts=st.lists(st.integers(0, 80), max_size=12))
def test_the_file_holds_exactly_the_whole_and_only_when_something_is_missing(data, limit, cuts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deep" / "whole"
        captured = keep(data, limit, cuts, spill_to=path)
        if captured.truncated is None:
            assert not path.exists()
        else:
            assert captured.truncated.kept_at == path
            assert path.read_bytes() == data


REDACTOR = Redactor({"A_TOKEN": "abcabcd", "B_KEY": "abc", "C": "zz.*", "D": "ñé€"})
SAID = st.lists(st.sampled_from(["abcabcd", "abc", "zz.*", "ñé€", "x", "ab", "z", "ñ", "\n"]), max_size=30).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=12)


def in_pieces(text: str, cuts: list[int]) -> list[bytes]:
    data = text.encode()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


@given(text=SAID, cuts=CUTS)
def test_what_is_taken_in_pieces_is_the_redacted_whole_and_nothing_is_lost_or_said_twice(text, cuts):
    heard: list[str] = []
    transcript = Transcript(1 << 20, listener=heard.append, redactor=REDACTOR)
    taken = []
    for piece in in_pieces(text, cuts):
        transcript.add(piece)
        captured = transcript.take()
        assert captured.held_back is transcript.unread
        taken.append(captured.text)
    taken.append(transcript.finish().text)
    assert "".join(taken) == "".join(heard) == REDACTOR.redact(text)
    assert not transcript.take().held_back


@given(text=SAID, cuts=CUTS, limit=st.integers(0, 30))
def test_the_file_never_has_a_secret_not_even_while_it_is_written(text, cuts, limit):
    whole = REDACTOR.redact(text)
    with tempfile.TemporaryDirectory() as folder:
        file = KeptFile(f"{folder}/whole", REDACTOR)
        kept = HeadTail(limit, spill_to=file)
        for piece in in_pieces(text, cuts):
            kept.add(piece)
            if Path(file).exists():
                assert whole.startswith(Path(file).read_bytes().decode(errors="ignore"))
        if (truncated := kept.finish().truncated) is not None:
            assert Path(file).read_bytes().decode() == whole
            before = Path(file).read_bytes()[: truncated.starts_at]
            head = text.encode()[: limit // 2].decode(errors="ignore")
            assert REDACTOR.settled(head)[0].encode() == before, "who reads on from there misses nothing"


def test_what_is_no_text_is_kept_as_it_is_beside_a_secret(tmp_path):
    file = KeptFile(str(tmp_path / "whole"), REDACTOR)
    kept = HeadTail(4, spill_to=file)
    for piece in (b"\xff\xc3", b"(\xe2\x82 abc", b"abcd\xed\xa0\x80\xf0"):
        kept.add(piece)
    kept.finish()
    assert Path(file).read_bytes() == b"\xff\xc3(\xe2\x82 [redacted A_TOKEN]\xed\xa0\x80\xf0"


@pytest.mark.parametrize("redactor", [None, Redactor({})])
def test_where_no_secret_is_known_all_is_passed_on_at_once(redactor):
    transcript = Transcript(100, redactor=redactor)
    transcript.add(b"half a character: \xc3")
    assert transcript.take() == Captured(text="half a character: \ufffd", total_bytes=19)


@pytest.mark.parametrize("obstacle", ["a file that is there", "a file for a folder", "no such place"])
def test_a_file_that_cannot_be_written_costs_the_file_and_not_the_output(tmp_path, obstacle):
    there = tmp_path / "there"
    there.write_text("mine")
    path = {
        "a file that is there": there,
        "a file for a folder": there / "whole",
        "no such place": Path("/proc/no/such"),
    }[obstacle]
    captured = keep(b"x" * 100, 10, [50], spill_to=path)
    assert captured.truncated.kept_at is None
    assert captured.truncated.omitted_bytes == 90
    assert there.read_text() == "mine"


@pytest.mark.anyio
@pytest.mark.parametrize("room", [0, 500, 5000])
async def test_a_disk_that_fills_up_costs_the_file_and_not_the_call(desk, room):
    """The limit on the size of our own files stands for the disk: a write goes so far and then fails."""
    await desk.run("true")
    spill = desk.cwd / "whole"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        outcome = await desk.run("seq 1 5000; seq 5001 10000; exit 3", output_limit=400, spill_to=spill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (outcome.exit_code, outcome.stdout.truncated.kept_at) == (3, None)
    assert outcome.stdout.text.startswith("1\n2\n")
    assert outcome.stdout.text.endswith("9999\n10000\n")
    assert not spill.exists()


def test_what_is_spilled_goes_through_no_link_in_the_place_of_its_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "outputs").symlink_to(tmp_path / "elsewhere")
    kept = HeadTail(10, spill_to=tmp_path / "outputs" / "whole.out")
    kept.add(b"x" * 100)
    assert kept.finish().truncated.kept_at is None
    assert list((tmp_path / "elsewhere").iterdir()) == []


LINES = "line\n" * 4_000_000
LINE_BYTES = LINES.encode()


@pytest.mark.parametrize("add", [lambda kept: kept.add(LINE_BYTES), lambda kept: kept.add_text(LINES)])
def test_one_piece_of_any_size_is_kept_in_bounded_memory(add, tmp_path):
    kept = HeadTail(10_000, spill_to=tmp_path / "whole")
    tracemalloc.start()
    try:
        add(kept)
        captured = kept.finish()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert (captured.total_bytes, (tmp_path / "whole").stat().st_size) == (20_000_000, 20_000_000)
    head, tail, _, omitted_lines = ends_of(captured.text)
    assert head.count("\n") + tail.count("\n") + omitted_lines == 4_000_000


@given(st.lists(st.text(), max_size=8), st.integers(1, 40))
def test_last_words_are_the_end_and_say_what_is_missing(pieces, limit):
    words, whole = LastWords(limit), "".join(pieces).encode("utf-8", "replace")
    for piece in pieces:
        words.add(piece.encode("utf-8", "replace"))
    told = MISSING_LINE.match(words.text())
    if len(whole) <= limit:
        assert words.text() == whole.decode("utf-8", "replace").strip()
    elif told:
        kept = whole[int(told[1]) :]
        assert len(kept) <= limit
        assert words.text()[told.end() :] == kept.decode("utf-8").rstrip()
        assert int(told[2]) == whole[: int(told[1])].count(b"\n")
    else:
        assert not whole[-limit:].decode("utf-8", "ignore").strip(), (
            "only white space is left, and the line stands alone"
        )


def test_half_a_secret_in_last_words_is_redacted():
    words = LastWords(30)
    words.add(b"starting with Zq8vLw3RtY7uPk2NxD4m and then more to say")
    assert "redacted TOKEN" in Redactor({"TOKEN": "Zq8vLw3RtY7uPk2NxD4m"}).redact_cut(words.text())
    assert "tY7uPk2NxD4m" not in Redactor({"TOKEN": "Zq8vLw3RtY7uPk2NxD4m"}).redact_cut(words.text())
