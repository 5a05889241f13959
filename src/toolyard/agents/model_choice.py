"""Which provider and which model an agent talks to, as its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from toolyard.config.layers import mapping
from toolyard.errors import ProviderError
from toolyard.plugins.enablement import provider_hint

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.contract import ProviderPlugin
    from toolyard.runtime.loaded import Loaded


Form = TypeVar("Form", bound=msgspec.Struct)


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, the model to ask it for, and the agent's configuration."""

    provider: ProviderPlugin
    id: str
    model: str
    config: JsonObject


def model_of(loaded: Loaded, agent: str, chosen: tuple[str, ...] | None, model: str | None = None) -> ModelChoice:
    """The agent's provider; ProviderError with the line to write when it has none that can be used."""
    known = loaded.circumstances(agent)
    config, id = dict(known.config), known.provider
    if not id:
        raise ProviderError(f"agent '{agent}' has no provider", fault="setup", hint=FIRST_PROVIDER)
    catalog = loaded.agent(agent, chosen).catalog
    found = catalog.plugins.get(id)
    if found is None or found.plugin.kind != "provider":
        message = f"no plugin is the provider '{id}' of agent '{agent}'"
        raise ProviderError(message, fault="setup", hint=provider_hint(id))
    if not catalog.decisions[id].on:
        raise ProviderError(f"the provider '{id}' is off: {catalog.decisions[id].reason}", fault="setup")
    name = model or config.get("model")
    if not isinstance(name, str) or not name:
        name = getattr(found.plugin.instance, "default_model", "")
    if not name:
        raise ProviderError(f"agent '{agent}' names no model", fault="setup", hint='set "model" in the configuration')
    return ModelChoice(provider=found.plugin.instance, id=id, model=name, config=config)


def searches_tools(choice: ModelChoice) -> bool:
    """Whether the provider says that its service finds tools for this model by itself."""
    can = getattr(choice.provider, "searches_tools", None)
    return bool(can and can(choice.config, choice.model))


def settings_in(config: JsonObject, key: str, form: type[Form]) -> Form:
    """A part of the configuration; ProviderError where it does not fit, which checking the configuration tells, too."""
    try:
        return msgspec.convert(mapping(config.get(key)), form)
    except msgspec.ValidationError as error:
        raise ProviderError(f"'{key}' of the configuration: {error}", fault="setup") from None


FIRST_PROVIDER = """\
toolyard.json: {"plugins": ["path:${env:BUILTIN_PLUGINS}/anthropic"],
  "provider": "anthropic", "model": "…", "api_key": "${env:ANTHROPIC_API_KEY}"}
  No account: {"plugins": ["path:${env:BUILTIN_PLUGINS}/local"], "provider": "local"} tells what to install"""
