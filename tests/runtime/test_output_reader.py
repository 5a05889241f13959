"""Reading on in kept output: only what is kept for the workspace, in pieces that fit, found by its text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from toolyard.app import AgentApplication
from toolyard.core.tool import CallContext
from toolyard.plugins.contract import tool
from toolyard.runtime.output_reader import read_on
from toolyard.runtime.redaction import Redactor

pytestmark = pytest.mark.anyio


def context(folder: Path, *, limit: int = 1000) -> CallContext:
    return CallContext(call_id="c", cwd=folder, config={}, output_limit=limit, spill_folder=folder, spill_name="c.out")


def read(folder: Path, limit: int = 1000, **arguments) -> str:
    result = read_on(arguments, context(folder, limit=limit))
    assert result.failure is None
    return result.text


@given(st.text(alphabet="ab\nüé😀", max_size=3000))
def test_piece_by_piece_it_is_the_whole(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("kept")
    (folder / "a.out").write_text(text, newline="")
    size, offset, pieces = len(text.encode()), 0, []
    while True:
        piece, _, end = read(folder, handle="a.out", offset=offset, limit=500).rpartition("\n[bytes ")
        pieces.append(piece)
        assert end.startswith(f"{offset} to ")
        offset = int(end.split()[2])
        if offset == size:
            break
    assert "".join(pieces) == text


def test_an_offset_beyond_the_end_gives_nothing_and_one_before_the_start_the_start(tmp_path):
    (tmp_path / "a.out").write_text("abc")
    assert read(tmp_path, handle="a.out", offset=9) == "\n[bytes 3 to 3 of 3; that is its end]"
    assert read(tmp_path, handle="a.out", offset=-9) == "abc\n[bytes 0 to 3 of 3; that is its end]"


def test_a_find_is_shown_with_its_line_and_offset_also_where_pieces_meet(tmp_path):
    text = "x" * ((1 << 20) - 3) + "needle here\nnothing\nno needle, but a needle\n"
    (tmp_path / "a.out").write_text(text)
    first, second, end = read(tmp_path, handle="a.out", find="needle").splitlines()
    assert first == f"{(1 << 20) - 3}: {'x' * 200}needle here"
    assert second.endswith(": no needle, but a needle")
    assert end == "[that is all]"
    assert read(tmp_path, handle="a.out", find="needles") == "[the text does not occur from offset 0 on]"


def test_no_offset_gives_the_rest_of_a_secret_that_became_known_later(tmp_path):
    secret = "".join(map(chr, range(ord("A"), ord("Z")))) * 20
    (tmp_path / "a.out").write_text(f"päper\n{'~' * 300}{secret} ~ {secret}\n~\n")
    knowing = replace(context(tmp_path, limit=400), redactor=Redactor({"KEY": secret}))
    for offset in range(0, 1400, 7):
        text = read_on({"handle": "a.out", "offset": offset}, knowing).text
        assert not set(text.rpartition("\n[bytes ")[0].replace("[redacted KEY]", "")) & set(secret), offset
    shown = read_on({"handle": "a.out", "find": secret[30:50]}, replace(knowing, output_limit=3000)).text
    assert secret[30:50] not in shown
    assert "[redacted KEY]" in shown
    assert read(tmp_path, handle="a.out", offset=400).startswith(secret[93:120]), "or this would prove nothing"


@pytest.mark.parametrize("odd", ["", "x"])
def test_nor_does_a_find_whose_window_begins_or_ends_inside_of_a_character(tmp_path, odd):
    secret = "äöüÄÖÜß" * 30
    (tmp_path / "a.out").write_text(f"{secret}END{odd}\n" + f"BEGIN{odd}{secret}")
    knowing = replace(context(tmp_path, limit=3000), redactor=Redactor({"KEY": secret}))
    for wanted in (f"END{odd}", f"BEGIN{odd}"):
        text = read_on({"handle": "a.out", "find": wanted}, knowing).text
        assert wanted in text
        assert not set(text) & set(secret), text


def test_many_finds_come_in_parts(tmp_path):
    (tmp_path / "a.out").write_text("".join(f"hit {number}\n" for number in range(120)))
    seen, offset = [], 0
    while True:
        *lines, end = read(tmp_path, handle="a.out", find="hit", offset=offset, limit=30_000).splitlines()
        seen += [line.split(": ")[1] for line in lines]
        if end == "[that is all]":
            break
        offset = int(end.removesuffix("]").split()[-1])
    assert seen == [f"hit {number}" for number in range(120)]


def test_nothing_else_can_be_read(tmp_path):
    kept, secret = tmp_path / "kept", tmp_path / "secret"
    kept.mkdir()
    secret.write_text("secret")
    (kept / "link").symlink_to(secret)
    os.mkfifo(kept / "pipe")
    (kept / "folder").mkdir()
    for handle in ("../secret", str(secret), "link", "pipe", "folder", ".", "..", "", "gone", "a\0b"):
        result = read_on({"handle": handle}, context(kept))
        assert result.failure == "invalid_arguments"
        assert "no kept output" in result.text
    assert read_on({"handle": "a"}, CallContext(call_id="c", cwd=kept, config={}, output_limit=9)).failure


@tool
def count() -> str:
    """Count."""
    return "\n".join(map(str, range(9000)))


@pytest.mark.parametrize(
    ("settings", "output", "listed"),
    [
        ({}, {}, False),
        ({}, {"reader": True}, True),
        ({"provider": "some"}, {}, False),
        ({"provider": "some"}, {"reader": False}, False),
        ({"provider": "some"}, {"spill": False}, False),
    ],
)
async def test_it_is_there_beside_other_tools_when_asked_for_and_named_only_then(tmp_path, settings, output, listed):
    config = {"plugins": [], "output": {"limit_bytes": 1000, **output}, **settings}
    async with AgentApplication(config, tmp_path, tools=[count]) as app:
        assert ("read_output" in [spec.name for spec in app.tool_specs()]) is listed
        assert ("read_output" in (await app.call_tool("count", {})).text) is listed
    async with AgentApplication(config, tmp_path) as app:
        assert app.tool_specs() == []


@pytest.mark.parametrize("preset", ["read-only", "workspace", "sandboxed", "trusted"])
async def test_it_needs_no_permission_but_can_be_forbidden(tmp_path, monkeypatch, preset):
    monkeypatch.chdir(tmp_path)
    config = {"plugins": [], "output": {"reader": True}, "permissions": {"preset": preset}}
    async with AgentApplication(config, tmp_path / "sessions", tools=[count]) as app:
        (folder := app.output_folder()).mkdir(parents=True, exist_ok=True)
        (folder / "a.out").write_text("kept")
        assert (await app.call_tool("read_output", {"handle": "a.out"})).text.startswith("kept\n")
    config["permissions"]["deny"] = [{"tool": "read_output"}]
    async with AgentApplication(config, tmp_path / "sessions", tools=[count]) as app:
        assert (await app.call_tool("read_output", {"handle": "a.out"})).failure == "denied"


async def test_another_workspace_has_handles_of_its_own(tmp_path, monkeypatch):
    config = {"plugins": [], "output": {"limit_bytes": 1000, "reader": True}}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    async with AgentApplication(config, tmp_path / "sessions", tools=[count]) as app:
        handle = (await app.call_tool("count", {})).text.partition("handle ")[2].partition(",")[0]
        assert (await app.call_tool("read_output", {"handle": handle, "find": "8999"})).ok
        monkeypatch.chdir(tmp_path / "two")
        assert (await app.call_tool("read_output", {"handle": handle})).failure == "invalid_arguments"
