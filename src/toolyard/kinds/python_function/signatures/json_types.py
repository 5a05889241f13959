"""Python types as JSON has them: a schema of each, and how a value of that becomes one of the type."""

from __future__ import annotations

import collections
import collections.abc as abc
import dataclasses
import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Literal, LiteralString, NewType, TypeVar, Union, get_args

import msgspec

from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.kinds.python_function.signatures.classes import class_fields
from toolyard.kinds.python_function.signatures.constraints import constrained
from toolyard.kinds.python_function.signatures.models import Definitions, asks_pydantic, model_type
from toolyard.kinds.python_function.signatures.scalars import choice_type, enum_type, scalar_type
from toolyard.kinds.python_function.signatures.values import CLASS, LAST, JsonType, Misfit, NoJsonForm, within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.core.tool import Json
    from toolyard.kinds.python_function.signatures.classes import ClassFields

LISTS: dict[Any, Callable[[Any], Any]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), list),
    collections.deque: collections.deque,
}
SETS: dict[Any, Callable[[Any], Any]] = {
    **dict.fromkeys((set, abc.Set, abc.MutableSet), set),
    frozenset: frozenset,
}
MAPPINGS: dict[Any, Callable[[Any], Any]] = {
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping, collections.defaultdict), dict),
    collections.OrderedDict: collections.OrderedDict,
    collections.Counter: collections.Counter,
}
WRAPPERS = (
    typing.Required,
    typing.NotRequired,
    typing.Final,
    typing.ClassVar,
    getattr(typing, "ReadOnly", typing.Final),
)
ANYTHING = JsonType(schema={}, convert=lambda value: value, rank=LAST)


