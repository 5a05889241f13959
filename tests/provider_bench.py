"""The bundled providers as tests have them: loaded from their folders, asked over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import toolyard
from fake_model_server import EVENTS, FakeModelServer, Reply, Said, fake_model_server
from toolyard.core.content import TextPart
from toolyard.core.conversation import AssistantMessage, Message, UserMessage
from toolyard.core.model import Answered, ModelEvent, ModelRequest
from toolyard.core.tool import JsonInput, ToolSpec
from toolyard.plugins.author_code.import_space import ImportSpace

PLUGINS = Path(toolyard.__file__).parent / "builtin_plugins"
SECRET = "sk-secret-of-the-test"
PLACES = {
    "openai_compatible": ("openai-compatible", "openai_compatible", "OpenAICompatibleProvider"),
    "openrouter": ("openrouter", "openrouter", "OpenRouterProvider"),
    "anthropic": ("anthropic", "anthropic_provider", "AnthropicProvider"),
    "replay": ("replay", "replay", "ReplayProvider"),
    "local": ("local", "local_model", "LocalProvider"),
}
LIST_FILES = ToolSpec(
    name="list_files",
    description="List the files of a folder.",
    input=JsonInput(schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
)


def bundled(name: str) -> Any:
    """A bundled provider, new."""
    return plugin_class(*PLACES[name])()


@cache
def plugin_class(folder: str, module: str, kind: str) -> Any:
    """A class of a bundled plugin, imported as the application does it."""
    space = ImportSpace([str(PLUGINS / folder)], [f"{module}.{kind}"])
    return getattr(space.load(module), kind)


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One API and the provider that speaks it."""

    name: str
    provider: str
    base: str = ""
    config: dict[str, Any] = field(default_factory=dict)

    def reply(self, said: Said, **rest: Any) -> Reply:
        """What the service sends when a model says this."""
        return Reply(events=EVENTS[self.name](said), **rest)


WIRES = {
    "chat": Wire(name="openai", provider="openai_compatible", base="/v1"),
    "responses": Wire(name="responses", provider="openai_compatible", base="/v1", config={"api": "responses"}),
    "openrouter": Wire(name="openai", provider="openrouter", base="/api/v1"),
    "anthropic": Wire(name="anthropic", provider="anthropic"),
}


@dataclass(kw_only=True)
class ProviderBench:
    """A provider and the service that it asks."""

    provider: Any
    server: FakeModelServer
    config: dict[str, Any]

    def request(self, *messages: Message, model: str = "fake-1", **rest: Any) -> ModelRequest:
        return ModelRequest(model=model, messages=messages or (user("Hello"),), config=self.config, **rest)

    async def ask(self, *messages: Message, **rest: Any) -> AssistantMessage:
        """The whole answer."""
        return (await self.events(*messages, **rest))[1]

    async def events(self, *messages: Message, **rest: Any) -> tuple[list[ModelEvent], AssistantMessage]:
        """All that is told, and the answer."""
        return await told(self.provider, self.request(*messages, **rest))

    @property
    def bodies(self) -> Sequence[Any]:
        return [each.body for each in self.server.received]


async def told(provider: Any, request: ModelRequest) -> tuple[list[ModelEvent], AssistantMessage]:
    """All that a provider tells, and its answer, which must be the last thing."""
    async with aclosing(provider.stream(request)) as stream:
        events = [event async for event in stream]
    assert [isinstance(event, Answered) for event in events].count(True) == 1
    assert isinstance(events[-1], Answered)
    return events, events[-1].message


@asynccontextmanager
async def provider_bench(wire: Wire, *replies: Reply, **config: Any) -> AsyncIterator[ProviderBench]:
    """A provider with a service that gives these replies."""
    provider = bundled(wire.provider)
    async with fake_model_server(*(replies or (wire.reply(Said(text="Hi.")),))) as server:
        given = {"api_key": SECRET, "base_url": f"{server.origin}{wire.base}", **wire.config, **config}
        try:
            yield ProviderBench(provider=provider, server=server, config=given)
        finally:
            await provider.aclose()


def own_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach servers of the test without a proxy that the developer has."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def user(text: str) -> UserMessage:
    return UserMessage(content=(TextPart(text=text),))
