"""What does not fit the typed settings: every place at once, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import inspect

from toolyard.config.origins import dotted
from toolyard.config.settings import PLACEHOLDER_PATTERN
from toolyard.core.arguments.plain_schema import is_number
from toolyard.core.json_values import brief
from toolyard.core.problems import Position, Problem, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.config.document import Document
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


PLACEHOLDER = re.compile(PLACEHOLDER_PATTERN)
UNKNOWN = "is not known here"
UNSAFE = "until this is mended, nothing is allowed without asking"
UNRUN = "until this is mended, nothing is run that needs the sandbox"


def shape_problems(value: Json, kind: type, document: Document) -> list[Problem]:
    """Report each value that is not what its key takes."""
    return [problem(pointer, message, document) for pointer, message in faults(value, inspect.type_info(kind), ())]


def first_fault(value: Json, kind: type, pointer: Pointer, document: Document) -> Position | None:
    """The position of the first such value, if there is any."""
    for place, message in faults(value, inspect.type_info(kind), pointer):
        return position(place, message, document)
    return None


def position(pointer: Pointer, message: str, document: Document) -> Position:
    return document.position(pointer, of_key=message.startswith(UNKNOWN))


def problem(pointer: Pointer, message: str, document: Document) -> Problem:
    code, hint = "config_type", ""
    written = document.at(pointer)
    if "permissions" in (pointer[:1] + pointer[2:3]):
        code, hint = "permissions_rule", UNSAFE
    elif pointer[:1] == ("sandbox",):
        hint = UNRUN
    elif "plugins" in pointer[-2:]:
        code, hint = "plugin_spec", 'for example "plugins": ["bash:./tools"]'
    if isinstance(written, str) and "${" in written:
        hint = "a placeholder always gives text; write the value itself"
    where = position(pointer, message, document)
    return Problem(code=code, message=f"'{dotted(pointer)}' {message}", hint=hint, where=where)


def faults(value: Json, info: inspect.Type, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    """Find each value that does not fit, and say what is expected there."""
    match info, value:
        case inspect.Metadata(type=inner), _:
            yield from faults(value, inner, pointer)
        case inspect.StructType(fields=fields, forbid_unknown_fields=is_closed), dict():
            for field in fields:
                if field.encode_name in value:
                    yield from faults(value[field.encode_name], field.type, (*pointer, field.encode_name))
            known = [field.encode_name for field in fields]
            for key in value if is_closed else ():
                if key not in known:
                    hint = did_you_mean(key, known, otherwise=f"there are {', '.join(known)}")
                    yield (*pointer, key), f"{UNKNOWN}; {hint}"
        case inspect.DictType(value_type=inner), dict():
            for key, part in value.items():
                yield from faults(part, inner, (*pointer, key))
        case inspect.ListType(item_type=inner), list():
            for index, part in enumerate(value):
                yield from faults(part, inner, (*pointer, index))
        case inspect.UnionType(types=kinds), _:
            if all(any(True for _ in faults(value, one, pointer)) for one in kinds):
                named = [one for one in kinds if not isinstance(one, inspect.NoneType)]
                if isinstance(value, dict):  # say what is wrong in it, where an object may be
                    named = [one for one in named if isinstance(one, inspect.StructType | inspect.DictType)] or named
                if len(named) == 1:
                    yield from faults(value, named[0], pointer)
                else:
                    yield pointer, f"must be {' or '.join(map(expected, named))}, not {brief(value, 40)}"
        case inspect.LiteralType(), str() if PLACEHOLDER.search(value) and not is_read_early(pointer):
            return  # known when it is replaced; whoever uses it looks again
        case inspect.LiteralType(values=values), str() if value not in values:
            near = did_you_mean(value, map(str, values))
            yield pointer, f"must be {expected(info)}, not {brief(value, 40)}" + (f"; {near}" if near else "")
        case _ if not fits(value, info):
            yield pointer, f"must be {expected(info)}, not {brief(value, 40)}"


def is_read_early(pointer: Pointer) -> bool:
    """Whether a setting is about mixins, which come before placeholders."""
    return pointer[-1] == "mixin_merge" or pointer[0] == "mixin_policy"


def fits(value: Json, info: inspect.Type) -> bool:
    """Whether a scalar has the expected type; as in JSON itself, 5.0 is a whole number."""
    match info:
        case inspect.AnyType():
            return True
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.LiteralType(values=values):
            return isinstance(value, str) and value in values
        case inspect.IntType(ge=least, le=most):
            return is_whole(value) and (least is None or value >= least) and (most is None or value <= most)
        case inspect.FloatType(gt=above):
            return is_number(value) and (above is None or value > above)
    return False


def is_whole(value: Json) -> bool:
    return is_number(value) and (isinstance(value, int) or value.is_integer())


def expected(info: inspect.Type) -> str:
    match info:
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case inspect.ListType():
            return "a list"
        case inspect.StrType():
            return "a string"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=values):
            return " or ".join(f'"{value}"' for value in values)
        case inspect.IntType(ge=least, le=None):
            return f"a whole number, at least {least}"
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case inspect.FloatType(gt=above):
            return f"a number above {above}"
    return "something else"