class TypeReader:
    """Reads the types of one function; those that hold themselves are defined apart, and referred to."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self._open: dict[Any, str] = {}
        """Classes that are being read, by the names of their definitions."""
        self._done: dict[Any, JsonType] = {}
        self._variables: dict[Any, Any] = {}

    def read(self, hint: Any) -> JsonType:
        """A type as JSON has it; raises `NoJsonForm`."""
        hint = self._plain(hint)
        origin = typing.get_origin(hint)
        if hint is Any:
            return ANYTHING
        if origin is Annotated:
            return self._annotated(hint)
        if origin in (Union, types.UnionType):
            return self._union(get_args(hint))
        if origin is Literal:
            return choice_type(get_args(hint))
        if (found := self._container(origin or hint, get_args(hint))) is not None:
            return found
        if isinstance(origin or hint, type):
            return self._class(hint, origin or hint)
        raise NoJsonForm(hint)

    def _plain(self, hint: Any) -> Any:
        """What a name or a wrapper stands for."""
        if hint is None:
            return type(None)
        if hint is LiteralString:
            return str
        if isinstance(hint, TypeVar):
            several = Union[hint.__constraints__] if hint.__constraints__ else Any  # noqa: UP007 - any number of them
            bound = hint.__bound__ or several
            return self._plain(self._variables.get(hint, bound))
        if isinstance(hint, NewType):
            return self._plain(hint.__supertype__)
        if isinstance(hint, dataclasses.InitVar):
            return self._plain(hint.type)
        if typing.get_origin(hint) in WRAPPERS:
            return self._plain(get_args(hint)[0])
        if type(hint).__name__ == "TypeAliasType":
            return self._plain(hint.__value__)
        if isinstance(hint, str | ForwardRef):
            raise NoJsonForm(hint)
        return hint

    def _annotated(self, hint: Any) -> JsonType:
        inner, *extras = get_args(hint)
        if any(map(asks_pydantic, extras)):
            return model_type(hint, self.definitions)
        return constrained(self.read(inner), extras)

    def _union(self, hints: Sequence[Any]) -> JsonType:
        read = [self.read(hint) for hint in hints if hint is not msgspec.UnsetType]
        schemas: list[Json] = []
        for option in read:
            if option.schema not in schemas:
                schemas.append(option.schema)
        ordered = sorted(read, key=lambda option: option.rank)
        rank = max(option.rank for option in read)
        schema = schemas[0] if len(schemas) == 1 else {} if {} in schemas else {"anyOf": schemas}
        return JsonType(schema=schema, convert=lambda value: first_fitting(ordered, value), rank=rank)

    def _container(self, kind: Any, parts: Sequence[Any]) -> JsonType | None:
        if kind is tuple:
            return self._tuple(parts)
        if kind in LISTS or kind in SETS:
            return self._list(kind, parts)
        if kind in MAPPINGS:
            return self._mapping(kind, parts)
        return None

    def _list(self, kind: Any, parts: Sequence[Any]) -> JsonType:
        item = self.read(parts[0]) if parts else ANYTHING
        make = LISTS.get(kind) or SETS[kind]
        unique = {"uniqueItems": True} if kind in SETS else {}
        # Without `items` some models' providers refuse the tool.
        return JsonType(
            schema={"type": "array", "items": item.schema, **unique},
            convert=lambda value: make_of(make, items(value, [item.convert] * len(listed(value)))),
        )

    def _tuple(self, parts: Sequence[Any]) -> JsonType:
        if not parts or parts[-1] is Ellipsis:
            item = self.read(parts[0]) if parts else ANYTHING
            return JsonType(
                schema={"type": "array", "items": item.schema},
                convert=lambda value: tuple(items(value, [item.convert] * len(listed(value)))),
            )
        read = [] if parts == ((),) else [self.read(part) for part in parts]
        return tuple_type([part.schema for part in read], [part.convert for part in read], tuple)

    def _mapping(self, kind: Any, parts: Sequence[Any]) -> JsonType:
        name, item = (self.read(part) for part in mapping_parts(kind, parts))
        named = {} if name.schema in ({}, {"type": "string"}) else name_schema(name.schema)
        rest = {"additionalProperties": item.schema} if item.schema else {}

        def convert(value: Json) -> Any:
            found = expect(value, dict)
            return MAPPINGS[kind](
                {within(key, name_converter(name), key): within(key, item.convert, each) for key, each in found.items()}
            )

        return JsonType(schema={"type": "object", **named, **rest}, convert=convert)

    def _class(self, hint: Any, kind: type) -> JsonType:
        if hint in self._open:
            return self._reference(hint)
        if hint in self._done:
            return self._done[hint]
        if found := scalar_type(kind) or enum_type(kind):
            return found
        if asks_pydantic(kind):
            return model_type(hint, self.definitions)
        fields = class_fields(kind)
        if fields is None:
            raise NoJsonForm(hint)
        self._open[hint] = ""
        outer = self._variables
        self._variables = {**outer, **dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))}
        try:
            read = self._done[hint] = self._with_fields(fields)
        finally:
            self._variables = outer
            name = self._open.pop(hint)
        if name:
            self.definitions.define(name, read.schema)
        return read

    def _reference(self, hint: Any) -> JsonType:
        """A type inside itself."""
        name = self._open[hint] = self._open[hint] or self.definitions.name_for(typing.get_origin(hint) or hint)
        return JsonType(
            schema={"$ref": f"#/$defs/{name}"}, convert=lambda value: self._done[hint].convert(value), rank=CLASS
        )

    def _with_fields(self, fields: ClassFields) -> JsonType:
        read = {field.json_name: self._field(field.hint, field.description) for field in fields.fields}
        for field in fields.fields:
            if field.default is not dataclasses.MISSING:
                read[field.json_name] = read[field.json_name].with_default(field.default)
        if fields.as_array:
            schemas = [each.schema for each in read.values()]
            found = tuple_type(schemas, [each.convert for each in read.values()], lambda given: fields.make(*given))
            least = sum(field.required for field in fields.fields)
            return msgspec.structs.replace(found, schema={**found.schema, "minItems": least})
        return object_type(fields, read)

    def _field(self, hint: Any, description: str) -> JsonType:
        found = self.read(hint)
        return constrained(found, [description]) if description and "description" not in found.schema else found


def first_fitting(options: Sequence[JsonType], value: Json) -> Any:
    """The value as the first type that takes it, the more particular ones first."""
    misfits: list[Misfit] = []
    for option in options:
        try:
            return option.convert(value)
        except Misfit as misfit:
            misfits.append(misfit)
    raise max(misfits, key=lambda misfit: len(misfit.path))  # the one that came farthest says most


def expect(value: Json, kind: type) -> Any:
    if type(value) is kind:
        return value
    raise Misfit(f"expected {TYPE_NAMES[kind][0]}, got {TYPE_NAMES.get(type(value), ('something else',))[0]}")


def listed(value: Json) -> list[Json]:
    return expect(value, list)  # type: ignore[no-any-return]  # that is what was expected


def items(value: Json, converters: Sequence[Callable[[Json], Any]]) -> list[Any]:
    return [
        within(index, convert, item)
        for index, (convert, item) in enumerate(zip(converters, listed(value), strict=False))
    ]


def make_of(make: Callable[[Any], Any], values: list[Any]) -> Any:
    try:
        return make(values)
    except TypeError as error:  # a set of what cannot be in one
        raise Misfit(str(error)) from None


def tuple_type(
    schemas: Sequence[Json], converters: Sequence[Callable[[Json], Any]], make: Callable[[Any], Any]
) -> JsonType:
    """A list of which each place has a type of its own."""
    size = len(schemas)

    def convert(value: Json) -> Any:
        if len(listed(value)) > size:
            raise Misfit(f"expected at most {size} items, got {len(value)}")
        return make_of(make, items(value, converters))

    places = {"prefixItems": list(schemas), "items": False} if schemas else {"items": False}
    return JsonType(schema={"type": "array", **places, "minItems": size, "maxItems": size}, convert=convert)


def mapping_parts(kind: Any, parts: Sequence[Any]) -> tuple[Any, Any]:
    if kind is collections.Counter:
        return (parts[0] if parts else Any), int
    return (parts[0], parts[1]) if len(parts) == 2 else (Any, Any)


def name_schema(schema: Json) -> dict[str, Json]:
    """What the names of an object must be, where they are texts of a certain kind."""
    return {"propertyNames": schema} if schema.get("type") == "string" else {}


def name_converter(name: JsonType) -> Callable[[str], Any]:
    """Names are always texts in JSON, also those that spell numbers."""

    def convert(key: str) -> Any:
        try:
            return name.convert(key)
        except Misfit:
            return name.convert(msgspec.json.decode(key.encode()) if key[:1] in "-0123456789tfn" and key else key)

    return convert


def object_type(fields: ClassFields, read: dict[str, JsonType]) -> JsonType:
    """An object with these properties and no others: what a model sends beside them would be lost."""
    required = [field.json_name for field in fields.fields if field.required]
    names = {field.json_name: field.name for field in fields.fields}
    tag = fields.tag

    def convert(value: Json) -> Any:
        given = dict(expect(value, dict))
        if tag and given.pop(tag[0], tag[1]) != tag[1]:
            raise Misfit(f"expected {tag[1]!r}", (tag[0],))
        if wrong := [name for name in given if name not in names] or [name for name in required if name not in given]:
            raise Misfit("unknown property" if wrong[0] in given else "required property is missing", (wrong[0],))
        return fields.make(**{names[name]: within(name, read[name].convert, item) for name, item in given.items()})

    properties = {tag[0]: {"type": "string", "enum": [tag[1]]}} if tag else {}
    schema = {
        "type": "object",
        **({"description": fields.description} if fields.description else {}),
        "properties": properties | {name: each.schema for name, each in read.items()},
        **({"required": [*properties, *required]} if properties or required else {}),
        "additionalProperties": False,
    }
    return JsonType(schema=schema, convert=made_by_author(convert), rank=CLASS)


def made_by_author(convert: Callable[[Json], Any]) -> Callable[[Json], Any]:
    """What the author's own class objects to is said of the value."""

    def checked(value: Json) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError) as error:
            raise error if isinstance(error, Misfit) else Misfit(" ".join(str(error).split())) from error

    return checked
