"""A person may change a call instead of allowing it; what they make of it is judged like any other call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolyard import AgentApplication
from toolyard.permissions.verdict import Answer

pytestmark = pytest.mark.anyio


class Editor:
    """Changes the first call that it is asked about, and allows the next."""

    def __init__(self, **arguments: Any) -> None:
        self.instead = arguments
        self.asked: list[str | None] = []

    async def approve(self, request: Any, verdict: Any) -> Answer:
        self.asked.append(request.plan.command)
        if len(self.asked) == 1:
            return Answer(allowed=False, reason="changed", instead=self.instead, bound_to=request.fingerprint)
        return Answer(allowed=True, reason="yes", bound_to=request.fingerprint)


async def called(tmp_path: Path, editor: Editor, **permissions: Any) -> Any:
    config = {"plugins": ["shell:command"], "permissions": {"preset": "ask-everything", **permissions}}
    async with AgentApplication(config, tmp_path / "sessions", approver=editor) as app:
        return await app.call_tool("shell", {"command": "echo before"})


async def test_what_runs_is_what_was_made_of_it_and_the_model_is_told(tmp_path: Path):
    editor = Editor(command="echo after")
    result = await called(tmp_path, editor)
    assert editor.asked == ["echo before", "echo after"]
    assert result.text.startswith('[A person changed this call; its arguments were {"command":"echo after"}]\n')
    assert "\nafter\n" in result.text


async def test_a_rule_against_it_holds_for_a_changed_call_too(tmp_path: Path):
    editor = Editor(command="touch made")
    result = await called(tmp_path, editor, deny=["touch **"])
    assert editor.asked == ["echo before"]
    assert result.failure == "denied"


async def test_arguments_that_do_not_fit_end_the_call(tmp_path: Path):
    result = await called(tmp_path, Editor(comand="echo after"))
    assert result.failure == "invalid_arguments"


async def test_a_change_of_another_call_is_no_answer(tmp_path: Path):
    class Other(Editor):
        async def approve(self, request: Any, verdict: Any) -> Answer:
            return Answer(allowed=False, reason="changed", instead=self.instead, bound_to="another")

    result = await called(tmp_path, Other(command="echo after"))
    assert result.failure == "denied"
