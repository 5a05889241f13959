"""The controls of a session on the command line and in a chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolyard.cli.render import show_rows

if TYPE_CHECKING:
    from toolyard.agents.controls import UiSchema


def show_controls(schema: UiSchema) -> None:
    """Id, type, value, and the default where that is another one."""
    show_rows(
        [
            (str(one["id"]), str(one["ui_type"]), in_words(one["value"]), beside(one["value"], one["default"]))
            for one in schema.controls
        ]
    )


def read_value(text: str) -> Any:
    """What was typed as a value: JSON where it is that, else the words themselves; nothing is the default."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def in_words(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def beside(value: Any, default: Any) -> str:
    return "" if value == default else f"default {in_words(default)}"
