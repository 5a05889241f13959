"""How arguments reach a bash tool file: as flags, as places on the command line, or as JSON on standard input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.text import LONGEST_WORD, as_word, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import JsonObject
    from toolyard.kinds.bash_script.schema import BashSchema


ROOM = os.sysconf("SC_ARG_MAX") - 262_144
"""What all words together may take, with room left for the environment."""


class PassedArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The words after the subcommand, and what standard input holds."""

    words: Sequence[str]
    stdin: bytes | None = None


class CannotPass(msgspec.Struct, frozen=True, kw_only=True):
    """Why these arguments cannot be put on a command line."""

    reason: str


def pass_arguments(schema: BashSchema, arguments: JsonObject) -> PassedArguments | CannotPass:
    """Arguments in the form that the tool's mode wants."""
    match schema.args_mode:
        case "json":
            return PassedArguments(words=["--args-json"], stdin=encode_json(arguments).encode("utf-8"))
        case "positional":
            missing = missing_places(schema, arguments)
            if missing:
                return CannotPass(reason="\n".join(f"- {name}: required property is missing" for name in missing))
            return checked(positional_words(schema, arguments))
        case _:
            return checked(list(flag_words(schema, arguments)))


def flag_words(schema: BashSchema, arguments: JsonObject) -> Iterator[str]:
    """`--name value` in the order of the schema's properties, then whatever else the call has."""
    properties = schema.parameters.get("properties", {})
    for name in (*properties, *(name for name in arguments if name not in properties)):
        match arguments.get(name):
            case None:
                continue
            case True:
                yield f"--{name}"
            case False:
                yield f"--no-{name}"
            case list() as items:
                for item in items:
                    yield from (f"--{name}", as_word(item))
            case value:
                yield from (f"--{name}", as_word(value))


def positional_words(schema: BashSchema, arguments: JsonObject) -> list[str]:
    """One word for each place, up to the last that has a value."""
    words: list[str] = []
    filled = 0
    for place in schema.positional:
        value = arguments.get(place.name)
        if value is None:
            value = None if place.default is msgspec.UNSET else place.default
        words.append("" if value is None else as_word(value))
        if value is not None:
            filled = len(words)
    return words[:filled]


def missing_places(schema: BashSchema, arguments: JsonObject) -> list[str]:
    return [
        place.name
        for place in schema.positional
        if place.required and arguments.get(place.name) is None and place.default is msgspec.UNSET
    ]


def checked(words: list[str]) -> PassedArguments | CannotPass:
    """Refuse what a command line cannot carry, before anything runs."""
    total = 0
    for word in words:
        if "\0" in word:
            return CannotPass(reason="a command line cannot carry a NUL character; the tool would need args_mode json")
        try:
            size = len(word.encode("utf-8"))
        except UnicodeEncodeError:
            return CannotPass(reason="a command line cannot carry a lone surrogate (half a UTF-16 character)")
        if size > LONGEST_WORD:
            return too_large(size, LONGEST_WORD)
        total += size + 9
    return too_large(total, ROOM) if total > ROOM else PassedArguments(words=words)


def too_large(size: int, most: int) -> CannotPass:
    return CannotPass(
        reason=f"the arguments are too large for a command line ({size} bytes; at most {most} fit); "
        "send less, or let the tool's author use args_mode json, which has no such limit"
    )
