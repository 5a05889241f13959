"""Models behind Anthropic's Messages API."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from toolyard.agents.providers.connection import Connection
from toolyard.agents.providers.settings import CONFIG_KEYS, read_settings
from toolyard.agents.providers.wire_tools import finds_tools
from toolyard.agents.providers.wires import ask_anthropic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolyard.agents.providers.settings import ProviderSettings
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.contract import ModelEvent, ModelRequest

__all__ = ["AnthropicProvider"]


class AnthropicProvider:
    """Thinking goes back with its signatures, and what stays the same from turn to turn is cached."""

    id = "anthropic"
    config_keys = CONFIG_KEYS

    def __init__(self) -> None:
        self._connection = Connection()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model that the configuration names."""
        async with aclosing(ask_anthropic(self._connection, request, settings_in(request.config))) as events:
            async for event in events:
                yield event

    def searches_tools(self, config: JsonObject, model: str) -> bool:
        """Whether the service finds tools for the model."""
        return finds_tools(settings_in(config), "anthropic", model)

    def tags(self) -> list[str]:
        """By which other plugins know whose models they work with."""
        return ["anthropic"]

    async def aclose(self) -> None:
        """Close what connections are kept."""
        await self._connection.aclose()


def settings_in(config: JsonObject) -> ProviderSettings:
    return read_settings(
        config,
        key_variable="ANTHROPIC_API_KEY",
        base_url="https://api.anthropic.com",
        base_url_variable="ANTHROPIC_BASE_URL",
    )
