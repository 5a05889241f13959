"""As much of YAML as goose writes: nested maps and lists of plain and quoted scalars, by indentation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.core.tool import Json

PAIR = re.compile(r"(?P<key>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s:#][^:#]*?)\s*:(?:\s+(?P<value>.*))?$")
CONSTANTS: dict[str, Json] = {"true": True, "false": False, "null": None, "~": None, "": None, "{}": {}, "[]": []}


def read_yaml(text: str) -> Json:
    """The value of a document; ValueError for what is not read here: anchors, tags, blocks of text."""
    lines = [
        (len(line) - len(line.lstrip(" ")), line.strip())
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---"
    ]
    value, rest = read_node(lines, 0)
    if rest != len(lines):
        raise ValueError(f"'{lines[rest][1]}' is not indented as what is around it")
    return value


def read_node(lines: list[tuple[int, str]], start: int) -> tuple[Json, int]:
    """The map or list that begins at a line, and the line after it."""
    if start >= len(lines):
        return None, start
    indent, first = lines[start]
    if first == "-" or first.startswith("- "):
        return read_list(lines, start, indent)
    return read_map(lines, start, indent)


def read_list(lines: list[tuple[int, str]], start: int, indent: int) -> tuple[list[Json], int]:
    found: list[Json] = []
    while start < len(lines) and lines[start][0] == indent and lines[start][1].startswith("-"):
        rest = lines[start][1][1:].strip()
        if not rest:
            value, start = read_node(lines, start + 1)
        elif PAIR.match(rest) and not rest.startswith(("'", '"')):
            inner = [*lines[:start], (indent + 2, rest), *lines[start + 1 :]]
            value, start = read_map(inner, start, indent + 2)
        else:
            value, start = scalar(rest), start + 1
        found.append(value)
    return found, start


def read_map(lines: list[tuple[int, str]], start: int, indent: int) -> tuple[dict[str, Json], int]:
    found: dict[str, Json] = {}
    while start < len(lines) and lines[start][0] == indent:
        pair = PAIR.match(lines[start][1])
        if pair is None:
            raise ValueError(f"'{lines[start][1]}' is no 'key: value'")
        key, value = str(scalar(pair["key"])), (pair["value"] or "").strip()
        start += 1
        deeper = start < len(lines) and (
            lines[start][0] > indent or (lines[start][0] == indent and lines[start][1].startswith("- "))
        )
        if not value and deeper:
            found[key], start = read_node(lines, start)
        else:
            found[key] = scalar(value)
    return found, start


def scalar(text: str) -> Json:
    if text.startswith('"'):
        return json.loads(text)
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    text = text.partition(" #")[0].strip()
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text.startswith(("&", "*", "!", "|", ">", "{", "[")):
        raise ValueError(f"'{text}' is more of YAML than is read here")
    try:
        return json.loads(text)
    except ValueError:
        return text
