"""Tools that tools of the application do the work of, under other names."""

from __future__ import annotations

from pathlib import Path

import pytest

from yard import Yard

pytestmark = pytest.mark.anyio
PLUGIN = """
class OpenFile:
    id = "open_file"
    builds_on = "files:more"

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [{"type": "function", "function": {"name": "open_file", "parameters": parameters}}]

    def as_call(self, payload):
        return "read", {"file_path": payload["name"]}
"""


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    yard = Yard(tmp_path)
    yard.file("a.txt", "hello\n")
    return yard


async def test_it_runs_as_the_tool_that_does_the_work(yard: Yard):
    yard.file("plugin.py", PLUGIN)
    async with yard.app("path:plugin.py", permissions={"preset": "read-only"}) as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("open_file", {"name": "a.txt"})).text == "     1\thello"
        assert (await app.call_tool("open_file", {})).failure == "invalid_arguments"
    assert yard.audit()[0]["kind"] == "files"


async def test_a_program_can_hand_one_over(yard: Yard):
    space: dict = {}
    exec(PLUGIN, space)
    async with yard.open(yard.config(), tools=[space["OpenFile"]]) as app:
        assert (await app.call_tool("open_file", {"name": "a.txt"})).text == "     1\thello"


async def test_it_works_on_after_the_sandbox_was_configured_otherwise(yard: Yard):
    yard.file("plugin.py", PLUGIN)
    async with yard.app("path:plugin.py") as app:
        assert (await app.call_tool("open_file", {"name": "a.txt"})).ok
        yard.config("path:plugin.py", sandbox={"mode": "off"})
        assert (await app.call_tool("open_file", {"name": "a.txt"})).ok
    assert yard.audit()[-1]["sandbox"] == "off"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"files:more"', '"files:nothing"', "builds on 'files:nothing', which names no tools here"),
        ('"files:more"', '"bash:./x.bash"', "builds on 'bash:./x.bash', which names no tools here"),
        ("    def as_call", "    async def as_call", "must answer at once"),
        (
            "    def as_call",
            '    own_words = {"(": "x"}\n\n    def as_call',
            "own_words that are no regular expressions",
        ),
    ],
)
async def test_what_cannot_be_built_on_is_a_problem_of_the_plugin(yard: Yard, before: str, after: str, said: str):
    yard.tool("x")
    yard.file("plugin.py", PLUGIN.replace(before, after))
    async with yard.app("path:plugin.py") as app:
        (problem,) = app.get_config_errors()
    assert said in problem["detail"]
    assert problem["file"].endswith("plugin.py")


@pytest.mark.parametrize(
    ("before", "after", "failure", "said"),
    [
        ('return "read"', 'return "reed"', "crash", "there is no tool 'reed' to do its work"),
        ('"file_path": payload', '"path": payload', "invalid_arguments", "did you mean 'file_path'?"),
        ('return "read", {', 'raise ValueError("not so")\n        x = {', "invalid_arguments", "not so"),
        ('return "read", {', 'raise KeyError("oops")\n        x = {', "crash", "oops"),
    ],
)
async def test_a_translation_that_is_wrong_is_told_and_nothing_runs(yard: Yard, before, after, failure, said):
    yard.file("plugin.py", PLUGIN.replace(before, after))
    async with yard.app("path:plugin.py") as app:
        result = await app.call_tool("open_file", {"name": "a.txt"})
    assert (result.failure, said in result.text) == (failure, True), result
