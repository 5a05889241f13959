"""Whatever a configuration file holds, an application opens on it, answers, and says what is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.app import AgentApplication
from yard import Yard, named

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(
        [
            "default",
            "deep",
            "a",
            "${env:HOME}",
            "${file:nothing}",
            "${file:\0}",
            "${env:",
            "path:./plain",
            "path:words.py",
            "path:\0",
            "bash:./nothing",
            "bash:\0",
            "manifest:./tools.json",
            "manifest:\0",
            "node:\0",
            "node+git:./nothing#-x",
            "git+./nothing#a",
            "git+\0",
            "shell:session",
            "json.JSONDecoder",
            "\ud800",
            "path:\udc80",
            "bash:\udc80",
            "node:\udc80",
            "manifest:\udc80",
            "git+\udc80",
        ]
    )
)
KEYS = st.sampled_from(
    [
        "plugins",
        "enabled_plugins",
        "disabled_plugins",
        "force_enabled_plugins",
        "plugin_policy",
        "allow_bash_tools",
        "agents",
        "providers",
        "provider",
        "mixins",
        "mixin_refs",
        "mixin_merge",
        "mixin_policy",
        "max_depth",
        "permissions",
        "preset",
        "allow",
        "deny",
        "output",
        "limit_bytes",
        "limits",
        "audit",
        "tags",
        "model",
        "system_message",
        "working_directory",
        "path",
        "git",
        "file",
        "entry",
        "subdirectory",
        "bash_tool",
        "node_tool",
        "manifest",
        "shell_session",
        "shell_command",
        "timeout_seconds",
        "on_timeout",
        "tools",
        "name",
        "command",
        "a",
        "default",
        "",
        "\ud800",
    ]
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
REAL: list[Any] = [
    {
        "$schema": "./toolyard.schema.json",
        "plugin_cache_dir": "./cache",
        "plugins": ["path:./plain", "path:words.py", "bash:./probe.bash", "shell:session", "manifest:./tools.json"],
        "plugin_policy": {"allow_bash_tools": True, "bash_timeout_seconds": 30, "pass_env": ["A"]},
        "mixin_policy": {"default_merge": "deep", "max_depth": 4},
        "mixins": {"base": {"model": "m", "tags": ["a"]}, "more": {"mixin_refs": ["base"], "x": {"y": "${env:HOME}"}}},
        "providers": {"p": {"mixin_refs": ["more"], "provider": "q", "plugins": [{"path": "words.py"}]}},
        "agents": {
            "default": {"provider": "p", "disabled_plugins": ["words"], "system_message": {"template": "{{A}}"}},
            "other": {"mixin_refs": ["base"], "permissions": {"preset": "read-only", "allow": ["ls"], "deny": ["rm"]}},
        },
        "permissions": {"ask": [{"tool": "bash"}], "ask_timeout_seconds": 3},
        "output": {"limit_bytes": 2000},
        "limits": {"cpu_seconds": 9},
        "audit": {"on_failure": "continue"},
    },
    {"tools": [named("a"), named("b", timeoutSec=3, envPassthrough=["HOME"])]},
]


def places(value: Any, pointer: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where something stands in a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [pointer, *(place for step, part in parts for place in places(part, (*pointer, step)))]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A real configuration with a few places of it lost, renamed or replaced by anything."""
    config = copy.deepcopy(draw(st.sampled_from(REAL)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([place for place in places(config) if place] or [()]))
        if not place:
            break
        holder = config
        for step in place[:-1]:
            holder = holder[step]
        change = draw(st.sampled_from(["lose", "rename", "replace"]))
        old = holder.pop(place[-1]) if change != "replace" else None
        if change == "rename" and isinstance(holder, dict):
            holder[draw(KEYS)] = old
        elif change == "replace":
            holder[place[-1]] = draw(ANYTHING)
    return config


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    yard = Yard(tmp_path_factory.mktemp("yard"))
    yard.tool()
    yard.manifest(named("from_manifest"))
    words = 'def words(text: str = "") -> str:\n    "Give it back."\n    return text\n'
    yard.file("words.py", f"from toolyard.plugins.contract import tool\n\n\n@tool\n{words}")
    yard.file("plain/plain.py", words.replace("words", "plain"))
    yard.file("plain/agent_plugin.json", '{"entries": ["plain.plain"]}')
    return yard


def answers(app: AgentApplication) -> None:
    """All that an application can be asked about its configuration."""
    for problem in app.problems():
        assert problem.message
        assert str(problem)
    assert all(isinstance(error["type"], str) for error in app.get_config_errors())
    for agent in app.agents():
        assert isinstance(app.tool_specs(agent, format="openai"), list)
        assert all(standing.reason for standing in app.plugins(agent))


@settings(max_examples=150)
@given(config=mutated() | ANYTHING)
def test_a_configuration_of_anything_never_raises(yard: Yard, config: Any):
    path = yard.file("random.json", json.dumps(config))
    answers(yard.open(path, cache_dir=yard.folder / "user-cache"))


@settings(max_examples=40)
@given(text=st.text(max_size=40) | mutated().map(lambda config: json.dumps(config)[:-3]))
def test_a_text_that_is_no_json_never_raises(yard: Yard, text: str):
    path: Path = yard.folder / "random.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    answers(yard.open(path, cache_dir=yard.folder / "user-cache"))


@settings(max_examples=25)
@given(first=mutated(), second=mutated() | ANYTHING)
def test_an_open_application_takes_any_edit(yard: Yard, first: Any, second: Any):
    async def edit() -> None:
        path = yard.file("edited.json", json.dumps(first))
        async with yard.open(path, cache_dir=yard.folder / "user-cache") as app:
            answers(app)
            path.write_text(json.dumps(second))
            await app.reload()
            answers(app)
            result = await app.call_tool("from_manifest", {}, agent=app.agents()[0])
            assert result.failure in (None, "unknown_tool", "denied", "crash", "timeout", "exit_code")

    anyio.run(edit)
