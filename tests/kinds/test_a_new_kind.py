"""A new kind of tool is one folder and one line: everything else works with it as with any other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from repositories import commit, git, repository
from toolyard.authoring.cases import test_tools as run_cases
from toolyard.authoring.check import check_tools
from toolyard.authoring.discover import create_config, find_plugins
from toolyard.authoring.scaffold import create_tool
from toolyard.config.schema import config_schema
from toolyard.core.problems import Problem
from toolyard.plugins.entries import settings_of
from toy_kind import WITH_TOYS
from yard import Yard

pytestmark = pytest.mark.anyio

SRC = Path(__file__).parents[2] / "src" / "toolyard"
GREET = '# Greet somebody.\necho "hello $1"\n'


@pytest.fixture
def toys(tmp_path: Path) -> Yard:
    yard = Yard(tmp_path)
    yard.file("greet.toy", GREET)
    return yard


def opened(yard: Yard, *plugins: str, **rest):
    return yard.open(yard.config(*plugins, **rest), kinds=WITH_TOYS)


async def test_it_loads_lists_and_is_called_and_its_settings_are_known(toys: Yard):
    async with opened(toys, "toy:greet.toy", policy={"toy_timeout_seconds": 7}) as app:
        assert app.get_config_errors() == []
        (status,) = app.plugins()
        assert (status.plugin, status.kind, status.on) == ("greet", "toy", True)
        assert app.tools()[0].spec.timeout == 7
        assert (await app.call_tool("greet", {"value": "Ada"})).text == "hello Ada\n"
    assert toys.audit()[-1]["kind"] == "toy"
    schema = config_schema(settings_of(WITH_TOYS))
    assert "toy_timeout_seconds" in json.dumps(schema)


async def test_a_slip_in_its_spelling_gets_a_hint(toys: Yard):
    async with opened(toys, "toi:greet.toy", "./greet.toy") as app:
        hints = [problem["hint"] for problem in app.get_config_errors()]
    assert hints == ["did you mean 'toy:greet.toy'?", "did you mean 'toy:./greet.toy'?"]


async def test_it_is_checked_tested_and_started(tmp_path: Path):
    made = create_tool(tmp_path / "wave", "toy", kinds=WITH_TOYS)
    assert not isinstance(made, Problem)
    assert await check_tools(tmp_path / "wave", kinds=WITH_TOYS) == []
    outcomes, problems = await run_cases(tmp_path / "wave", WITH_TOYS)
    assert ([outcome.passed for outcome in outcomes], problems) == ([True], [])
    (tmp_path / "wave" / "wave.toy").write_text("\n")
    assert [found.code for found in await check_tools(tmp_path / "wave", kinds=WITH_TOYS)] == ["toy_silent"]


def test_it_is_found_by_init(toys: Yard):
    (found,) = find_plugins(toys.folder, WITH_TOYS)
    assert (found.found.entry, found.is_loadable) == ("toy:./greet.toy", True)
    create_config(toys.folder, [found.found], WITH_TOYS)
    assert "toy:./greet.toy" in json.loads((toys.folder / "toolyard.json").read_text())["plugins"]


async def test_it_is_guarded_in_the_sandbox(toys: Yard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(toys.folder)
    async with opened(toys, "toy:greet.toy", "shell:command") as app:
        assert app.sandbox_report().backend is not None
        await app.call_tool("shell", {"command": "echo changed >> greet.toy; echo free > other", "timeout": 60})
    assert (toys.folder / "greet.toy").read_text() == GREET
    assert (toys.folder / "other").read_text() == "free\n"


async def test_it_is_read_again_when_it_changes(toys: Yard):
    async with opened(toys, "toy:greet.toy") as app:
        await app.call_tool("greet", {"value": "Ada"})
        toys.file("greet.toy", GREET.replace("hello", "good morning"))
        assert (await app.call_tool("greet", {"value": "Ada"})).text == "good morning Ada\n"


async def test_its_repositories_are_fetched_again(toys: Yard, tmp_path: Path):
    origin = repository(tmp_path / "origin", {"greet.toy": GREET})
    git(origin, "tag", "v1")
    async with opened(toys, f"toy+git:{origin}", plugin_cache_dir="cache") as app:
        assert (await app.call_tool("greet", {"value": "Ada"})).text == "hello Ada\n"
        commit(origin, {"greet.toy": GREET.replace("hello", "good evening")})
        (row,) = await app.refresh_plugins(["greet"])
        assert row.plugins == ("greet",)
        assert (await app.call_tool("greet", {"value": "Ada"})).text == "good evening Ada\n"


SHARED = ("plugins", "runtime", "agents", "authoring", "config", "files", "core", "app.py")
NAMES = re.compile(
    r"kinds\.(?:bash_script|python_function|node_module|manifest|shell)"
    r"|\b(?:bash|node|manifest|shell)_(?:tools?|script|module|command|session|timeout|build|install)(?![a-z])"
    r"|[\"'](?:node|bash|manifest|shell|path|toy)(?:\+git)?:",
)
ALLOWED = {
    "app.py": {"kinds.python_function", '"shell:'},  # tools that a program hands over; the two shells of the CLI
    "config/shape.py": {'"bash:'},  # an example in a hint
    "agents/model_choice.py": {'"path:'},  # the same
    "plugins/enablement.py": {'"path:'},
}


def test_no_shared_module_names_a_kind():
    found = {}
    for room in SHARED:
        files = [SRC / room] if room.endswith(".py") else (SRC / room).rglob("*.py")
        for file in files:
            name = str(file.relative_to(SRC))
            named = {word for word in NAMES.findall(file.read_text()) if word not in ALLOWED.get(name, ())}
            if named:
                found[name] = sorted(named)
    assert found == {}
