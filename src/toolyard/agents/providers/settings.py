"""What a configuration tells a provider: where the service is, the key to it, and how patient to be."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from toolyard.agents.providers.prices import Price
from toolyard.core.tool import Json, JsonObject
from toolyard.errors import ProviderError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that all bundled providers read; null and an empty text mean that a key is not given."""

    api_key: str | None = None
    base_url: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """More headers for each request."""
    prices: Mapping[str, Price] = msgspec.field(default_factory=dict)
    """By model, in dollars for a million tokens; they come before the known ones."""
    max_retries: Annotated[int, Meta(ge=0, le=100)] = 5
    response_timeout_seconds: Annotated[float, Meta(gt=0)] = 300
    """Until the first byte of an answer; servers that think first are silent for long."""
    idle_timeout_seconds: Annotated[float, Meta(gt=0)] = 120
    """Between two bytes of an answer."""
    native_tools: bool = True
    """Whether tools go out in the forms that the service itself has for them."""
    tool_search: bool | None = None
    """Whether the service itself finds tools for the model; None for what is known of it. Only two APIs have this."""
    prompt_caching: bool = True
    images: bool = True
    """Whether pictures, sound and files are sent; a model that cannot see them makes a service refuse the request."""
    api: str | None = None

    @property
    def host(self) -> str:
        return host_of(self.base_url or "")


@lru_cache(maxsize=32)
def host_of(address: str) -> str:
    return urlsplit(address).hostname or ""


CONFIG_KEYS = ProviderSettings.__struct_fields__


def read_settings(
    config: JsonObject, *, key_variable: str, base_url: str, base_url_variable: str = ""
) -> ProviderSettings:
    """The settings, with the environment's key and address where the configuration has none.

    Raises `ProviderError` when there is no key, which only a server on this machine can do without.
    """
    said = ((key, stripped(config[key])) for key in CONFIG_KEYS if key in config)
    given = {key: value for key, value in said if value not in (None, "")}
    given.setdefault("base_url", os.environ.get(base_url_variable) or base_url)
    if key := stripped(os.environ.get(key_variable)):
        given.setdefault("api_key", key)
    settings = converted(given)
    if urlsplit(settings.base_url or "").scheme not in ("http", "https") or not settings.host:
        raise setup_error("'base_url' is no address", hint=f'such as "base_url": "{base_url}"')
    if not all(map(is_sendable, (settings.api_key or "", *settings.headers, *settings.headers.values()))):
        hint = "only printable ASCII can be in 'api_key' and 'headers'"
        raise setup_error("the key or a header has characters that cannot be sent", hint=hint)
    if not settings.api_key and settings.host not in LOOPBACK:
        hint = f'set the variable {key_variable}, or write "api_key": "${{env:{key_variable}}}" beside the provider'
        raise setup_error(f"there is no key for {settings.host}", hint=hint)
    return settings


def stripped(value: Json) -> Json:
    """Without blanks around it, since a key from a file has a newline at its end."""
    return value.strip() if isinstance(value, str) else value


def is_sendable(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


def converted(given: JsonObject) -> ProviderSettings:
    try:
        return msgspec.convert(given, ProviderSettings)
    except msgspec.ValidationError as error:
        # Its text names the key and the types, never the value.
        raise setup_error(
            f"the provider's configuration is wrong: {error}",
            hint="the reference has a page on providers, with all keys",
        ) from None


def setup_error(message: str, *, hint: str) -> ProviderError:
    return ProviderError(message, fault="setup", hint=hint)
