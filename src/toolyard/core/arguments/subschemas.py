"""The schemas inside a JSON Schema, where their references lead, and in which dialect they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.arguments.steps import spend

# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jsonschema.protocols import Validator
    from referencing import Registry, Specification
    from referencing._core import Resolver

    from toolyard.core.tool import Json


class Subschema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema, and from where its references are to be read."""

    schema: Json
    resolver: Resolver[Any]
    specification: Specification[Any]

    def child(self, schema: Json) -> Subschema:
        resolver = self.resolver.in_subresource(self.specification.create_resource(schema))
        return Subschema(schema=schema, resolver=resolver, specification=self.specification)

    def target(self, reference: str) -> Subschema:
        """The schema that is referred to; LookupError when there is none."""
        from referencing.exceptions import Unresolvable

        try:
            found = self.resolver.lookup(reference)
        # A pointer that leads through something else than schemas fails with whatever Python says to that.
        except (Unresolvable, AttributeError, TypeError, ValueError):
            raise LookupError(reference) from None
        return Subschema(schema=found.contents, resolver=found.resolver, specification=self.specification)

    def validator(self, dialect: type[Validator]) -> Validator:
        """What checks values against it."""
        return dialect(self.schema, registry=meta_schemas(), _resolver=self.resolver)  # type: ignore[call-arg]  # which it has, as `evolve` shows

    def references(self) -> Iterator[str]:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in self.schema:
                yield self.schema[keyword]

    def targets(self) -> Iterator[Subschema]:
        """The schemas that are referred to, as far as they exist."""
        for reference in self.references():
            with suppress(LookupError):
                yield self.target(reference)

    def beside(self, keywords: Iterable[str]) -> Iterator[Subschema]:
        """The schemas under some keywords that are for the same value."""
        found = [schema for keyword in keywords for schema in schemas_under(keyword, self.schema.get(keyword))]
        return (self.child(schema) for schema in found if isinstance(schema, Mapping))

    def with_all_below(self) -> Iterator[Subschema]:
        """This schema and all that lie in it, without following references."""
        yield self
        for schema in self.specification.subresources_of(self.schema):
            # Not a schema of true or false, nor the list of names that older dialects allow in its place.
            if isinstance(schema, Mapping):
                yield from self.child(schema).with_all_below()


def root_schema(schema: Mapping[str, Json], dialect: type[Validator]) -> Subschema:
    from referencing.jsonschema import specification_with

    meta = dialect.META_SCHEMA
    specification = specification_with(meta.get("$id") or meta["id"])
    # A reference back to the root would else leave the exact dialect for the standard one.
    plain = {name: value for name, value in schema.items() if name != "$schema"}
    resource = specification.create_resource(plain)
    address = resource.id() or ""
    registry = meta_schemas().with_resource(address, resource)
    # The library would look through the whole for every reference by name, and forget it again. It stumbles over the
    # lists of names that older dialects allow in the place of schemas, which have no references by name.
    with suppress(AttributeError):
        registry = registry.crawl()
    resolver = registry.resolver(base_uri=address)
    return Subschema(schema=plain, resolver=resolver, specification=specification)


def meta_schemas() -> Registry[Any]:
    """All that a schema can refer to outside of itself: those of JSON Schema, which come with the library.

    The library's own choice would fetch everything else.
    """
    from jsonschema import validators

    known: Registry[Any] = validators.SPECIFICATIONS  # type: ignore[attr-defined]  # imported there, and left out of its types
    return known


def schemas_under(keyword: str, value: Json) -> list[Json]:
    if keyword in ("dependencies", "dependentSchemas") and isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def in_place(schema: Subschema, keywords: Sequence[str] = ("allOf",)) -> list[Subschema]:
    """All the schemas that apply to the same value: itself, those under the keywords, and those referred to."""
    found: dict[int, Subschema] = {}
    todo = deque([schema])
    while todo:
        current = todo.popleft()
        spend()
        if not isinstance(current.schema, Mapping) or id(current.schema) in found:
            continue
        found[id(current.schema)] = current
        todo.extend(current.beside(keywords))
        todo.extend(current.targets())
    return list(found.values())


def dialect_of(schema: Mapping[str, Json]) -> type[Validator]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)
