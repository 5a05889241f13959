"""Models of many makers behind OpenRouter, and what they really cost."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from toolyard.agents.providers.connection import Connection
from toolyard.agents.providers.settings import CONFIG_KEYS, read_settings
from toolyard.agents.providers.wires import ask_chat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolyard.plugins.contract import ModelEvent, ModelRequest

__all__ = ["OpenRouterProvider", "OpenRouterUsage"]

NAMES = {"x-title": "Toolyard"}
"""What OpenRouter shows in the account's list of requests."""


class OpenRouterProvider:
    """OpenAI's Chat form; reasoning goes back as it came, and Anthropic's models get their marks for caching."""

    id = "openrouter"
    config_keys = CONFIG_KEYS

    def __init__(self) -> None:
        self._connection = Connection()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model that the configuration names, such as `openai/gpt-5-mini`."""
        settings = read_settings(
            request.config,
            key_variable="OPENROUTER_API_KEY",
            base_url="https://openrouter.ai/api/v1",
            base_url_variable="OPENROUTER_BASE_URL",
        )
        marks = request.model.startswith("anthropic/")
        async with aclosing(ask_chat(self._connection, request, settings, headers=NAMES, marks=marks)) as events:
            async for event in events:
                yield event

    def tags(self) -> list[str]:
        """By which other plugins know whose models they work with."""
        return ["openrouter"]

    async def aclose(self) -> None:
        """Close what connections are kept."""
        await self._connection.aclose()


class OpenRouterUsage:
    """Has OpenRouter say what each request cost, where it is the provider."""

    id = "openrouter_usage"

    def required_tags(self) -> list[str]:
        """Others would refuse the option."""
        return ["openrouter"]

    def request_options(self) -> dict[str, Any]:
        """The option that asks for it; the cost is in the usage of each answer."""
        return {"usage": {"include": True}}
