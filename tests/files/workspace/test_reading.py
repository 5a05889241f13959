"""Reading files for a model: numbers, parts, what is unusual, and what is no text."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from toolyard.files.workspace import contents
from toolyard.files.workspace.places import FileFault, Workspace
from toolyard.files.workspace.reading import read

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def shown(path: Path, offset: int = 1, limit: int = 2000, room: int = 100_000) -> str:
    with Workspace(str(path.parent)).at(path.name) as spot:
        return read(spot, offset, limit, room)["text"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\ntwo\n", "     1\tone\n     2\ttwo"),
        (b"no end", "     1\tno end"),
        (b"", "[the file is empty]"),
        (b"\n", "     1\t"),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb\n[lines end with CRLF]"),
        (b"\xef\xbb\xbfa\n", "     1\ta"),
        ("ä\n".encode("utf-16"), "     1\tä\n[encoding: utf-16-le]"),
        (b"caf\xe9\n", "     1\tcafé\n[encoding: cp1252]"),
        (b"form\x0cfeed\n", "     1\tform\x0cfeed"),
        ("a\u2028b\n".encode(), "     1\ta\u2028b"),
    ],
)
def test_lines_have_numbers_and_what_is_unusual_is_said(file: Path, data: bytes, text: str):
    file.write_bytes(data)
    assert shown(file) == text


def test_a_part_says_where_it_is_and_how_to_go_on(file: Path):
    file.write_text("".join(f"{number}\n" for number in range(1, 11)))
    assert shown(file, 3, 2) == "     3\t3\n     4\t4\n[lines 3 to 4 of 10; go on with offset 5]"
    assert shown(file, 9, 5) == "     9\t9\n    10\t10\n[lines 9 to 10 of 10]"
    assert shown(file, room=30) == "     1\t1\n     2\t2\n     3\t3\n[lines 1 to 3 of 10; go on with offset 4]"
    with pytest.raises(FileFault, match="has 10 lines"):
        shown(file, 11)


def test_a_long_line_is_cut(file: Path):
    file.write_text("x" * 5000)
    assert shown(file).endswith("x [3000 characters more]")


def test_a_picture_is_a_picture(file: Path):
    file.write_bytes(PNG)
    with Workspace(str(file.parent)).at("file") as spot:
        answer = read(spot, 1, 1, 100)
    assert answer["text"] == "[image/png, 28 bytes]"
    assert base64.b64decode(answer["image"]["data"]) == PNG


def test_a_binary_file_is_refused(file: Path):
    file.write_bytes(b"\x7fELF\0\0")
    with pytest.raises(FileFault, match="is a binary file of 6 bytes"):
        shown(file)


def test_a_huge_file_is_read_in_parts_without_being_read_whole(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolyard.files.workspace.reading.LARGEST", 1000)
    file.write_text("".join(f"line {number}\n" for number in range(1, 500)) + "y" * 10_000 + "\nend\n")
    text = shown(file, 250, 2)
    assert text.startswith("   250\tline 250\n   251\tline 251\n[lines 250 to 251 of a file of ")
    assert text.endswith(" bytes; go on by offset]")
    assert "   501\tend\n" in shown(file, 500, 5)
    for limit in (2, 5):
        assert shown(file, 500, limit).endswith(" bytes; they are its last]"), "there is nothing to go on to"
    with pytest.raises(FileFault, match="has 501 lines"):
        shown(file, 502)
    file.write_bytes(b"\0" * 20_000)
    with pytest.raises(FileFault, match="binary file of 20000 bytes"):
        shown(file)


def test_a_huge_file_is_not_changed(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(contents, "LARGEST", 10)
    file.write_text("x" * 11)
    with Workspace(str(file.parent)).at("file") as spot, pytest.raises(FileFault, match="too many to change"):
        contents.whole(spot)
