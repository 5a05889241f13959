"""Programs of many commands: which of them a rule for the whole program covers, and which run what they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.options import Concern
from toolyard.permissions.programs import names
from toolyard.permissions.subcommand_tables import CARRYING, ELSEWHERE, LOOKS, SPELLED_OUT, USUAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.shell.words import Word

__all__ = ["HAS_COMMANDS", "subcommand_concerns"]

HAS_COMMANDS = USUAL.keys() | CARRYING.keys() | ELSEWHERE.keys() | {"aws", "gcloud", "az"}
CLOUDS = names("aws gcloud az")
CLOUD_LOOKS = re.compile(r"describe(?:-.*)?|list(?:-.*)?|get(?:-.*)?|ls|show|help|version|wait|lookup-.*")
"""In a cloud it is the last word of the command that says what is done."""
NOWHERE = re.compile(r"(?!)")


def subcommand_concerns(words: Sequence[Word], spelled: int) -> Iterator[Concern]:
    """Whether a rule covers a command of a program that has many; `spelled` says how many words the rule spells out."""
    name = words[0].value or ""
    for word in words[max(spelled, 1) :]:
        option = (word.value if word.value is not None else word.prefix).partition("=")[0]
        if ELSEWHERE.get(name, NOWHERE).fullmatch(option):
            yield Concern(message=f"'{word.text}' is about another place")
    operands = [word for word in words[1:] if not (word.value or "").startswith(("-", "+"))]
    if not operands:
        return
    first = operands[0]
    if first.value is None:
        yield Concern(message=f"what {name} does is not certain")
    elif first.value in CARRYING.get(name, ()):
        is_spelled_out = spelled >= 3 and first is words[1] and first.value in SPELLED_OUT.get(name, ())
        if not is_spelled_out or words[2].value in CARRYING[name]:
            yield Concern(message=f"'{name} {first.value}' runs what it is given")
    elif spelled < 2:
        yield from beyond_looking(name, operands)


def beyond_looking(name: str, operands: Sequence[Word]) -> Iterator[Concern]:
    """What a rule for a whole program was not given for."""
    first = operands[0].value or ""
    more = f"is more than a rule for all of {name} is about"
    if name in CLOUDS:
        if not any(CLOUD_LOOKS.fullmatch(word.value or "") for word in operands[1:3]):
            yield Concern(message=f"'{name} {first}' {more}")
    elif name in USUAL and first not in USUAL[name]:
        yield Concern(message=f"'{name} {first}' {more}")
    elif name in LOOKS and first in LOOKS[name][0] and len(operands) > 1 and operands[1].value not in LOOKS[name][1]:
        yield Concern(message=f"'{name} {first} {operands[1].text}' {more}")
