"""The fields of the classes that authors write for data: dataclasses, typed dictionaries, structs and the like."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import TYPE_CHECKING, Any, NotRequired, Required, get_origin, get_type_hints

import msgspec

from toolyard.kinds.python_function.signatures.docstring import Docstring, read_docstring
from toolyard.kinds.python_function.signatures.values import NoJsonForm

if TYPE_CHECKING:
    from collections.abc import Callable


class ClassField(msgspec.Struct, frozen=True, kw_only=True):
    """One field: under which name it is given, and under which it is sent."""

    name: str
    json_name: str
    hint: Any
    required: bool
    default: Any = dataclasses.MISSING
    description: str = ""


class ClassFields(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to make an instance."""

    make: Any
    fields: list[ClassField]
    description: str = ""
    as_array: bool = False
    tag: tuple[str, str | int] | None = None
    """A property that every value has, and what it is: by that a class is known among others."""


def class_fields(kind: type) -> ClassFields | None:
    """The fields of a class for data; None for any other class."""
    for fits, read in READERS:
        if fits(kind):
            doc = own_docstring(kind)
            found = read(kind)
            described = [
                msgspec.structs.replace(field, description=field.description or doc.arguments.get(field.name, ""))
                for field in found.fields
            ]
            return msgspec.structs.replace(found, fields=described, description=doc.description)
    return None


def own_docstring(kind: type) -> Docstring:
    """What the author wrote of the class; not what a decorator or a base class says."""
    text = kind.__dict__.get("__doc__")
    generated = not isinstance(text, str) or text.startswith(f"{kind.__name__}(")
    return Docstring() if generated else read_docstring(text)


def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a class, which may name the class itself though no module has it."""
    return get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)


def dataclass_fields(kind: type) -> ClassFields:
    hints = hints_of(kind)
    # All that its constructor takes: also what it takes only there, which the public function leaves out.
    given = [
        field
        for name, field in kind.__dataclass_fields__.items()  # type: ignore[attr-defined]  # a dataclass has them
        if field.init and name in inspect.signature(kind).parameters
    ]
    return ClassFields(make=kind, fields=[dataclass_field(field, hints.get(field.name, Any)) for field in given])


def dataclass_field(field: dataclasses.Field[Any], hint: Any) -> ClassField:
    optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    said = field.metadata.get("description", "")
    return ClassField(
        name=field.name,
        json_name=field.name,
        hint=hint,
        required=not optional,
        default=field.default,
        description=said if isinstance(said, str) else "",
    )


def typed_dict_fields(kind: type) -> ClassFields:
    required: frozenset[str] = kind.__required_keys__  # type: ignore[attr-defined]  # a TypedDict has them
    fields = [
        # The wrapper decides: written as text, it is not known yet when the class is made.
        ClassField(
            name=name,
            json_name=name,
            hint=hint,
            required=get_origin(hint) is Required or (name in required and get_origin(hint) is not NotRequired),
        )
        for name, hint in hints_of(kind).items()
    ]
    return ClassFields(make=dict, fields=fields)


def struct_fields(kind: type) -> ClassFields:
    config = kind.__struct_config__  # type: ignore[attr-defined]  # a struct has it
    if config.array_like:
        raise NoJsonForm(kind, "a struct that is written as a list has no names")
    fields = [
        ClassField(
            name=field.name,
            json_name=field.encode_name,
            hint=field.type,
            required=field.required,
            default=dataclasses.MISSING if field.default in (msgspec.NODEFAULT, msgspec.UNSET) else field.default,
        )
        for field in msgspec.structs.fields(kind)
    ]
    return ClassFields(make=kind, fields=fields, tag=(config.tag_field, config.tag) if config.tag_field else None)


def named_tuple_fields(kind: type) -> ClassFields:
    hints, defaults = hints_of(kind), kind._field_defaults  # type: ignore[attr-defined]  # a named tuple has them
    fields = [
        ClassField(
            name=name,
            json_name=name,
            hint=hints.get(name, Any),
            required=name not in defaults,
            default=defaults.get(name, dataclasses.MISSING),
        )
        for name in kind._fields  # type: ignore[attr-defined]  # a named tuple has them
    ]
    return ClassFields(make=kind, fields=fields, as_array=True)


def attrs_fields(kind: type) -> ClassFields:
    hints = hints_of(kind)
    given = [field for field in kind.__attrs_attrs__ if field.init]  # type: ignore[attr-defined]  # an attrs class has them
    return ClassFields(make=kind, fields=[attrs_field(field, hints.get(field.name, Any)) for field in given])


def attrs_field(field: Any, hint: Any) -> ClassField:
    """By duck typing: attrs is the author's choice, and none of ours."""
    required = repr(field.default) == "NOTHING"
    made = required or hasattr(field.default, "factory")
    default = dataclasses.MISSING if made else field.default
    return ClassField(name=field.alias, json_name=field.alias, hint=hint, required=required, default=default)


READERS: tuple[tuple[Callable[[type], bool], Callable[[type], ClassFields]], ...] = (
    (dataclasses.is_dataclass, dataclass_fields),
    (typing.is_typeddict, typed_dict_fields),
    (lambda kind: issubclass(kind, msgspec.Struct), struct_fields),
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), named_tuple_fields),
    (lambda kind: hasattr(kind, "__attrs_attrs__"), attrs_fields),
)
