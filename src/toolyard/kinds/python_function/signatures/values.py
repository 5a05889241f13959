"""What the readers of types give each other: a type as JSON has it, and why a value or a type is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.core.arguments.faults import path_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import Json

EXACT, ROUNDED, CLASS, TEXT, TEXT_LIKE, LAST = range(6)
"""In which order the alternatives of a union are tried: a date before a text, and that before a path, which any is."""


class NoJsonForm(TypeError):
    """A type that has no form in JSON."""

    def __init__(self, hint: Any, why: str = "") -> None:
        name = hint.__name__ if isinstance(hint, type) else str(hint)
        super().__init__(f"{name} has no JSON form{why and f': {why}'}")


class Misfit(ValueError):
    """A value that a type does not take, and where in the whole it is."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.path = message, path

    def __str__(self) -> str:
        return f"{path_text(self.path)}: {self.message}" if self.path else self.message


class JsonType(msgspec.Struct, frozen=True, kw_only=True):
    """A type: what a model may send, and how that becomes what the function gets."""

    schema: dict[str, Any]
    convert: Callable[[Any], Any]
    """Raises `Misfit`."""
    rank: int = CLASS

    def with_default(self, default: Any) -> JsonType:
        """The same with a default, as far as JSON can say it and it is of the type."""
        try:
            plain = msgspec.to_builtins(default, enc_hook=plain_value, str_keys=True)
            self.convert(plain)
        except (TypeError, ValueError, NotImplementedError, RecursionError):
            return self  # whoever has it knows it by itself
        return replace(self, schema={**self.schema, "default": plain})


def plain_value(value: Any) -> Json:
    """Values beyond what msgspec knows."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise NotImplementedError(type(value).__name__)


def within(key: str | int, convert: Callable[[Any], Any], value: Json) -> Any:
    """Convert a part of a value, so that a misfit says which."""
    try:
        return convert(value)
    except Misfit as misfit:
        raise Misfit(misfit.message, (key, *misfit.path)) from misfit.__cause__
