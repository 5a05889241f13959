"""The tutorial can be typed as it is, from its first command to its last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from support import ROOT, CommandLine

TUTORIAL = ROOT / "docs" / "tutorial.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What stands between fences, and the line that leads to it."""

    kind: str
    text: str
    before: str


def blocks(text: str) -> Iterator[Block]:
    for found in re.finditer(r"^([^\n]*)\n\n```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(kind=found[2], text=found[3], before=found[1])


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command with the output that is shown below it; a here-document belongs to its command."""
    for found in re.finditer(r"^\$ (.*<<'END'\n(?:.*\n)*?END|.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield found[1], found[2]


def test_the_tutorial_can_be_typed_as_it_is(toolyard: CommandLine):
    typed = written = 0
    for block in blocks(TUTORIAL.read_text()):
        if block.kind == "console":
            for command, shown in commands(block.text):
                ran = toolyard.run(["bash", "-c", command])
                assert shown in ran.out + ran.err, command
                typed += 1
        elif named := re.search(r"`(word_count/\S+)`", block.before):
            toolyard.file(named[1], block.text)
            written += 1
    assert (typed, written) == (6, 2)
