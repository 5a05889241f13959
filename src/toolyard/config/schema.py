"""The JSON Schema of a configuration file, for editors and for whoever wants to check one without us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.config.settings import PLACEHOLDER_PATTERN, FileSettings, MixinPolicy

if TYPE_CHECKING:
    from toolyard.config.settings import Settings
    from toolyard.core.tool import Json


def config_schema(settings: Settings) -> dict[str, Json]:
    """Make the schema from the typed settings, so that it agrees with what is checked here."""
    schema = msgspec.json.schema(settings.file)
    parts = schema["$defs"]
    for kind in settings.sections.values():
        parts[kind.__name__]["additionalProperties"] = False
    for name, part in parts.items():
        for key, value in part["properties"].items():
            if name != MixinPolicy.__name__ and key != "mixin_merge":  # mixins come before placeholders
                let_placeholders_in(value)
    whole = parts.pop(FileSettings.__name__)
    for part in (whole, *parts.values()):
        part.pop("required", None)
        part["description"] = part.pop("description", "").replace("`", "'")
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Toolyard configuration"}
    return {**title, **{key: value for key, value in whole.items() if key != "title"}, "$defs": parts}


def let_placeholders_in(value: dict[str, Any]) -> None:
    """Allow a placeholder wherever one of some words is expected."""
    if "enum" in value:
        value["anyOf"] = [{"enum": value.pop("enum")}]
    if "items" in value:
        let_placeholders_in(value["items"])
    choices = value.get("anyOf", [])
    if any("enum" in choice for choice in choices):
        choices.append({"type": "string", "pattern": PLACEHOLDER_PATTERN})
