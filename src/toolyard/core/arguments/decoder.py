"""Decode a tool call's arguments and check them against a JSON Schema: lenient in, strict out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.arguments.faults import ABSENT, ArgumentFault, BadArguments, brief, faults_in, kind_of
from toolyard.core.arguments.parts import SchemaPart, dialect_of, exact_dialect, facets_of, root_part
from toolyard.core.arguments.repair import MOST_ROUNDS, Repair
from toolyard.core.arguments.values import MOST_LEVELS, NotJsonError, ValuePath, changed, is_deeper, parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.arguments.faults import Misfit
    from toolyard.core.arguments.values import Changes
    from toolyard.core.tool import Json


# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.


class ArgumentDecoder:
    """Decodes and checks the arguments of one tool, whose schema `schema_fault` finds nothing wrong with."""

    def __init__(self, schema: Mapping[str, Json], *, defaults: Mapping[str, Json] | None = None) -> None:
        """Compile the schema once; `defaults` win over those that it has itself."""
        from referencing import Registry

        dialect = dialect_of(schema)
        root = root_part(schema, dialect)
        # An explicit registry, because the library's own would fetch what the schema refers to.
        self._validator = exact_dialect(dialect)(root.schema, registry=Registry())
        self._required = frozenset(name for facet in facets_of(root) for name in facet.schema.get("required", ()))
        self._defaults = all_defaults(root, defaults or {})
        self._simple = simple_shape(schema)

    def decode(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        """The arguments as the schema wants them, or all that is wrong with them."""
        if self._simple is not None and type(arguments) is dict:
            value = self._defaults.fill(arguments, (), set())
            if self._simple.fits(value):
                return value  # type: ignore[no-any-return]  # an object stays one
        return self._decode_fully(arguments)

    def _decode_fully(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        from referencing.exceptions import Unresolvable

        try:
            given: Json = parse_json(arguments) if isinstance(arguments, str) else arguments
            if isinstance(given, Mapping):
                return self._fitted(dict(given))
            return refusal(f"expected a JSON object, got {kind_of(given)}: {brief(given)}")
        except NotJsonError as error:
            return refusal(str(error))
        except RecursionError:
            return refusal(f"nested too deeply, at most {MOST_LEVELS} levels are allowed")
        except Unresolvable:
            return refusal("cannot be checked: a reference in the tool's schema points to nothing")
        except (ArithmeticError, ValueError) as error:
            return refusal(f"cannot be checked: {error}")

    def _fitted(self, given: dict[str, Json]) -> dict[str, Json] | BadArguments:
        repair, taken = Repair(), set[ValuePath]()
        value = self._defaults.fill(given, (), taken)
        for _ in range(MOST_ROUNDS):
            if is_deeper(value, MOST_LEVELS):
                raise RecursionError
            errors = list(self._validator.iter_errors(value))
            if not errors:
                return value  # type: ignore[no-any-return]  # an object stays one
            changes = repair.changes(self._validator, value, errors) | self._refused_nulls(errors, taken)
            if not changes:
                break
            value = self._defaults.fill(changed(value, changes), (), taken)
        return BadArguments(faults=faults_in(errors, given))

    def _refused_nulls(self, errors: Sequence[Misfit], taken: set[ValuePath]) -> Changes:
        """Nulls that mean "not given": a model's for an optional property, and defaults that do not fit."""
        nulls = [tuple(error.path) for error in errors if error.instance is None and error.path]
        optional = (path for path in nulls if path in taken or (len(path) == 1 and path[0] not in self._required))
        return dict.fromkeys(optional, ABSENT)


def refusal(message: str) -> BadArguments:
    return BadArguments(faults=(ArgumentFault(path="", message=message),))


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
WORDS = frozenset({"title", "description", "default", "examples", "deprecated"})
"""Keywords that allow everything."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Which properties there may be, and of which exact types."""

    types: Mapping[str, tuple[type, ...]]
    required: frozenset[str]

    def fits(self, value: dict[str, Json]) -> bool:
        """Whether a value surely fits; an exact look at the types tells booleans from numbers."""
        types = self.types
        for name, item in value.items():
            if type(item) not in types.get(name, ()):
                return False
        return self.required <= value.keys()


