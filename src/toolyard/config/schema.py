"""The JSON Schema of a configuration file, for editors and for whoever wants to check one without us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.config.settings import SECTIONS, FileSettings

if TYPE_CHECKING:
    from toolyard.core.tool import Json

__all__ = ["config_schema"]


def config_schema() -> dict[str, Json]:
    """Made from the typed settings, so that it agrees with what is checked here."""
    schema = msgspec.json.schema(FileSettings)
    parts = schema["$defs"]
    for kind in SECTIONS.values():
        parts[kind.__name__]["additionalProperties"] = False
    whole = parts.pop(FileSettings.__name__)
    for part in (whole, *parts.values()):
        part.pop("required", None)
        part["description"] = part.pop("description", "").replace("`", "'")
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Toolyard configuration"}
    return {**title, **{key: value for key, value in whole.items() if key != "title"}, "$defs": parts}
