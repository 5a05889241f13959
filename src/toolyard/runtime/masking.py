"""A configuration to show: its secrets replaced by their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.process.environment import looks_like_credential

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import Json

__all__ = ["masked", "masked_value"]

ENV = re.compile(r"\$\{env:([^{}]*)\}")
PLACEHOLDER = re.compile(r"\$\{(env|file):[^}]*\}+")


def masked(configuration: Configuration, value_of: Callable[[str], str | None]) -> Configuration:
    """The same configuration without secrets; `value_of` gives what a name in a placeholder stands for."""
    value = masked_value(configuration.value, configuration.document.value, value_of=value_of)
    written = configuration.written
    if written is not None:
        written = replace(written, value=masked_value(written.value, written.value, value_of=lambda _: None))
    return replace(configuration, value=value, written=written)


def masked_value(
    value: Json, written: Json, name: str = "", *, value_of: Callable[[str], str | None], secret: bool = False
) -> Json:
    """A value beside itself as it was written, which tells the names of what was put in."""
    match value, written:
        case dict(), dict():
            return {
                key: masked_value(
                    part,
                    written.get(key),
                    key,
                    value_of=value_of,
                    secret=secret
                    or (key != "plugin_policy" and name != "plugin_policy" and looks_like_credential(key)),
                )
                for key, part in value.items()
            }
        case list(), list():
            return [
                masked_value(part, other, name, value_of=value_of, secret=secret)
                for part, other in zip(value, written, strict=True)
            ]
        case str(), _ if value and not (value == written and PLACEHOLDER.fullmatch(value)):
            if secret or looks_like_credential("", value):
                return f"[redacted {name}]"
            return without_secrets(value, written if isinstance(written, str) else "", value_of)
        case int() | float(), _ if secret and not isinstance(value, bool):
            return f"[redacted {name}]"
    return value


def without_secrets(text: str, written: str, value_of: Callable[[str], str | None]) -> str:
    """A text less what secret names put into it."""
    for name in ENV.findall(written):
        if looks_like_credential(name) and (secret := value_of(name)):
            text = text.replace(secret, f"[redacted {name}]")
    return text