def simple_shape(schema: Mapping[str, Json]) -> Shape | None:
    """The shape of a schema that says no more than a shape can."""
    said = {key: value for key, value in schema.items() if key not in WORDS}
    properties = said.pop("properties", {})
    required = said.pop("required", [])
    # Whatever is not listed does not fit the shape, so further properties may be allowed or not.
    if said.pop("type", None) != "object" or said.keys() - {"additionalProperties"}:
        return None
    if isinstance(said.get("additionalProperties"), Mapping) or not isinstance(properties, Mapping):
        return None
    types = {name: types_of(part) for name, part in properties.items()}
    return Shape(types=types, required=frozenset(required))


def types_of(schema: Json) -> tuple[type, ...]:
    """The types a property's schema allows, none when it says more than a type."""
    if not isinstance(schema, Mapping) or schema.keys() - WORDS != {"type"}:
        return ()
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return tuple(kind for name in names for kind in TYPES.get(name, ()))


class Defaults(msgspec.Struct):
    """The defaults of an object's properties and of all below it; a recursive schema makes a ring of these."""

    own: dict[str, Json] = msgspec.field(default_factory=dict)
    below: dict[str, list[Defaults]] = msgspec.field(default_factory=dict)
    items: list[Defaults] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, part: SchemaPart, known: dict[int, Defaults]) -> Defaults:
        """Collect what a schema has, also behind references."""
        if (found := known.get(id(part.schema))) is not None:
            return found
        defaults = known[id(part.schema)] = cls()
        for facet in facets_of(part):
            for name, schema in facet.schema.get("properties", {}).items():
                defaults._add(name, facet.into(schema), known)
            if isinstance(items := facet.schema.get("items"), Mapping):
                defaults.items.append(cls.of(facet.into(items), known))
        return defaults

    def _add(self, name: str, part: SchemaPart, known: dict[int, Defaults]) -> None:
        for facet in facets_of(part):
            if "default" in facet.schema:
                self.own.setdefault(name, facet.schema["default"])
        self.below.setdefault(name, []).append(Defaults.of(part, known))

    def fill(self, value: Json, path: ValuePath, taken: set[ValuePath]) -> Json:
        """A copy with the defaults that are missing; each is offered once and stays as its author wrote it."""
        if path in taken:
            return value
        if isinstance(value, dict):
            return {**value, **self._missing(value, path, taken), **self._filled_below(value, path, taken)}
        if isinstance(value, list):
            for node in self.items:
                value = [node.fill(item, (*path, index), taken) for index, item in enumerate(value)]
        return value

    def _missing(self, value: dict[str, Json], path: ValuePath, taken: set[ValuePath]) -> dict[str, Json]:
        names = [name for name in self.own if name not in value and (*path, name) not in taken]
        taken.update((*path, name) for name in names)
        return {name: copied(self.own[name]) for name in names}

    def _filled_below(self, value: dict[str, Json], path: ValuePath, taken: set[ValuePath]) -> dict[str, Json]:
        filled: dict[str, Json] = {}
        for name, nodes in self.below.items():
            if isinstance(value.get(name), dict | list):
                for node in nodes:
                    filled[name] = node.fill(filled.get(name, value[name]), (*path, name), taken)
        return filled


def all_defaults(root: SchemaPart, extra: Mapping[str, Json]) -> Defaults:
    known: dict[int, Defaults] = {}
    found = Defaults.of(root, known)
    if not any(each.own for each in known.values()):
        # Most schemas have none, and then a call's arguments need no walk.
        return Defaults(own=dict(extra))
    # A copy, because a reference back to the root must not bring the extra ones along.
    return Defaults(own={**found.own, **extra}, below=found.below, items=found.items)


def copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value
