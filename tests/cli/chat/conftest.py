"""A chat on a real terminal, with a model that a test writes down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chat_terminal import Chat, ChatTerminal, Model
from support import CommandLine


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@pytest.fixture
def chat(toolyard: CommandLine, model: Model) -> Iterator[Chat]:
    """Opens a chat that talks to the model; whatever is in the configuration can be given otherwise."""
    opened: list[ChatTerminal] = []

    def open_chat(
        *words: str, width: int = 100, height: int = 40, env: dict[str, str] | None = None, **config: Any
    ) -> ChatTerminal:
        toolyard.config(
            "path:${env:BUILTIN_PLUGINS}/openai-compatible",
            "shell:session",
            **{
                "provider": "openai_compatible",
                "model": "fake-1",
                "api_key": "key",
                "base_url": f"{model.server.origin}/v1",
                **config,
            },
        )
        opened.append(ChatTerminal(toolyard, *words, width=width, height=height, env=env or {}))
        return opened[-1]

    yield open_chat
    for terminal in opened:
        terminal.close()
