"""What of a usable JSON Schema is passed over: patterns that cannot be read, and defaults that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.arguments.faults import faults_in, path_text
from toolyard.core.arguments.patterns import BadPattern, pattern
from toolyard.core.arguments.plain_schema import checks_of, types_of
from toolyard.core.arguments.steps import bounded_steps
from toolyard.core.json_values import brief
from toolyard.core.schema_parts import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.protocols import Validator

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json, JsonObject


class SchemaNote(msgspec.Struct, frozen=True, kw_only=True):
    """One keyword that asks nothing of anybody."""

    keyword: Literal["pattern", "default"]
    path: Pointer
    """Where the schema is that has it."""
    message: str

    def __str__(self) -> str:
        place = path_text(self.path)
        return f"{place}: {self.message}" if place else self.message


def schema_notes(schema: JsonObject, defaults: JsonObject | None = None) -> list[SchemaNote]:
    """All of them, in a schema that `schema_fault` finds nothing wrong with, and in defaults that others give."""
    with bounded_steps(schema):
        notes = list(unfit_defaults(schema, defaults or {}))
    return [*notes, *(note for path, part in parts(schema) for note in pattern_notes(path, part))]


def unfit_defaults(schema: JsonObject, defaults: JsonObject) -> Iterator[SchemaNote]:
    validator: Validator | None = None
    for path, part, default in [*own_defaults(schema), *given_defaults(schema, defaults)]:
        if not surely_fits(part, default):
            validator = validator or compiled(schema)
            yield from default_notes(validator, path, part, default)


def own_defaults(schema: JsonObject) -> Iterator[tuple[Pointer, JsonObject, Json]]:
    return ((path, part, part["default"]) for path, part in parts(schema) if path and "default" in part)


def given_defaults(schema: JsonObject, defaults: JsonObject) -> Iterator[tuple[Pointer, JsonObject, Json]]:
    properties = schema.get("properties", {})
    for name, default in defaults.items():
        if isinstance(part := properties.get(name), Mapping):
            yield ("properties", name), part, default


def surely_fits(part: JsonObject, default: Json) -> bool:
    """Without the schema library, which takes a tenth of a second to import; null means that there is no default."""
    asked = part.keys() - {"default", "description", "title"}
    if default is None or not asked:
        return True
    if default in ([], {}):
        plain = asked <= {"type", "items", "properties", "additionalProperties"}
        return plain and part.get("type") == ("array" if default == [] else "object")
    return type(default) in types_of(part) and all(is_so(default) for is_so in checks_of(part))


def compiled(schema: JsonObject) -> Validator:
    from toolyard.core.arguments.exact_dialect import exact_dialect
    from toolyard.core.arguments.subschemas import dialect_of, root_schema

    dialect = dialect_of(schema)
    return root_schema(schema, dialect).validator(exact_dialect(dialect))


def default_notes(validator: Validator, path: Pointer, part: JsonObject, default: Json) -> Iterator[SchemaNote]:
    """Why a default cannot be filled in, read as leniently as what a model sends."""
    from referencing.exceptions import Unresolvable

    from toolyard.core.arguments.repair import Repair

    own = validator.evolve(schema=part)
    try:
        if own.is_valid(Repair().settled(own, default)):
            return
        told = "; ".join(map(str, faults_in(own.iter_errors(default), default)))
    except Unresolvable:  # it is inside a part with an `$id` of its own, and out of its context here
        return
    except (ArithmeticError, ValueError, RecursionError) as error:
        told = str(error)
    yield SchemaNote(keyword="default", path=path, message=f"the default {brief(default)} does not fit: {told}")


def pattern_notes(path: Pointer, part: JsonObject) -> Iterator[SchemaNote]:
    texts = [part["pattern"]] if "pattern" in part else []
    for text in [*texts, *part.get("patternProperties", ())]:
        try:
            pattern(text)
        except BadPattern as error:
            yield SchemaNote(keyword="pattern", path=path, message=f"the pattern {error}; it is not checked")
