"""Decode a tool call's arguments and check them against a JSON Schema: lenient in, strict out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.arguments.exact_dialect import exact_dialect
from toolyard.core.arguments.faults import ArgumentFault, BadArguments, faults_in, kind_of
from toolyard.core.arguments.plain_schema import plain_defaults, property_types
from toolyard.core.arguments.repair import MOST_LEVELS, MOST_ROUNDS, Repair, changed, is_deeper
from toolyard.core.arguments.steps import TooManySteps, bounded_steps, spend
from toolyard.core.arguments.subschemas import Subschema, dialect_of, in_place, root_schema
from toolyard.core.json_values import ABSENT, NotJsonError, brief, parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.arguments.faults import ValidatorError
    from toolyard.core.arguments.repair import Repairs
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.


class ArgumentDecoder:
    """Decodes and checks the arguments of one tool, whose schema `schema_fault` finds nothing wrong with."""

    def __init__(self, schema: Mapping[str, Json], *, defaults: Mapping[str, Json] | None = None) -> None:
        """Compile the schema once; `defaults` win over those that it has itself."""
        self._schema, self._given_defaults = schema, defaults or {}
        self._property_types = property_types(schema)
        self._compiled: CompiledSchema | None = None
        own = plain_defaults(schema) if self._property_types else None
        self._defaults = self._compile().defaults if own is None else Defaults(own={**own, **self._given_defaults})

    def decode(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        """Return the arguments as the schema wants them, or all that is wrong with them."""
        if self._property_types is not None and type(arguments) is dict:
            value = self._defaults.filled(arguments)
            if self._property_types.fit(value):
                return value  # type: ignore[no-any-return]  # an object stays one
        return self._compile().decode(arguments)

    def _compile(self) -> CompiledSchema:
        """With the schema library, which arguments that surely fit a plain schema do not need."""
        if self._compiled is None:
            self._compiled = CompiledSchema(self._schema, self._given_defaults)
        return self._compiled


class CompiledSchema:
    """A schema as the library checks it, and the defaults of all that it describes."""

    def __init__(self, schema: Mapping[str, Json], defaults: Mapping[str, Json]) -> None:
        dialect = dialect_of(schema)
        root = root_schema(schema, dialect)
        self._validator = root.validator(exact_dialect(dialect))
        self._required: frozenset[str] = frozenset()
        self.defaults = NO_DEFAULTS
        self._fault: TooManySteps | None = None
        try:
            with bounded_steps(root.schema):
                self._required = frozenset(name for part in in_place(root) for name in part.schema.get("required", ()))
                self.defaults = Defaults.of_tool(root, defaults)
        except TooManySteps as error:
            self._fault = error

    def decode(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        """Return the arguments as the schema wants them, or all that is wrong with them."""
        from referencing.exceptions import Unresolvable

        try:
            given: Json = parse_json(arguments) if isinstance(arguments, str) else arguments
            if isinstance(given, Mapping):
                if self._fault is not None:
                    raise self._fault
                with bounded_steps(given):
                    return self._validated(dict(given))
            return refusal(f"expected a JSON object, got {kind_of(given)}: {brief(given)}")
        except NotJsonError as error:
            return refusal(str(error))
        except RecursionError:
            return refusal(f"nested too deeply, at most {MOST_LEVELS} levels are allowed")
        except Unresolvable:
            return refusal("cannot be checked: a reference in the tool's schema points to nothing")
        except (ArithmeticError, ValueError) as error:
            return refusal(f"cannot be checked: {error}")

    def _validated(self, given: dict[str, Json]) -> dict[str, Json] | BadArguments:
        """The arguments with defaults; without any, where only those are in the way."""
        filled = self._settled(given, self.defaults)
        if isinstance(filled, BadArguments) and self.defaults != NO_DEFAULTS:
            plain = self._settled(given, NO_DEFAULTS)
            return filled if isinstance(plain, BadArguments) else plain
        return filled

    def _settled(self, given: dict[str, Json], defaults: Defaults) -> dict[str, Json] | BadArguments:
        """Validate, and repair what the errors complain of, until nothing is wrong or nothing can be repaired."""
        repair = Repair()
        filled: set[Pointer] = set()
        value = defaults.fill(given, (), filled)
        for _ in range(MOST_ROUNDS):
            if is_deeper(value, MOST_LEVELS):
                raise RecursionError
            errors = list(self._validator.iter_errors(value))
            if not errors:
                return value  # type: ignore[no-any-return]  # an object stays one
            changes = repair.changes(self._validator, value, errors) | self._refused_nulls(errors, filled)
            changes = changes or refused_defaults(errors, filled)
            if not changes:
                break
            value = defaults.fill(changed(value, changes), (), filled)
        return BadArguments(faults=faults_in(errors, given))

    def _refused_nulls(self, errors: Sequence[ValidatorError], filled: set[Pointer]) -> Repairs:
        """Nulls that mean "not given": a model's for an optional property, and defaults that do not fit."""
        nulls = [tuple(error.path) for error in errors if error.instance is None and error.path]
        optional = (path for path in nulls if path in filled or (len(path) == 1 and path[0] not in self._required))
        return dict.fromkeys(optional, ABSENT)


