"""Agents with very many tools look for them: the right one is found, shown from then on, and called along the path."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from many_tools import MORE_QUESTIONS, QUESTIONS, many_tools
from scripted_provider import ScriptedProvider, calls, texts_of
from toolyard import AgentApplication, tool
from toolyard.agents.own_tools.tool_index import ToolIndex, stem
from toolyard.agents.sessions.events import TurnEnded
from toolyard.core.model import ModelRequest
from toolyard.core.tool import JsonObject

pytestmark = pytest.mark.anyio
SECONDS = 60


@pytest.mark.parametrize("questions", [QUESTIONS, MORE_QUESTIONS], ids=["made with", "made after"])
def test_the_right_one_of_500_is_in_the_first_five_for_19_of_20_questions(questions: dict[str, str]) -> None:
    index = ToolIndex(many_tools())
    missed = {q: name for q, name in questions.items() if name not in [spec.name for spec in index.search(q)]}
    assert len(questions) == 20
    assert len(missed) <= 1, missed


@pytest.mark.parametrize(
    "forms",
    [("create", "creates", "creating", "creation"), ("query", "queries"), ("run", "running"), ("invite", "invitation")],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("question", ["", "   ", "???", "of the and", "zzzzqqq", "\udc80", "ł ž 漢字"])
def test_what_fits_nothing_finds_nothing(question: str) -> None:
    assert ToolIndex(many_tools()).search(question) == []


def numbered(number: int) -> Any:
    @tool(name=f"count_{number}", description=f"Count something that is called thing{number}.")
    def count(amount: int) -> str:
        return f"{number}: {amount}"

    return count


class Searching(ScriptedProvider):
    """A provider whose service finds tools by itself."""

    def searches_tools(self, config: JsonObject, model: str) -> bool:
        return bool(config.get("found_by_service", True)) and model == "test-model"


async def talk(provider: ScriptedProvider, folder: Path, number: int, **config: Any) -> TurnEnded:
    tools = [numbered(one) for one in range(number)]
    settings = {"provider": "scripted", **config}
    async with AgentApplication(settings, folder / "sessions", tools=[provider, *tools]) as app:
        session = await app.open_session()
        async with asyncio.timeout(SECONDS):
            updates = [update async for update in session.send("go")]
    ended = updates[-1].event  # type: ignore[union-attr]
    assert isinstance(ended, TurnEnded)
    return ended


def shown(request: ModelRequest) -> list[str]:
    """Without the application's reader of long output, which every agent has."""
    return [spec.name for spec in request.tools if spec.name != "read_output"]


async def test_what_was_found_is_shown_from_then_on_and_can_be_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    search = calls(("search_tools", {"query": "count thing37"}))
    provider = ScriptedProvider(search, calls(("count_37", {"amount": 5})), "Done.")
    rules = {"preset": "read-only", "allow": [{"tool": "count_37", "reach": "outside"}]}
    assert (await talk(provider, tmp_path, 60, permissions=rules)).outcome == "answered"
    first, second, third = provider.requests
    assert shown(first) == ["search_tools"]
    assert "count_37: Count something" in texts_of(second)[-1]
    assert shown(second)[:2] == ["search_tools", "count_37"]
    assert shown(third) == shown(second), "the list changes only when something is found"
    assert texts_of(third)[-1] == "tool: 37: 5"


@pytest.mark.parametrize(
    ("number", "config", "searches"),
    [(40, {}, False), (41, {}, True), (9, {"search_tools_beyond": 8}, True), (9, {"search_tools_beyond": "8"}, False)],
)
async def test_few_tools_are_shown_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, config: dict[str, Any], searches: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider("Hello.")
    await talk(provider, tmp_path, number, **config)
    assert ("search_tools" in shown(provider.requests[0])) is searches
    assert len(shown(provider.requests[0])) == (1 if searches else number)


@pytest.mark.parametrize("native", [True, False])
async def test_a_service_that_finds_tools_itself_gets_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = Searching("Hello.")
    await talk(provider, tmp_path, 50, found_by_service=native)
    (request,) = provider.requests
    assert request.search is native
    assert len(shown(request)) == (50 if native else 1)
