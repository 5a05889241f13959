"""Rules: which calls are allowed, asked about or refused, and where each rule is written."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.permissions.paths import parse_path_pattern
from toolyard.permissions.patterns import BadPattern, CommandPattern, parse_pattern

if TYPE_CHECKING:
    from toolyard.config.document import Document, Pointer
    from toolyard.core.events import Decision
    from toolyard.core.tool import Json


KEYS = frozenset({"tool", "command", "write", "read", "path", "arguments", "reason"})


class Origin(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Where a rule comes from; the line in a file is looked up only when it is shown."""

    label: str
    document: Document | None = None
    pointer: Pointer = ()

    def __str__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return str(self.document.position(self.pointer)) if self.document else self.label


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. Without any pattern it is about every call of its tool."""

    decision: Decision
    text: str
    origin: Origin
    tool: str | None = None
    """None for every tool that runs shell commands."""
    command: CommandPattern | None = None
    write: tuple[str, ...] | None = None
    read: tuple[str, ...] | None = None
    path: tuple[str, ...] | None = None
    arguments: dict[str, tuple[str, ...] | str] = msgspec.field(default_factory=dict)
    """For each named argument a path pattern, or a text with `*`."""
    reason: str = ""
    confined: bool = False
    """Of a preset: holds only where every path among the arguments is inside the workspace."""

    def why(self) -> str:
        """What a model is told that runs into the rule."""
        return self.reason or f"the rule '{self.decision} {self.text}' ({self.origin})"


def parse_rule(value: Json, decision: Decision, origin: Origin, *, confined: bool = False) -> Rule | BadPattern:
    """A rule as it is written: a text is a pattern of commands, an object says more."""
    if isinstance(value, str):
        value = {"command": value}
        text = str(value["command"])
    elif isinstance(value, dict):
        text = text_of(value)
    else:
        return BadPattern("a rule is a text, such as 'git status **', or an object")
    fields = read_fields(value)
    if isinstance(fields, BadPattern):
        return fields
    return Rule(decision=decision, text=text, origin=origin, confined=confined, **fields)


def read_fields(value: dict[str, Json]) -> dict[str, Any] | BadPattern:
    """The fields of a rule, each as its pattern."""
    if unknown := [key for key in value if key not in KEYS]:
        return BadPattern(f"a rule has no '{unknown[0]}'; it has {', '.join(sorted(KEYS))}")
    fields: dict[str, Any] = {}
    for key in ("tool", "command", "write", "read", "path", "reason"):
        if key not in value:
            continue
        text = value[key]
        if not isinstance(text, str) or not text.strip():
            return BadPattern(f"'{key}' must be a text that is not empty")
        fields[key] = text
    for key, parse in (
        ("command", parse_pattern),
        ("write", parse_path_pattern),
        ("read", parse_path_pattern),
        ("path", parse_path_pattern),
    ):
        if key in fields:
            fields[key] = parse(fields[key])
            if isinstance(fields[key], BadPattern):
                return BadPattern(f"'{key}': {fields[key].message}")
    arguments = read_arguments(value.get("arguments", {}))
    if isinstance(arguments, BadPattern):
        return arguments
    return check_combination({**fields, "arguments": arguments})


def read_arguments(value: Json) -> dict[str, tuple[str, ...] | str] | BadPattern:
    if not isinstance(value, dict):
        return BadPattern("'arguments' must be an object of patterns")
    found: dict[str, tuple[str, ...] | str] = {}
    for name, pattern in value.items():
        if isinstance(pattern, dict) and list(pattern) == ["path"] and isinstance(pattern["path"], str):
            parsed = parse_path_pattern(pattern["path"])
            if isinstance(parsed, BadPattern):
                return BadPattern(f"'arguments.{name}': {parsed.message}")
            found[name] = parsed
        elif isinstance(pattern, str):
            found[name] = pattern
        else:
            return BadPattern(f"'arguments.{name}' must be a text with '*', or {{\"path\": …}}")
    return found


def check_combination(fields: dict[str, Any]) -> dict[str, Any] | BadPattern:
    """A rule is about a command, about a file that a command touches, or about a tool."""
    of_shell = [key for key in ("command", "write", "read") if key in fields]
    of_tool = [key for key in ("path", "arguments") if fields.get(key)]
    if len(of_shell) > 1 or (of_shell and of_tool):
        return BadPattern(f"'{of_shell[0]}' and '{(of_shell + of_tool)[1]}' are two rules")
    if not of_shell and "tool" not in fields:
        return BadPattern("a rule needs 'tool', 'command', 'write' or 'read'")
    return fields


def text_of(value: dict[str, Json]) -> str:
    """A rule in a line."""
    shown = {key: part for key, part in value.items() if key != "reason"}
    if list(shown) == ["command"]:
        return str(shown["command"])
    return " ".join(f"{key}={part}" for key, part in shown.items())
