"""What a person types: files after an @, and what could follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolyard.cli.chat.terminal.typed import LARGEST_TEXT, offers, read_prompt
from toolyard.core.content import ImagePart, TextPart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "with blank.txt").write_text("words")
    (tmp_path / "shot.PNG").write_bytes(b"picture")
    (tmp_path / "data.bin").write_bytes(b"\0\1")
    (tmp_path / "long.txt").write_text("x" * (LARGEST_TEXT + 1))
    (tmp_path / ".hidden").write_text("")
    return tmp_path


@pytest.fixture
def secret(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key elsewhere, and links to it that a tool made."""
    key = tmp_path_factory.mktemp("elsewhere") / "id_rsa"
    key.write_text("secret")
    (folder / "planted").symlink_to(key)
    (folder / "leads").symlink_to(key.parent)
    return key


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at @src/a.py please", ["src/a.py"]),
        ('@"with blank.txt" is short', ["with blank.txt"]),
        ("@src/a.py and again @src/a.py", ["src/a.py"]),
        ("mail me@src/a.py", []),
        ("nothing", []),
    ],
)
def test_a_file_that_is_named_is_said_with_it(folder: Path, text: str, names: list[str]):
    typed = read_prompt(text, folder)
    assert typed.parts[0] == TextPart(text=text)
    assert [part.text.split("\n")[0] for part in typed.parts[1:]] == [f"The file {name}:" for name in names]
    assert typed.problems == ()


def test_a_picture_is_a_picture(folder: Path):
    assert read_prompt("@shot.PNG", folder).parts[1] == ImagePart(media_type="image/png", data=b"picture")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nobody", "no such file"),
        ("src", "it is a folder"),
        ("data.bin", "no text"),
        ("long.txt", "larger than 262144 bytes; let the agent read it"),
        ("planted", "is a link"),
        ("leads/id_rsa", "is a link"),
    ],
)
@pytest.mark.usefixtures("secret")
def test_what_cannot_be_said_is_a_word(folder: Path, name: str, why: str):
    typed = read_prompt(f"see @{name}", folder)
    assert typed.parts == (TextPart(text=f"see @{name}"),)
    assert why in typed.problems[0]


@pytest.mark.parametrize(
    ("text", "begun", "found"),
    [
        ("/co", "/co", ["/compact", "/cost"]),
        ("/cost ", "", []),
        ("see @s", "s", ["shot.PNG", "src/"]),
        ("@src/", "src/", ["src/a.py"]),
        ("@.h", ".h", [".hidden"]),
        ("@nobody/x", "nobody/x", []),
        ("me@s", "", []),
    ],
)
def test_what_could_follow(folder: Path, text: str, begun: str, found: list[str]):
    assert offers(text, ["/compact", "/cost", "/help"], folder) == (begun, found)