def refused_defaults(errors: Sequence[ValidatorError], filled: set[Pointer]) -> Repairs:
    """Defaults that do not fit: the author's fault, which no model can mend, so there is none."""
    paths = [tuple(error.path) for error in errors]
    prefixes = (path[:length] for path in paths for length in range(1, len(path) + 1))
    return {prefix: ABSENT for prefix in prefixes if prefix in filled}


def refusal(message: str) -> BadArguments:
    return BadArguments(faults=(ArgumentFault(path="", message=message),))


class Defaults(msgspec.Struct):
    """The defaults of an object's properties and of all below it; a recursive schema makes a ring of these."""

    own: dict[str, Json] = msgspec.field(default_factory=dict)
    below: dict[str, list[Defaults]] = msgspec.field(default_factory=dict)
    items: list[Defaults] = msgspec.field(default_factory=list)

    @classmethod
    def of_tool(cls, root: Subschema, extra: Mapping[str, Json]) -> Defaults:
        """All defaults of a tool's schema, and further ones for the properties at its root."""
        known: dict[int, Defaults] = {}
        found = cls.of(root, known)
        if not any(each.own for each in known.values()):
            # Most schemas have none, and then a call's arguments need no walk.
            return cls(own=dict(extra))
        # A copy, because a reference back to the root must not bring the extra ones along.
        return cls(own={**found.own, **extra}, below=found.below, items=found.items)

    @classmethod
    def of(cls, schema: Subschema, known: dict[int, Defaults]) -> Defaults:
        """Collect what a schema has, also behind references; `known` are those that were collected already."""
        if (found := known.get(id(schema.schema))) is not None:
            return found
        defaults = known[id(schema.schema)] = cls()
        for part in in_place(schema):
            for name, below in part.schema.get("properties", {}).items():
                defaults._add(name, part.child(below), known)
            if isinstance(items := part.schema.get("items"), Mapping):
                defaults.items.append(cls.of(part.child(items), known))
        return defaults

    def _add(self, name: str, schema: Subschema, known: dict[int, Defaults]) -> None:
        for part in in_place(schema):
            if "default" in part.schema:
                self.own.setdefault(name, part.schema["default"])
        self.below.setdefault(name, []).append(Defaults.of(schema, known))

    def filled(self, value: dict[str, Json]) -> Json:
        """The arguments of a call with all defaults; mostly there is none to be added."""
        if self.below or not self.own.keys() <= value.keys():
            return self.fill(value, (), set())
        return {**value}

    def fill(self, value: Json, path: Pointer, filled: set[Pointer]) -> Json:
        """Copy a value and add the missing defaults; each is added once and never repaired."""
        spend()
        if path in filled:
            return value
        if isinstance(value, dict):
            return {**value, **self._missing(value, path, filled), **self._filled_below(value, path, filled)}
        if isinstance(value, list):
            for node in self.items:
                value = [node.fill(item, (*path, index), filled) for index, item in enumerate(value)]
        return value

    def _missing(self, value: dict[str, Json], path: Pointer, filled: set[Pointer]) -> dict[str, Json]:
        names = [name for name in self.own if name not in value and (*path, name) not in filled]
        filled.update((*path, name) for name in names)
        return {name: copied(self.own[name]) for name in names}

    def _filled_below(self, value: dict[str, Json], path: Pointer, filled: set[Pointer]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for name, nodes in self.below.items():
            if isinstance(value.get(name), dict | list):
                for node in nodes:
                    found[name] = node.fill(found.get(name, value[name]), (*path, name), filled)
        return found


NO_DEFAULTS = Defaults()


def copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value
