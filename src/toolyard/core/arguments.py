"""Decode a tool call's arguments and check them against a JSON Schema: lenient in, strict out."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolyard.core.argument_faults import (
    ABSENT,
    ArgumentFault,
    BadArguments,
    branches_of_its_kind,
    brief,
    faults_in,
    kind_of,
    path_text,
    value_at,
)

# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jsonschema.protocols import Validator
    from referencing import Specification
    from referencing._core import Resolver

    from toolyard.core.argument_faults import Misfit
    from toolyard.core.tool import Json

__all__ = ["ArgumentDecoder", "ArgumentFault", "BadArguments", "schema_fault"]

_Path: TypeAlias = "tuple[str | int, ...]"
_Changes: TypeAlias = "dict[_Path, Json]"

_MOST_ROUNDS = 8
"""Each round may uncover texts inside a text that the round before has read; nobody nests them deeper."""

_MOST_LEVELS = 64
"""How deep arguments may be nested. The validator needs about ten frames for a level, and out of stack its part in
Rust may panic, which no `except Exception` stops."""

_MOST_TRIALS = 5_000
"""How many alternatives are tried for one call; nested ones multiply."""

_ALWAYS_APPLIED = ("allOf",)
_EVER_APPLIED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")

_TYPE_NAMES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    dict: ("object",),
    float: ("number",),
    int: ("integer", "number"),
    list: ("array",),
    str: ("string",),
    type(None): ("null",),
}


class ArgumentDecoder:
    """Decodes and checks the arguments of one tool, whose schema `schema_fault` finds nothing wrong with."""

    def __init__(self, schema: Mapping[str, Json], *, defaults: Mapping[str, Json] | None = None) -> None:
        """Compile the schema once; `defaults` win over those that it has itself."""
        from referencing import Registry

        dialect = _dialect(schema)
        root = _root_part(schema, dialect)
        # An explicit registry, because the library's own would fetch what the schema refers to.
        self._validator = _exact(dialect)(root.schema, registry=Registry())
        self._required = frozenset(name for facet in _facets(root) for name in facet.schema.get("required", ()))
        self._defaults = _all_defaults(root, defaults or {})

    def decode(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        """The arguments as the schema wants them, or all that is wrong with them."""
        from referencing.exceptions import Unresolvable

        try:
            given: Json = _parse(arguments) if isinstance(arguments, str) else arguments
            if isinstance(given, Mapping):
                return self._fitted(dict(given))
            return _refusal(f"expected a JSON object, got {kind_of(given)}: {brief(given)}")
        except _NotJsonError as error:
            return _refusal(str(error))
        except RecursionError:
            return _refusal(f"nested too deeply, at most {_MOST_LEVELS} levels are allowed")
        except Unresolvable:
            return _refusal("cannot be checked: a reference in the tool's schema points to nothing")
        except (ArithmeticError, ValueError) as error:
            return _refusal(f"cannot be checked: {error}")

    def _fitted(self, given: dict[str, Json]) -> dict[str, Json] | BadArguments:
        repair, taken = _Repair(), set[_Path]()
        value = self._defaults.fill(given, (), taken)
        for _ in range(_MOST_ROUNDS):
            if _is_deeper(value, _MOST_LEVELS):
                raise RecursionError
            errors = list(self._validator.iter_errors(value))
            if not errors:
                return value  # type: ignore[no-any-return]  # an object stays one
            changes = repair.changes(self._validator, value, errors) | self._refused_nulls(errors, taken)
            if not changes:
                break
            value = self._defaults.fill(_changed(value, changes), (), taken)
        return BadArguments(faults=faults_in(errors, given))

    def _refused_nulls(self, errors: Sequence[Misfit], taken: set[_Path]) -> _Changes:
        """Nulls that mean "not given": a model's for an optional property, and defaults that do not fit."""
        nulls = [tuple(error.path) for error in errors if error.instance is None and error.path]
        optional = (path for path in nulls if path in taken or (len(path) == 1 and path[0] not in self._required))
        return dict.fromkeys(optional, ABSENT)


def schema_fault(schema: Json) -> str | None:
    """Why this is not a usable JSON Schema for arguments, or None."""
    if not isinstance(schema, Mapping):
        return f"a schema is an object, not {kind_of(schema)}"
    try:
        return _dialect_fault(schema) or _whole_fault(dict(schema), _dialect(schema))
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"an address in it is not valid: {error}"


class _NotJsonError(ValueError):
    """A text is not strict JSON; the message says why."""


def _refusal(message: str) -> BadArguments:
    return BadArguments(faults=(ArgumentFault(path="", message=message),))


