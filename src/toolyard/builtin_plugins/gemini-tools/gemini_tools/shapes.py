"""What the definitions of these tools are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import Hints, JsonInput, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STRING: Mapping[str, Any] = {"type": "string"}
BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}


def schemas(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str], hints: Hints
) -> list[ToolSpec]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return [ToolSpec(name=name, description=description, input=JsonInput(schema=schema), hints=hints)]


LOOKS = Hints(read_only=True)
CHANGES = Hints(parallel=False)
