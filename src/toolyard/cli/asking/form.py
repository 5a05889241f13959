"""A form that a tool wants a person to fill in, field by field at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.cli.render import show_note
from toolyard.core.visible_text import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.cli.asking.typed_lines import TypedLines
    from toolyard.core.tool import Json, JsonObject

YES_AND_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class NoValue(ValueError):
    """What was typed is no value of the field; the text says what would be one."""


async def fill_form(lines: TypedLines, form: JsonObject) -> dict[str, Json] | None:
    """Each field that was filled in, or None when the person gave up; of a form without fields, whether to go on."""
    fields: dict[str, Any] = form.get("properties") or {}
    if not fields:
        line = await lines.ask("Go on? [y]es, [n]o: ")
        return {} if line is not None and line.strip().lower() in ("y", "yes") else None
    filled: dict[str, Json] = {}
    needed = form.get("required") or ()
    for name, field in fields.items():
        while (line := await lines.ask(field_prompt(name, field))) is not None:
            try:
                value = typed_value(line.strip(), field, is_needed=name in needed)
            except NoValue as error:
                show_note(f"  {error}; Ctrl-D gives up", "error")
                continue
            if value is not None:
                filled[name] = value
            break
        if line is None:
            return None
    return filled


def field_prompt(name: str, field: JsonObject) -> str:
    """What is asked for one field, what can be chosen, and what nothing typed means."""
    usual = f" [{on_one_line(as_typed(field['default']))}]" if "default" in field else ""
    known = choices_of(field)
    told = f" ({', '.join(on_one_line(one) for one in known)})" if known else ""
    return f"  {on_one_line(str(field.get('title') or field.get('description') or name))}{told}{usual}: "


def typed_value(text: str, field: JsonObject, *, is_needed: bool) -> Json:
    """What somebody typed as a value of the field; nothing typed is its default, or None."""
    if not text:
        if is_needed and field.get("default") is None:
            raise NoValue("this has to be filled in")
        return field.get("default")
    match field.get("type"):
        case "boolean":
            if text.lower() not in YES_AND_NO:
                raise NoValue("type yes or no")
            return YES_AND_NO[text.lower()]
        case "integer" | "number" as kind:
            return number_of(text, field, is_whole=kind == "integer")
        case "array":
            return [chosen(one.strip(), choices_of(field)) for one in text.split(",") if one.strip()]
    return chosen(text, choices_of(field))


def number_of(text: str, field: JsonObject, *, is_whole: bool) -> int | float:
    wanted = "a whole number" if is_whole else "a number"
    try:
        value = int(text) if is_whole else float(text)
    except ValueError:
        raise NoValue(f"type {wanted}") from None
    least, most = field.get("minimum"), field.get("maximum")
    if isinstance(least, int | float) and value < least:
        raise NoValue(f"type {wanted}, at least {least:g}")
    if isinstance(most, int | float) and value > most:
        raise NoValue(f"type {wanted}, at most {most:g}")
    return value


def chosen(text: str, known: Sequence[str]) -> str:
    if known and text not in known:
        raise NoValue(f"type one of {', '.join(on_one_line(one) for one in known)}")
    return text


def choices_of(field: JsonObject) -> list[str]:
    """What can be typed, where that is a list: also of a field that takes several, and of choices with titles."""
    if field.get("type") == "boolean":
        return ["yes", "no"]
    if field.get("type") == "array" and isinstance(items := field.get("items"), dict):
        return choices_of(items)
    if isinstance(listed := field.get("enum"), list):
        return [str(one) for one in listed]
    titled = field.get("oneOf") or field.get("anyOf") or ()
    return [str(one["const"]) for one in titled if isinstance(one, dict) and "const" in one]


def as_typed(value: Json) -> str:
    """A value as somebody would type it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(as_typed, value))
    return str(value)
