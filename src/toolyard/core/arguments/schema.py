"""Whether a JSON Schema can be used to check arguments."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from toolyard.core.arguments.faults import brief, faults_in, kind_of, path_text
from toolyard.core.arguments.parts import TYPE_NAMES, SchemaPart, dialect_of, facets_of, root_part

# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.
if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema.protocols import Validator

    from toolyard.core.arguments.values import ValuePath
    from toolyard.core.tool import Json


EVER_APPLIED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")


def schema_fault(schema: Json) -> str | None:
    """Why this is not a usable JSON Schema for arguments, or None."""
    if not isinstance(schema, Mapping):
        return f"a schema is an object, not {kind_of(schema)}"
    try:
        if is_plain(schema) and kind_fault(dict(schema)) is None:
            return None
        return dialect_fault(schema) or whole_fault(dict(schema), dialect_of(schema))
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"an address in it is not valid: {error}"


def is_plain(schema: Json) -> bool:
    """Whether only common keywords are used, each with a value that fits: most schemas, told in microseconds."""
    return isinstance(schema, dict) and all(key in PLAIN and PLAIN[key](value) for key, value in schema.items())


def is_text(value: Json) -> bool:
    return isinstance(value, str)


def is_flag(value: Json) -> bool:
    return isinstance(value, bool)


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_types(value: Json) -> bool:
    return value in NAMES if isinstance(value, str) else is_name_list(value) and bool(value) and NAMES.issuperset(value)


def is_name_list(value: Json) -> bool:
    return isinstance(value, list) and all(map(is_text, value)) and len(set(value)) == len(value)


def are_plain(value: Json) -> bool:
    return isinstance(value, dict) and all(map(is_plain, value.values()))


NAMES = frozenset(name for names in TYPE_NAMES.values() for name in names)
PLAIN: dict[str, Callable[[Json], bool]] = {
    **dict.fromkeys(("title", "description", "format"), is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), is_count),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), is_flag),
    **dict.fromkeys(("examples", "enum"), lambda value: isinstance(value, list)),
    "additionalProperties": lambda value: is_flag(value) or is_plain(value),
    "default": lambda _: True,
    "items": is_plain,
    "properties": are_plain,
    "required": is_name_list,
    "type": is_types,
}


def dialect_fault(schema: Mapping[str, Json]) -> str | None:
    from jsonschema import Draft3Validator

    if not isinstance(schema.get("$schema", ""), str):
        return f"$schema: expected a string, got {brief(schema['$schema'])}"
    if dialect_of(schema) is Draft3Validator:
        return "$schema: draft 3 is not supported, use a later one"
    return None


def whole_fault(schema: dict[str, Json], dialect: type[Validator]) -> str | None:
    return meta_fault(schema, dialect) or kind_fault(schema) or part_fault(root_part(schema, dialect), dialect)


def meta_fault(schema: Json, dialect: type[Validator]) -> str | None:
    errors = meta_validator(dialect).iter_errors(schema)
    return next((str(fault) for fault in faults_in(errors, schema)), None)


@cache
def meta_validator(dialect: type[Validator]) -> Validator:
    from referencing import Registry

    return dialect(dialect.META_SCHEMA, registry=Registry(), format_checker=dialect.FORMAT_CHECKER)


def kind_fault(schema: dict[str, Json]) -> str | None:
    types = schema.get("type", "object")
    if "object" in ([types] if isinstance(types, str) else types):
        return None
    return f"type: arguments are always an object, which {brief(types)} does not allow"


def part_fault(root: SchemaPart, dialect: type[Validator]) -> str | None:
    """What the meta-schema does not see, in every part that can be reached."""
    known: dict[int, SchemaPart] = {}
    todo = deque([root])
    while todo:
        start = todo.popleft()
        if not isinstance(start.schema, Mapping) or id(start.schema) in known:
            continue
        if start is not root and (fault := meta_fault(start.schema, dialect)):
            return f"{place_of(root, start)}: {fault}"
        for part in start.with_all_below():
            known[id(part.schema)] = part
            if fault := pattern_fault(part.schema) or foreign_fault(part.schema, dialect) or reference_fault(part):
                return located(root, part, fault)
            todo.extend(part.targets())
    # Only now are all parts known to be schemas, so that they can be walked.
    return next((located(root, part, fault) for part in known.values() if (fault := endless_fault(part))), None)


def pattern_fault(schema: Json) -> str | None:
    several = list(schema.get("patternProperties", ()))
    # The validator also joins them into one, which not all survive.
    for pattern in filter(None, [schema.get("pattern"), *several, "|".join(several)]):
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            keyword = "pattern" if pattern == schema.get("pattern") else "patternProperties"
            return f"{keyword}: {brief(pattern)} is not a regular expression: {error}"
    return None


def foreign_fault(schema: Json, dialect: type[Validator]) -> str | None:
    if "$schema" not in schema or dialect_of(schema) is dialect:
        return None
    return "$schema: a part must be in the same dialect as the whole"


def reference_fault(part: SchemaPart) -> str | None:
    for reference in part.references():
        try:
            target = part.target(reference)
        except LookupError:
            return f"$ref: {brief(reference)} points to nothing in this schema, and nothing is fetched from elsewhere"
        if not isinstance(target.schema, Mapping | bool):
            return f"$ref: {brief(reference)} does not point to a schema"
    return None


def endless_fault(part: SchemaPart) -> str | None:
    targets = (facet for target in part.targets() for facet in facets_of(target, EVER_APPLIED))
    return "$ref: leads back to itself without end" if any(each.schema is part.schema for each in targets) else None


def located(root: SchemaPart, part: SchemaPart, fault: str) -> str:
    return ".".join(filter(None, [place_of(root, part), fault]))


def place_of(root: SchemaPart, part: SchemaPart) -> str:
    return path_text(path_to(root.schema, part.schema) or ())


def path_to(value: Json, wanted: Json) -> ValuePath | None:
    if value is wanted:
        return ()
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if (rest := path_to(child, wanted)) is not None:
            return (key, *rest)
    return None
