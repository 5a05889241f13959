#!/usr/bin/env python3
"""Draws docs/images/chat.svg: a chat as it looks in a terminal, with a model whose answers stand below.

    PYTHONPATH=tests .venv/bin/python scripts/chat_picture.py

The program, its tools and the terminal (tmux) are real; only the model's words are written down.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from chat_terminal import ChatTerminal, Model, configure, runs, says
from support import CommandLine

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "chat.svg"
WIDTH, HEIGHT = 102, 40
PROGRAM = "def total(prices):\n    return sum(prices) - 1\n"
TEST = "from shop import total\n\nassert total([1, 2]) == 3, total([1, 2])\nprint('all tests pass')\n"
FIRST = "I run the test first."
FOUND = "`total` takes **one** away from the sum. I mend that:\n\n```python\nreturn sum(prices)\n```\n"
MEND = "sed -i 's/ - 1$//' shop.py && python3 test_shop.py"
LAST = "The test passes. What changed:\n\n- `shop.py`: `total` gives the plain sum\n"


def draw(folder: Path) -> str:
    """The screen at the moment of the last question, in colours."""
    toolyard, model = CommandLine(folder), Model()
    toolyard.file("shop.py", PROGRAM)
    toolyard.file("test_shop.py", TEST)
    permissions = {"preset": "sandboxed", "ask": ["git push **"]}
    configure(toolyard, model, permissions=permissions)
    model.script(
        runs("python3 test_shop.py", text=FIRST),
        runs(MEND, text=FOUND, id="c2"),
        says(LAST),
        runs("git push origin main", id="c3"),
        says("Not pushed."),
    )
    terminal = ChatTerminal(toolyard, width=WIDTH, height=HEIGHT, env={})
    try:
        terminal.until("default ·")
        terminal.line("Why does test_shop.py fail? Mend it.")
        terminal.until("the plain sum", " out")
        terminal.line("Push it.")
        terminal.until("Allow?")
        return terminal.seen(colours=True).replace(f"{toolyard.folder}/", "")
    finally:
        terminal.close()
        model.close()


def as_svg(screen: str) -> str:
    """The screen as a picture, from the greeting on; the ids in it do not change from one drawing to the next."""
    lines = screen.rstrip("\n").split("\n")
    start = next(number for number, line in enumerate(lines) if "Say what to do." in line)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines[start:])))
    svg = console.export_svg(title="toolyard chat", theme=MONOKAI, unique_id="chat")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # nothing is fetched to look at it
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.split("\n"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(as_svg(draw(Path(folder))))
    print(PICTURE.relative_to(ROOT))
