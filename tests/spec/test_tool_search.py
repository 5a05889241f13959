"""N11: very many tools are searched for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from many_tools import QUESTIONS, many_tools
from scripted_provider import ScriptedProvider, calls, texts_of
from toolyard import AgentApplication
from toolyard.core.tool import JsonObject, ToolSpec


class ManyTools:
    """A plugin with five hundred tools."""

    id = "many"

    def get_tool_schemas(self, state: object) -> list[ToolSpec]:
        return many_tools()

    def execute_tool(self, tool_name: str, payload: JsonObject) -> str:
        return f"{tool_name} did {dict(payload)}"


@pytest.mark.anyio
async def test_N11_the_right_one_of_500_tools_is_found_and_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    search = [calls(("search_tools", {"query": question})) for question in QUESTIONS]
    provider = ScriptedProvider(*search, calls(("weather_forecast", {"place": "Berlin"})), "Done.")
    tools = [provider, ManyTools()]
    async with AgentApplication({"provider": "scripted"}, tmp_path / "sessions", tools=tools) as app:
        session = await app.open_session()
        async with asyncio.timeout(90):
            async for _ in session.send("go"):
                pass
    assert [spec.name for spec in provider.requests[0].tools] == ["search_tools", "read_output"]
    results = [texts_of(request)[-1] for request in provider.requests[1:21]]
    found = [f"{name}: " in text for name, text in zip(QUESTIONS.values(), results, strict=True)]
    assert found.count(True) >= 19
    assert texts_of(provider.requests[21])[-1] == "tool: weather_forecast did {'place': 'Berlin'}"
