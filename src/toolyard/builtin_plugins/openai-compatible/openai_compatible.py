"""Models behind OpenAI's APIs, at OpenAI or at any server that speaks them."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from toolyard.agents.providers.connection import Connection
from toolyard.agents.providers.settings import CONFIG_KEYS, read_settings, setup_error
from toolyard.agents.providers.wire_tools import finds_tools
from toolyard.agents.providers.wires import ask_chat, ask_responses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolyard.agents.providers.settings import ProviderSettings
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.contract import ModelEvent, ModelRequest

__all__ = ["OpenAICompatibleProvider"]

APIS = {"chat": ask_chat, "responses": ask_responses}


class OpenAICompatibleProvider:
    """Chat by default, Responses with `"api": "responses"`."""

    id = "openai_compatible"
    config_keys = CONFIG_KEYS

    def __init__(self) -> None:
        self._connection = Connection()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model that the configuration names."""
        settings = settings_in(request.config)
        ask = APIS.get(settings.api or "chat")
        if ask is None:
            raise setup_error(f"there is no API '{settings.api}'", hint=f"one of {', '.join(APIS)}")
        async with aclosing(ask(self._connection, request, settings)) as events:
            async for event in events:
                yield event

    def searches_tools(self, config: JsonObject, model: str) -> bool:
        """Whether the service finds tools for the model."""
        settings = settings_in(config)
        return finds_tools(settings, "responses" if settings.api == "responses" else "openai", model)

    def tags(self) -> list[str]:
        """By which other plugins know whose models they work with."""
        return ["openai"]

    async def aclose(self) -> None:
        """Close what connections are kept."""
        await self._connection.aclose()


def settings_in(config: JsonObject) -> ProviderSettings:
    return read_settings(
        config,
        key_variable="OPENAI_API_KEY",
        base_url="https://api.openai.com/v1",
        base_url_variable="OPENAI_BASE_URL",
    )
