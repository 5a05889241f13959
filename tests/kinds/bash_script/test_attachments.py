"""What a tool names on its descriptor 3 belongs to its result, as far as the tool itself can read it."""

from __future__ import annotations

import os

import pytest

from support import PNG, need_backend
from toolyard.core.content import LARGEST_PART, FilePart, ImagePart, LinkPart
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio
IMAGE = ImagePart(media_type="image/png", data=PNG)


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a dot.gif").write_bytes(PNG)
    return Yard(tmp_path)


async def result_of(yard: Yard, run: str, **settings):
    yard.tool(run=run)
    async with yard.app("bash:probe.bash", **settings) as app:
        return await app.call_tool("probe", {})


async def test_files_and_links_are_attached_in_their_order(yard):
    run = "echo said; { echo 'a dot.gif'; echo https://example.org/a A page; echo ./a.pdf; } >&3"
    (yard.folder / "a.pdf").write_bytes(b"%PDF-1.7")
    result = await result_of(yard, run)
    assert result.text == "said\n"
    assert result.attachments == (
        IMAGE,
        LinkPart(uri="https://example.org/a", name="A page"),
        FilePart(media_type="application/pdf", data=b"%PDF-1.7", name="a.pdf"),
    )


async def test_a_failure_has_its_pictures_too(yard):
    result = await result_of(yard, "echo 'a dot.gif' >&3; echo broken >&2; exit 3")
    assert (result.failure, result.exit_code, result.attachments) == ("exit_code", 3, (IMAGE,))


async def test_what_cannot_be_attached_is_said(yard):
    os.mkfifo(yard.folder / "pipe")
    with (yard.folder / "large").open("wb") as file:
        file.write(PNG)
        file.truncate(LARGEST_PART + 1)
    result = await result_of(yard, "printf '%s\\n' gone.png pipe . -n large /dev/zero >&3")
    assert result.attachments == ()
    lines = result.text.splitlines()
    assert [line.split(":")[0] for line in lines] == ["[gone.png", "[pipe", "[.", "[-n", "[image", "[/dev/zero"]
    assert ["not attached" in line for line in lines] == [True, True, True, True, False, True]
    assert "left out, since a result carries at most" in lines[4]


async def test_no_more_are_read_than_a_result_carries(yard):
    result = await result_of(yard, "for i in {1..25}; do echo 'a dot.gif'; done >&3")
    assert len(result.attachments) == 20
    assert "[5 more are left out" in result.text


async def test_a_list_without_end_neither_blocks_the_tool_nor_fills_the_memory(yard):
    result = await result_of(yard, "head -c 3000000 /dev/zero | tr '\\0' '\\n' >&3; echo 'a dot.gif' >&3; echo done")
    assert result.text.splitlines()[0] == "done"
    assert result.attachments == (IMAGE,)


async def test_nothing_is_read_that_the_tool_could_not_read_itself(tmp_path, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")
    yard = Yard(inhabit(tmp_path, monkeypatch) / "project")
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".ssh" / "key.png").write_bytes(PNG)
    (work / "link.png").symlink_to(home / ".ssh" / "key.png")
    (work / "own.png").write_bytes(PNG)
    result = await result_of(yard, f"printf '%s\\n' {home}/.ssh/key.png link.png own.png >&3")
    assert result.attachments == (IMAGE,)
    assert result.text.count("not attached") == 2
