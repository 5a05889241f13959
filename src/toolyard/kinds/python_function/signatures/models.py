"""Types that bring a schema of their own: pydantic's models and what else pydantic knows to check."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from toolyard.core.schema_parts import with_parts
from toolyard.kinds.python_function.signatures.values import CLASS, JsonType, Misfit, NoJsonForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.tool import Json

REFERENCE = "#/$defs/"


class Definitions:
    """Schemas that others refer to, since they hold themselves."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {}
        self._names: set[str] = set()

    def name_for(self, kind: Any) -> str:
        """A name that nothing else has."""
        wanted = kind if isinstance(kind, str) else str(getattr(kind, "__name__", "Type"))
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def define(self, name: str, schema: Json) -> None:
        self.schemas[name] = schema


def asks_pydantic(kind: Any) -> bool:
    """Whether a class or an annotation is checked by its own, or by pydantic's, rules."""
    if isinstance(kind, type):
        return hasattr(kind, "model_json_schema") or hasattr(kind, "__get_pydantic_core_schema__") or (
            hasattr(kind, "__pydantic_core_schema__")
        )  # fmt: skip
    module = type(kind).__module__
    return module.startswith("pydantic.") and module != "pydantic.fields"


def model_type(hint: Any, definitions: Definitions) -> JsonType:
    """A type by the schema that it brings; values are checked and made by itself."""
    if hasattr(hint, "model_json_schema"):
        schema, convert = hint.model_json_schema(), hint.model_validate
    else:
        pydantic = sys.modules.get("pydantic")
        if pydantic is None:
            raise NoJsonForm(hint, "it is made for pydantic, which is not there")
        adapter = pydantic.TypeAdapter(hint)
        schema, convert = adapter.json_schema(), adapter.validate_python

    def checked(value: Json) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            raise misfit(error) from error

    written = Inlined(schema.get("$defs", {}), definitions).part(schema, ())
    return JsonType(
        schema={key: value for key, value in written.items() if key not in ("$defs", "title")},
        convert=checked,
        rank=CLASS,
    )


def misfit(error: ValueError) -> Misfit:
    """What a model says of a value; of several faults the first, with where it is."""
    details = error.errors() if callable(getattr(error, "errors", None)) else ()  # type: ignore[attr-defined]  # asked
    for detail in details:
        return Misfit(str(detail.get("msg", error)), tuple(detail.get("loc", ())))
    return Misfit(" ".join(str(error).split()))


class Inlined:
    """Writes the parts of a foreign schema where they are referred to: not every model follows references."""

    def __init__(self, parts: Mapping[str, Json], definitions: Definitions) -> None:
        self._parts = parts
        self._definitions = definitions
        self._own: dict[str, str] = {}
        """The names that parts which hold themselves have among the definitions."""

    def part(self, schema: Json, within: tuple[str, ...]) -> dict[str, Json]:
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith(REFERENCE):
            return self._titleless(with_parts(schema, lambda part: self.part(part, within)))
        name = reference.removeprefix(REFERENCE)
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        if name not in self._parts:
            raise NoJsonForm(name, "its schema refers to it, and does not have it")
        if name in within:
            return {"$ref": REFERENCE + self._name(name), **rest}
        found = self.part(self._parts[name], (*within, name))
        if name in self._own and self._own[name] not in self._definitions.schemas:
            self._definitions.define(self._own[name], found)
        return {**found, **rest}

    def _name(self, name: str) -> str:
        if name not in self._own:
            self._own[name] = self._definitions.name_for(name)
        return self._own[name]

    def _titleless(self, schema: dict[str, Json]) -> dict[str, Json]:
        """Titles only repeat the names, and a discriminator's mapping refers to what is written out now."""
        return {key: value for key, value in schema.items() if key not in ("title", "$defs", "discriminator")}