def _parse(text: str) -> Json:
    try:
        return _STRICT_JSON.decode(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise _NotJsonError(f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise _NotJsonError(f"the key {brief(twice)} is given more than once")
    return unique


def _refuse_constant(name: str) -> Json:
    raise _NotJsonError(f"not valid JSON: {name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NotJsonError(f"the number {digits:.20} is too large")
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise _NotJsonError(f"the number {digits[:20]}… has too many digits") from None


_STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)


class _Repair:
    """Makes one call's values fit by reading texts as what they spell, guided by the validator's errors."""

    def __init__(self) -> None:
        self._trials_left = _MOST_TRIALS

    def changes(self, validator: Validator, value: Json, errors: Sequence[Misfit]) -> _Changes:
        """The values to put in place of those that the errors complain of."""
        changes: _Changes = {}
        for error in errors:
            path = tuple(error.path)
            # What is complained of may also be a property's name, which stays as it is.
            if path not in changes and value_at(value, path) is error.instance:
                better = self._better(validator, error)
                if better is not error.instance:
                    changes[path] = better
        return changes

    def _better(self, validator: Validator, error: Misfit) -> Json:
        match error.validator:
            case "type":
                types = error.validator_value
                return _as_type(error.instance, [types] if isinstance(types, str) else types)
            case "enum":
                return _as_member(error.instance, error.validator_value)
            case "const":
                return _as_member(error.instance, [error.validator_value])
            case "anyOf" | "oneOf" if error.context:
                return self._as_alternative(validator, error)
            case _:
                return error.instance

    def _as_alternative(self, validator: Validator, error: Misfit) -> Json:
        """The value as the first alternative that it can be made to fit; else as near as one could bring it."""
        nearest = error.instance
        takes_text = bool(branches_of_its_kind(error))
        whole = validator.evolve(schema={str(error.validator): error.validator_value})
        for schema in error.validator_value:
            attempt = self._settled(validator.evolve(schema=schema), error.instance)
            if attempt is error.instance or (attempt is None and takes_text):
                continue
            if whole.is_valid(attempt):
                return attempt
            if nearest is error.instance:
                nearest = attempt
        return nearest

    def _settled(self, validator: Validator, value: Json) -> Json:
        from referencing.exceptions import Unresolvable

        for _ in range(_MOST_ROUNDS):
            self._trials_left -= 1
            if self._trials_left < 0:
                break
            try:
                changes = self.changes(validator, value, list(validator.iter_errors(value)))
            except Unresolvable:
                # An alternative inside a part with an `$id` of its own is out of its context here.
                break
            if not changes:
                break
            value = _changed(value, changes)
        return value


def _as_type(value: Json, types: Sequence[str]) -> Json:
    spelled = _spelled(value)
    if isinstance(spelled, float) and spelled.is_integer() and "integer" in types and "number" not in types:
        return int(spelled)
    return spelled if any(name in types for name in _TYPE_NAMES.get(type(spelled), ())) else value


def _as_member(value: Json, members: Sequence[Json]) -> Json:
    spelled = _spelled(value)
    return spelled if spelled in members else value


def _spelled(value: Json) -> Json:
    """What a text spells in JSON, unless that is again a text; anything else is itself."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        spelled = _STRICT_JSON.decode(text.lower() if text.lower() in ("true", "false") else text)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(spelled, str) or _is_deeper(spelled, _MOST_LEVELS) else spelled


def _is_deeper(value: Json, levels: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(child, levels - 1) for child in children if isinstance(child, dict | list))


def _changed(value: Json, changes: _Changes) -> Json:
    """A copy with other values at some paths; all that does not change is shared."""
    if () in changes:
        return changes[()]
    below: dict[str | int, _Changes] = {}
    for (head, *rest), new in changes.items():
        below.setdefault(head, {})[tuple(rest)] = new
    copy = value.copy()
    for head, deeper in below.items():
        copy[head] = _changed(value[head], deeper)
        if copy[head] is ABSENT:
            del copy[head]
    return copy


@dataclass(slots=True)
class _Defaults:
    """The defaults of an object's properties and of all below it; a recursive schema makes a ring of these."""

    own: dict[str, Json] = field(default_factory=dict)
    below: dict[str, list[_Defaults]] = field(default_factory=dict)
    items: list[_Defaults] = field(default_factory=list)

    @classmethod
    def of(cls, part: _Part, known: dict[int, _Defaults]) -> _Defaults:
        """Collect what a schema has, also behind references."""
        if (found := known.get(id(part.schema))) is not None:
            return found
        defaults = known[id(part.schema)] = cls()
        for facet in _facets(part):
            for name, schema in facet.schema.get("properties", {}).items():
                defaults._add(name, facet.into(schema), known)
            if isinstance(items := facet.schema.get("items"), Mapping):
                defaults.items.append(cls.of(facet.into(items), known))
        return defaults

    def _add(self, name: str, part: _Part, known: dict[int, _Defaults]) -> None:
        for facet in _facets(part):
            if "default" in facet.schema:
                self.own.setdefault(name, facet.schema["default"])
        self.below.setdefault(name, []).append(_Defaults.of(part, known))

    def fill(self, value: Json, path: _Path, taken: set[_Path]) -> Json:
        """A copy with the defaults that are missing; each is offered once and stays as its author wrote it."""
        if path in taken:
            return value
        if isinstance(value, dict):
            return {**value, **self._missing(value, path, taken), **self._filled_below(value, path, taken)}
        if isinstance(value, list):
            for node in self.items:
                value = [node.fill(item, (*path, index), taken) for index, item in enumerate(value)]
        return value

    def _missing(self, value: dict[str, Json], path: _Path, taken: set[_Path]) -> dict[str, Json]:
        names = [name for name in self.own if name not in value and (*path, name) not in taken]
        taken.update((*path, name) for name in names)
        return {name: _copied(self.own[name]) for name in names}

    def _filled_below(self, value: dict[str, Json], path: _Path, taken: set[_Path]) -> dict[str, Json]:
        filled: dict[str, Json] = {}
        for name, nodes in self.below.items():
            if isinstance(value.get(name), dict | list):
                for node in nodes:
                    filled[name] = node.fill(filled.get(name, value[name]), (*path, name), taken)
        return filled


def _all_defaults(root: _Part, extra: Mapping[str, Json]) -> _Defaults:
    known: dict[int, _Defaults] = {}
    found = _Defaults.of(root, known)
    if not any(each.own for each in known.values()):
        # Most schemas have none, and then a call's arguments need no walk.
        return _Defaults(own=dict(extra))
    # A copy, because a reference back to the root must not bring the extra ones along.
    return _Defaults(own={**found.own, **extra}, below=found.below, items=found.items)


def _copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A schema inside the schema, and from where its references are to be read."""

    schema: Json
    resolver: Resolver[Any]
    specification: Specification[Any]

    def into(self, schema: Json) -> _Part:
        """A schema that lies directly in this one."""
        resolver = self.resolver.in_subresource(self.specification.create_resource(schema))
        return _Part(schema=schema, resolver=resolver, specification=self.specification)

    def target(self, reference: str) -> _Part:
        """The schema that is referred to; LookupError when there is none."""
        from referencing.exceptions import Unresolvable

        try:
            found = self.resolver.lookup(reference)
        # A pointer that leads through something else than schemas fails with whatever Python says to that.
        except (Unresolvable, AttributeError, TypeError, ValueError):
            raise LookupError(reference) from None
        return _Part(schema=found.contents, resolver=found.resolver, specification=self.specification)

    def references(self) -> Iterator[str]:
        """The references that this schema makes itself."""
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in self.schema:
                yield self.schema[keyword]

    def targets(self) -> Iterator[_Part]:
        """The schemas that are referred to, as far as they exist."""
        for reference in self.references():
            with suppress(LookupError):
                yield self.target(reference)

    def beside(self, keywords: Iterable[str]) -> Iterator[_Part]:
        """The schemas under some keywords that are for the same value."""
        found = [schema for keyword in keywords for schema in _schemas_under(keyword, self.schema.get(keyword))]
        return (self.into(schema) for schema in found if isinstance(schema, Mapping))

    def with_all_below(self) -> Iterator[_Part]:
        """This schema and all that lie in it, without following references."""
        yield self
        for schema in self.specification.subresources_of(self.schema):
            # Not a schema of true or false, nor the list of names that older dialects allow in its place.
            if isinstance(schema, Mapping):
                yield from self.into(schema).with_all_below()


def _root_part(schema: Mapping[str, Json], dialect: type[Validator]) -> _Part:
    from referencing import Registry
    from referencing.jsonschema import specification_with

    meta = dialect.META_SCHEMA
    specification = specification_with(meta.get("$id") or meta["id"])
    # A reference back to the root would else leave the exact dialect for the standard one.
    plain = {name: value for name, value in schema.items() if name != "$schema"}
    resolver = Registry().resolver_with_root(specification.create_resource(plain))
    return _Part(schema=plain, resolver=resolver, specification=specification)


def _schemas_under(keyword: str, value: Json) -> list[Json]:
    if keyword in ("dependencies", "dependentSchemas") and isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _facets(part: _Part, keywords: Sequence[str] = _ALWAYS_APPLIED) -> list[_Part]:
    """All the schemas for the same value: itself, those under the keywords, and those referred to."""
    facets: dict[int, _Part] = {}
    todo = deque([part])
    while todo:
        current = todo.popleft()
        if not isinstance(current.schema, Mapping) or id(current.schema) in facets:
            continue
        facets[id(current.schema)] = current
        todo.extend(current.beside(keywords))
        todo.extend(current.targets())
    return list(facets.values())


def _dialect(schema: Mapping[str, Json]) -> type[Validator]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


@cache
def _exact(dialect: type[Validator]) -> type[Validator]:
    """A dialect in which 3.0 is no integer, so that it is seen and handed on as 3."""
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    standard = dialect.VALIDATORS["type"]

    def exact_type(validator: Any, types: Any, instance: Any, schema: Any) -> Any:
        names = _TYPE_NAMES.get(type(instance))
        if names is None:
            return standard(validator, types, instance, schema)
        if types in names if isinstance(types, str) else any(name in types for name in names):
            return ()
        return (ValidationError("of another type"),)

    extended: type[Validator] = extend(dialect, {"type": exact_type})  # type: ignore[no-untyped-call]  # has no types
    return extended


def _dialect_fault(schema: Mapping[str, Json]) -> str | None:
    from jsonschema import Draft3Validator

    if not isinstance(schema.get("$schema", ""), str):
        return f"$schema: expected a string, got {brief(schema['$schema'])}"
    if _dialect(schema) is Draft3Validator:
        return "$schema: draft 3 is not supported, use a later one"
    return None


def _whole_fault(schema: dict[str, Json], dialect: type[Validator]) -> str | None:
    return _meta_fault(schema, dialect) or _kind_fault(schema) or _part_fault(_root_part(schema, dialect), dialect)


def _meta_fault(schema: Json, dialect: type[Validator]) -> str | None:
    errors = _meta_validator(dialect).iter_errors(schema)
    return next((str(fault) for fault in faults_in(errors, schema)), None)


@cache
def _meta_validator(dialect: type[Validator]) -> Validator:
    from referencing import Registry

    return dialect(dialect.META_SCHEMA, registry=Registry(), format_checker=dialect.FORMAT_CHECKER)


def _kind_fault(schema: dict[str, Json]) -> str | None:
    types = schema.get("type", "object")
    if "object" in ([types] if isinstance(types, str) else types):
        return None
    return f"type: arguments are always an object, which {brief(types)} does not allow"


def _part_fault(root: _Part, dialect: type[Validator]) -> str | None:
    """What the meta-schema does not see, in every part that can be reached."""
    known: dict[int, _Part] = {}
    todo = deque([root])
    while todo:
        start = todo.popleft()
        if not isinstance(start.schema, Mapping) or id(start.schema) in known:
            continue
        if start is not root and (fault := _meta_fault(start.schema, dialect)):
            return f"{_place(root, start)}: {fault}"
        for part in start.with_all_below():
            known[id(part.schema)] = part
            if fault := _pattern_fault(part.schema) or _foreign_fault(part.schema, dialect) or _reference_fault(part):
                return _located(root, part, fault)
            todo.extend(part.targets())
    # Only now are all parts known to be schemas, so that they can be walked.
    return next((_located(root, part, fault) for part in known.values() if (fault := _endless_fault(part))), None)


def _pattern_fault(schema: Json) -> str | None:
    several = list(schema.get("patternProperties", ()))
    # The validator also joins them into one, which not all survive.
    for pattern in filter(None, [schema.get("pattern"), *several, "|".join(several)]):
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            keyword = "pattern" if pattern == schema.get("pattern") else "patternProperties"
            return f"{keyword}: {brief(pattern)} is not a regular expression: {error}"
    return None


def _foreign_fault(schema: Json, dialect: type[Validator]) -> str | None:
    if "$schema" not in schema or _dialect(schema) is dialect:
        return None
    return "$schema: a part must be in the same dialect as the whole"


def _reference_fault(part: _Part) -> str | None:
    for reference in part.references():
        try:
            target = part.target(reference)
        except LookupError:
            return f"$ref: {brief(reference)} points to nothing in this schema, and nothing is fetched from elsewhere"
        if not isinstance(target.schema, Mapping | bool):
            return f"$ref: {brief(reference)} does not point to a schema"
    return None


def _endless_fault(part: _Part) -> str | None:
    targets = (facet for target in part.targets() for facet in _facets(target, _EVER_APPLIED))
    return "$ref: leads back to itself without end" if any(each.schema is part.schema for each in targets) else None


def _located(root: _Part, part: _Part, fault: str) -> str:
    return ".".join(filter(None, [_place(root, part), fault]))


def _place(root: _Part, part: _Part) -> str:
    return path_text(_path_to(root.schema, part.schema) or ())


def _path_to(value: Json, wanted: Json) -> _Path | None:
    if value is wanted:
        return ()
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if (rest := _path_to(child, wanted)) is not None:
            return (key, *rest)
    return None
