"""The keywords of JSON Schema that look for patterns, in values and in the names of properties.

The schema library has them too, but hands the patterns to Python's `re`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jsonschema.exceptions import ValidationError

from toolyard.core.arguments.patterns import readable_pattern
from toolyard.core.arguments.steps import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from toolyard.core.tool import Json

NAMES_OF_A_STEP = 20


def check_pattern(_: Any, wanted: str, instance: Json, __: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str) and (found := readable_pattern(wanted)) and not found.found_in(instance):
        yield ValidationError("does not match")


def check_pattern_properties(
    validator: Any, schemas: Mapping[str, Json], instance: Json, _: Json
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    spend_on_names(instance, schemas)
    for text, schema in schemas.items():
        if found := readable_pattern(text):
            for name in filter(found.found_in, instance):
                yield from validator.descend(instance[name], schema, path=name, schema_path=text)


def check_additional_properties(
    validator: Any, allowed: Json, instance: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    spend_on_names(instance, schema.get("patternProperties", ()))
    further = [name for name in instance if not is_named(name, schema)]
    if isinstance(allowed, Mapping):
        for name in further:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and further:
        yield ValidationError("unknown properties")


def check_unevaluated_properties(
    validator: Any, allowed: Json, instance: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    evaluated = evaluated_names(validator, instance, schema)
    unfit = [
        name
        for name in instance
        if name not in evaluated and not fits(validator.descend(instance[name], allowed, path=name, schema_path=name))
    ]
    if unfit:
        yield ValidationError(f"properties that no part of the schema allows: {', '.join(map(repr, sorted(unfit)))}")


def spend_on_names(instance: Mapping[str, Json], patterns: Collection[str]) -> None:
    """Count what it takes to look for each pattern in each name."""
    spend(1 + len(instance) * (1 + len(patterns)) // NAMES_OF_A_STEP)


def is_named(name: str, schema: Mapping[str, Json]) -> bool:
    """Whether a schema has a property of this name, or a pattern that the name matches, or may match."""
    found = map(readable_pattern, schema.get("patternProperties", ()))
    return name in schema.get("properties", ()) or any(one is None or one.found_in(name) for one in found)


def evaluated_names(validator: Any, instance: Mapping[str, Json], schema: Json) -> set[str]:
    """The properties that a schema, or one that it applies to the same value, has something to say about."""
    if not isinstance(schema, Mapping):
        return set()
    spend_on_names(instance, schema.get("patternProperties", ()))
    names = {name for name in instance if is_named(name, schema)}
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            names |= {name for name, value in instance.items() if fits(validator.descend(value, schema[keyword]))}
    for inner, part in applied(validator, instance, schema):
        names |= evaluated_names(inner, instance, part)
    return names


def applied(validator: Any, instance: Mapping[str, Json], schema: Mapping[str, Json]) -> Iterator[tuple[Any, Json]]:
    """The schemas that apply to the same value and that it fits, each with the validator for what it refers to."""
    yield from referred(validator, schema)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(keyword, ()):
            if fits(validator.descend(instance, part)):
                yield validator, part
    for name, part in schema.get("dependentSchemas", {}).items():
        if name in instance:
            yield validator, part
    if "if" in schema:
        holds = fits(validator.descend(instance, schema["if"]))
        yield from ((validator, schema[key]) for key in (("if", "then") if holds else ("else",)) if key in schema)


def referred(validator: Any, schema: Mapping[str, Json]) -> Iterator[tuple[Any, Json]]:
    # The library offers no public way to follow a reference from within a keyword.
    resolver = validator._resolver
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            found = resolver.lookup(schema[keyword])
            yield validator.evolve(schema=found.contents, _resolver=found.resolver), found.contents
    if "$recursiveRef" in schema:
        from referencing.jsonschema import lookup_recursive_ref

        found = lookup_recursive_ref(resolver)
        yield validator.evolve(schema=found.contents, _resolver=found.resolver), found.contents


def fits(errors: Iterator[ValidationError]) -> bool:
    return next(errors, None) is None


KEYWORDS: dict[str, Callable[..., Any]] = {
    "pattern": check_pattern,
    "patternProperties": check_pattern_properties,
    "additionalProperties": check_additional_properties,
    "unevaluatedProperties": check_unevaluated_properties,
}
