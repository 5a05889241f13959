"""Whether a JSON Schema can be used to check arguments."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from toolyard.core.arguments.faults import faults_in, kind_of, path_text
from toolyard.core.arguments.plain_schema import is_plain
from toolyard.core.arguments.subschemas import Subschema, dialect_of, meta_schemas, root_schema
from toolyard.core.json_values import brief
from toolyard.core.schema_parts import parts

# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.
if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


EVER_APPLIED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")

MOST_PARTS = 10_000
"""Of a schema that needs the library, which takes a quarter of a millisecond for each."""


def schema_fault(schema: Json) -> str | None:
    """Why this is not a usable JSON Schema for arguments, or None."""
    if not isinstance(schema, Mapping):
        return f"a schema is an object, not {kind_of(schema)}"
    try:
        if is_plain(schema) and kind_fault(dict(schema)) is None:
            return None
        if sum(1 for _ in islice(parts(schema), MOST_PARTS + 1)) > MOST_PARTS:
            return f"has more than {MOST_PARTS:,} parts"
        if fault := dialect_fault(schema):
            return fault
        whole, dialect = dict(schema), dialect_of(schema)
        return meta_fault(whole, dialect) or kind_fault(whole) or part_fault(root_schema(whole, dialect), dialect)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"an address in it is not valid: {error}"


def dialect_fault(schema: Mapping[str, Json]) -> str | None:
    from jsonschema import Draft3Validator

    if not isinstance(schema.get("$schema", ""), str):
        return f"$schema: expected a string, got {brief(schema['$schema'])}"
    if dialect_of(schema) is Draft3Validator:
        return "$schema: draft 3 is not supported, use a later one"
    return None


def meta_fault(schema: Json, dialect: type[Validator]) -> str | None:
    errors = meta_validator(dialect).iter_errors(schema)
    return next((str(fault) for fault in faults_in(errors, schema)), None)


@cache
def meta_validator(dialect: type[Validator]) -> Validator:
    from jsonschema import FormatChecker

    # Patterns are looked at by `schema_notes`, for which a regular expression is not what it is in Python.
    formats = FormatChecker(name for name in dialect.FORMAT_CHECKER.checkers if name != "regex")
    return dialect(dialect.META_SCHEMA, registry=meta_schemas(), format_checker=formats)


def kind_fault(schema: dict[str, Json]) -> str | None:
    types = schema.get("type", "object")
    if "object" in ([types] if isinstance(types, str) else types):
        return None
    return f"type: arguments are always an object, which {brief(types)} does not allow"


def part_fault(root: Subschema, dialect: type[Validator]) -> str | None:
    """What the meta-schema does not see, in every part that can be reached."""
    known: dict[int, Subschema] = {}
    todo = deque([root])
    while todo:
        start = todo.popleft()
        if not isinstance(start.schema, Mapping) or id(start.schema) in known:
            continue
        if start is not root and (fault := meta_fault(start.schema, dialect)):
            return f"{place_of(root, start)}: {fault}"
        for part in start.with_all_below():
            known[id(part.schema)] = part
            if fault := foreign_fault(part.schema, dialect) or reference_fault(part):
                return located(root, part, fault)
            todo.extend(part.targets())
    # Only now are all parts known to be schemas, so that they can be walked.
    endless = endless_part(known)
    return None if endless is None else located(root, endless, "$ref: leads back to itself without end")


def foreign_fault(schema: Json, dialect: type[Validator]) -> str | None:
    if "$schema" not in schema or dialect_of(schema) is dialect:
        return None
    return "$schema: a part must be in the same dialect as the whole"


def reference_fault(part: Subschema) -> str | None:
    for reference in part.references():
        try:
            target = part.target(reference)
        except LookupError:
            return f"$ref: {brief(reference)} points to nothing in this schema, and nothing is fetched from elsewhere"
        if not isinstance(target.schema, Mapping | bool):
            return f"$ref: {brief(reference)} does not point to a schema"
    return None


def endless_part(known: Mapping[int, Subschema]) -> Subschema | None:
    """A part with a reference that leads back to it without any part of the value in between."""
    from graphlib import CycleError, TopologicalSorter

    beside = {
        place: [id(each.schema) for each in (*part.beside(EVER_APPLIED), *part.targets())]
        for place, part in known.items()
    }
    try:
        TopologicalSorter(beside).prepare()
    except CycleError as error:
        ring = set(error.args[1])
        return next(part for place, part in known.items() if place in ring and [*part.references()])
    return None


def located(root: Subschema, part: Subschema, fault: str) -> str:
    return ".".join(filter(None, [place_of(root, part), fault]))


def place_of(root: Subschema, part: Subschema) -> str:
    return path_text(path_to(root.schema, part.schema) or ())


def path_to(value: Json, wanted: Json) -> Pointer | None:
    if value is wanted:
        return ()
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if (rest := path_to(child, wanted)) is not None:
            return (key, *rest)
    return None
