"""The three forms of model APIs, each as one function from a request to events.

A provider for another server of the same form is a few lines around one of them:

    class MyProvider:
        id = "my_provider"

        def __init__(self) -> None:
            self._connection = Connection()

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            settings = read_settings(request.config, key_variable="MY_KEY", base_url="https://…/v1")
            async for event in ask_chat(self._connection, request, settings):
                yield event
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.agents.providers.anthropic.answer import AnthropicAnswer
from toolyard.agents.providers.anthropic.request import anthropic_body
from toolyard.agents.providers.asking import ask
from toolyard.agents.providers.attachments import sendable
from toolyard.agents.providers.chat.answer import ChatAnswer
from toolyard.agents.providers.chat.request import chat_body
from toolyard.agents.providers.responses.answer import ResponsesAnswer
from toolyard.agents.providers.responses.request import responses_body
from toolyard.agents.providers.wire_tools import wire_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from toolyard.agents.providers.connection import Connection
    from toolyard.agents.providers.settings import ProviderSettings
    from toolyard.core.model import ModelEvent, ModelRequest

ANTHROPIC_VERSION = "2026-10-21"
OPENAI_HOST = "api.openai.com"
NO_HEADERS: Mapping[str, str] = {}


def ask_chat(
    connection: Connection,
    request: ModelRequest,
    settings: ProviderSettings,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
    marks: bool = False,
) -> AsyncGenerator[ModelEvent, None]:
    """Ask in OpenAI's Chat form; `marks` says that the server takes Anthropic's marks for caching."""
    tools = wire_tools(request.tools, "openai", native=settings.native_tools)
    caching = settings.prompt_caching
    body = chat_body(
        sendable(request, images=settings.images), tools, openai=settings.host == OPENAI_HOST, marks=marks and caching
    )
    return ask(
        connection,
        "/chat/completions",
        body,
        headers={**bearer(settings), **headers},
        settings=settings,
        reader=lambda: ChatAnswer(request.model, tools, settings.host),
    )


def ask_responses(
    connection: Connection,
    request: ModelRequest,
    settings: ProviderSettings,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
) -> AsyncGenerator[ModelEvent, None]:
    """Ask in OpenAI's Responses form."""
    tools = wire_tools(request.tools, "responses", native=settings.native_tools, search=request.search)
    return ask(
        connection,
        "/responses",
        responses_body(sendable(request, images=settings.images), tools, caching=settings.prompt_caching),
        headers={**bearer(settings), **headers},
        settings=settings,
        reader=lambda: ResponsesAnswer(request.model, tools, settings.host),
    )


def ask_anthropic(
    connection: Connection,
    request: ModelRequest,
    settings: ProviderSettings,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
) -> AsyncGenerator[ModelEvent, None]:
    """Ask in Anthropic's Messages form."""
    tools = wire_tools(request.tools, "anthropic", native=settings.native_tools, search=request.search)
    key = {"x-api-key": settings.api_key} if settings.api_key else {}
    return ask(
        connection,
        # An address with the version is a slip that is easily made, since those of OpenAI's form have it.
        "/messages" if (settings.base_url or "").rstrip("/").endswith("/v1") else "/v1/messages",
        anthropic_body(sendable(request, images=settings.images), tools, caching=settings.prompt_caching),
        headers={**key, "anthropic-version": ANTHROPIC_VERSION, **headers},
        settings=settings,
        reader=lambda: AnthropicAnswer(request.model, tools, settings.host),
    )


def bearer(settings: ProviderSettings) -> dict[str, str]:
    return {"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
