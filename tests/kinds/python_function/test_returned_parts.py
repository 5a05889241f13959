"""Pictures, sound, documents and links that a Python function returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import PNG
from toolyard import AgentApplication, AudioPart, FilePart, ImagePart, LinkPart, TextPart, ToolResult, tool

pytestmark = pytest.mark.anyio
IMAGE = ImagePart(media_type="image/png", data=PNG)
LINK = LinkPart(uri="https://example.org/a")


class Drawing:
    """What shows itself as a picture in notebooks, as the images of Pillow do."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def _repr_png_(self) -> Any:
        return self._data

    def __str__(self) -> str:
        return "a drawing"


async def result_of(folder: Path, returned: Callable[[], Any]) -> ToolResult:
    @tool
    def show() -> Any:
        """Show something."""
        return returned()

    async with AgentApplication({"plugins": []}, folder / "sessions", tools=[show]) as app:
        return await app.call_tool("show", {})


@pytest.mark.parametrize(
    ("value", "text", "attachments"),
    [
        (PNG, "", (IMAGE,)),
        (bytearray(PNG), "", (IMAGE,)),
        (b"OggS", "", (AudioPart(media_type="audio/ogg", data=b"OggS"),)),
        (IMAGE, "", (IMAGE,)),
        (LINK, "", (LINK,)),
        (TextPart(text="said"), "said", ()),
        (Drawing(PNG), "", (IMAGE,)),
        (Drawing(None), '"a drawing"', ()),
        (["first", IMAGE, {"a": 1}, PNG], 'first\n[1: image]\n{"a": 1}\n[2: image]', (IMAGE, IMAGE)),
        (("first", LINK), "first", (LINK,)),
        (["a", "b"], '["a", "b"]', ()),
        ([["nested", PNG.decode("latin-1")]], None, ()),
        (b"plain bytes", "plain bytes", ()),
        (ToolResult(text="a", attachments=(IMAGE, TextPart(text="b"))), "a\n[1: image]\nb", (IMAGE,)),
        (ImagePart(media_type="image/png", data=b"none"),
         "[image: image/png, 4 bytes; left out, since its content is broken or something else]", ()),
    ],
)  # fmt: skip
async def test_what_is_no_text_is_attached(tmp_path, value, text, attachments):
    result = await result_of(tmp_path, lambda: value)
    assert result.failure is None
    assert result.text == text or text is None
    assert result.attachments == attachments


async def test_a_path_of_a_picture_is_the_path_and_the_picture(tmp_path):
    (tmp_path / "a.txt").write_bytes(PNG)
    (tmp_path / "paper").write_bytes(b"%PDF-1.4")
    result = await result_of(tmp_path, lambda: tmp_path / "a.txt")
    assert (result.text, result.attachments) == (str(tmp_path / "a.txt"), (IMAGE,))
    result = await result_of(tmp_path, lambda: [tmp_path / "paper", "and that is all"])
    paper = FilePart(media_type="application/pdf", data=b"%PDF-1.4", name="paper")
    assert (result.text, result.attachments) == (f"{tmp_path}/paper\n[1: file paper]\nand that is all", (paper,))


async def test_any_other_path_is_its_text(tmp_path):
    (tmp_path / "a.png").write_text("no picture")
    os.mkfifo(tmp_path / "pipe.png")
    for name in ("a.png", "pipe.png", "gone.png", "."):
        path = tmp_path / name
        result = await result_of(tmp_path, lambda path=path: path)
        assert (result.text, result.attachments) == (f'"{path}"', ())


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ({"a": float("nan"), "b": [1.5, float("inf")]}, '{"a": null, "b": [1.5, null]}', {"a": None, "b": [1.5, None]}),
        ([float("-inf"), (float("nan"), "NaN")], '[null, [null, "NaN"]]', None),
        ({"a": "NaN, not Infinity"}, '{"a": "NaN, not Infinity"}', {"a": "NaN, not Infinity"}),
        (float("nan"), "NaN", None),
    ],
)
async def test_numbers_that_json_does_not_have_are_null_in_what_is_json(tmp_path, value, text, data):
    result = await result_of(tmp_path, lambda: value)
    assert (result.text, result.data) == (text, data)
