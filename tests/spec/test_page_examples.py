"""What the page on configuring plugins shows, in configurations of our own, against a model service of our own.

Keys come from the environment, and so does the address of the service.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolyard
from fake_model_server import FakeModelServer, Reply, Said, chat_events, fake_model_server
from toolyard import AgentApplication
from toolyard.agents.sessions.store import SessionStore

pytestmark = pytest.mark.anyio

BUILTIN = Path(toolyard.__file__).parent / "builtin_plugins"
ANSWER = Reply(events=chat_events(Said(text="Hello.")))

ROUTED = {"provider": "openrouter", "model": "some/small-model", "api_key": "${env:OPENROUTER_API_KEY}"}
RULES = {"RULES": {"text": "${file:${env:WORKING_DIR}/RULES.md}"}}


def bundled(*names: str, root: str = "${env:BUILTIN_PLUGINS}") -> list[str]:
    return [f"path:{root}/{name}" for name in names]


PORTABLE = {
    "agents": {"helper": {"provider": "routed", "system_message": {"variables": RULES, "template": "{{RULES}}"}}},
    "providers": {"routed": ROUTED},
    "plugins": bundled("openrouter", "feature-system-message"),
    "plugin_cache_dir": "${env:CONFIG_DIR}/cache",
}
MIXINS = {
    "agents": {"helper": {"provider": "compatible", "system_message": {"template": "Rules: {{RULES}}"}}},
    "providers": {"compatible": {"api_key": "${env:OPENAI_API_KEY}", "mixin_refs": ["small"]}},
    "mixins": {
        "small": {"model": "small-model", "provider": "openai_compatible", "mixin_refs": ["with-rules"]},
        "with-rules": {"system_message": {"variables": RULES}},
    },
    "mixin_policy": {"max_depth": 16, "default_merge": "deep"},
    "plugins": bundled("openai-compatible", "feature-system-message"),
}
TEMPLATES = {
    "agents": {
        "helper": {
            "provider": "routed",
            "system_message": {
                "template": "{{MANNERS}}\n\n{{HISTORY}}\n\n{{PLACE}}",
                "variables": {
                    "MANNERS": {"files": [f"${{env:CONFIG_DIR}}/prompts/{name}.md" for name in ("short", "true")]},
                    "HISTORY": {
                        "condition": {"inline_code": "has_history()"},
                        "files": ["${env:CONFIG_DIR}/prompts/history.md"],
                    },
                    "PLACE": {"inline_code": "'You are in ' + here"},
                },
                "runtime_code": "${env:CONFIG_DIR}/prompts/names.py",
            },
        }
    },
    "providers": {"routed": ROUTED},
    "plugins": bundled("openrouter", "feature-system-message"),
}
OURS = "${env:OUR_PLUGINS}"
THREE_LEVELS = {
    "plugins": bundled("openrouter", "feature-request-options", root=OURS),
    "disabled_plugins": ["openrouter_usage"],
    "providers": {
        "first": {
            **ROUTED,
            "model": "first/model",
            "plugins": bundled("codex-tools", root=OURS),
            "disabled_plugins": ["apply_patch"],
        },
        "second": {**ROUTED, "model": "second/model", "plugins": bundled("gemini-tools", root=OURS)},
    },
    "agents": {
        "patcher": {"provider": "first"},
        "reader": {
            "provider": "second",
            "plugins": bundled("session-title-app", root=OURS),
            "disabled_plugins": ["session_title_app"],
        },
    },
    "plugin_cache_dir": "${env:OUR_CACHE}",
}
NAMES = """
import os
from pathlib import Path

here = os.getcwd()

def has_history():
    return (Path(here) / ".git").exists()

_hidden = 1
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENROUTER_API_KEY", "key-of-openrouter")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai")
    return folder


@asynccontextmanager
async def running(
    work: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> AsyncIterator[tuple[AgentApplication, FakeModelServer]]:
    """A configuration in use."""
    (work / "config.json").write_text(json.dumps(config, indent=2))
    async with asyncio.timeout(90), fake_model_server(ANSWER) as server:
        for name in ("OPENROUTER_BASE_URL", "OPENAI_BASE_URL"):
            monkeypatch.setenv(name, f"{server.origin}/v1")
        async with AgentApplication("config.json", "./sessions") as app:
            assert app.get_config_errors() == []
            yield app, server


async def asked(app: AgentApplication, server: FakeModelServer, agent: str | None = None, **given: Any) -> Any:
    """What the service receives when something is said."""
    session = await app.open_session(agent, **given)
    assert [update async for update in session.send("Hello?")]
    return server.received[-1]


def system_of(body: Any) -> str:
    (content,) = [one["content"] for one in body["messages"] if one["role"] in ("system", "developer")]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def tools_of(body: Any) -> set[str]:
    return {one["function"]["name"] for one in body.get("tools", ())}


async def test_T11_a_portable_configuration_runs(work: Path, monkeypatch: pytest.MonkeyPatch):
    (work / "RULES.md").write_text("Mind the tests.")
    async with running(work, monkeypatch, PORTABLE) as (app, server):
        received = await asked(app, server)
    assert system_of(received.body) == "Mind the tests."
    assert received.headers["authorization"] == "Bearer key-of-openrouter"


async def test_T11_mixins_of_mixins_reach_the_request(work: Path, monkeypatch: pytest.MonkeyPatch):
    (work / "RULES.md").write_text("Mind the tests.")
    async with running(work, monkeypatch, MIXINS) as (app, server):
        received = await asked(app, server)
    assert received.body["model"] == "small-model"
    assert system_of(received.body) == "Rules: Mind the tests."
    assert received.headers["authorization"] == "Bearer key-of-openai"


@pytest.mark.parametrize("in_git", [True, False])
async def test_T11_a_template_of_files_and_snippets_is_the_system_message(
    work: Path, monkeypatch: pytest.MonkeyPatch, in_git: bool
):
    prompts = work / "prompts"
    prompts.mkdir()
    for name, text in (("short", "Be brief."), ("true", "Be right."), ("history", "Commit often.")):
        (prompts / f"{name}.md").write_text(f"{text}\n")
    (prompts / "names.py").write_text(NAMES)
    if in_git:
        (work / ".git").mkdir()
    async with running(work, monkeypatch, TEMPLATES) as (app, server):
        received = await asked(app, server)
    git = "Commit often." if in_git else ""
    assert system_of(received.body) == f"Be brief.\n\nBe right.\n\n{git}\n\nYou are in {work}"


@pytest.fixture
def three_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(BUILTIN, tmp_path / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("OUR_PLUGINS", str(tmp_path / "plugins"))
    monkeypatch.setenv("OUR_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("three_levels")
async def test_T11_plugins_add_up_over_three_levels_and_each_level_disables(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running(work, monkeypatch, THREE_LEVELS) as (app, server):
        patcher, reader = [{one.plugin: one for one in app.plugins(name)} for name in ("patcher", "reader")]
        for agent in (patcher, reader):
            assert agent["openrouter"].on, "every agent gets the global provider package"
            assert agent["feature_request_options"].on
            assert not agent["openrouter_usage"].on, "disabled at the top level"
        assert {"shell", "apply_patch", "update_plan"} <= set(patcher), "from the provider's entry"
        assert not patcher["apply_patch"].on, "disabled at the provider's level"
        assert {"read_file", "glob"} <= set(reader) - set(patcher), "from the provider's entry"
        assert "session_title_app" in set(reader) - set(patcher), "from the agent's entry"
        assert not reader["session_title_app"].on, "disabled at the agent's level"

        received = await asked(app, server, "patcher")
        assert received.body["model"] == "first/model"
        assert "usage" not in received.body, "what a disabled feature would ask for"
        assert {"shell", "update_plan"} <= tools_of(received.body)
        assert "apply_patch" not in tools_of(received.body)

        received = await asked(app, server, "reader")
        assert received.body["model"] == "second/model"
        assert {"read_file", "glob"} <= tools_of(received.body)
        assert "update_plan" not in tools_of(received.body)


@pytest.mark.usefixtures("three_levels")
async def test_T11_a_session_that_names_its_plugins_has_exactly_those(work: Path, monkeypatch: pytest.MonkeyPatch):
    named = ["openrouter", "apply_patch", "openrouter_usage"]
    async with running(work, monkeypatch, THREE_LEVELS) as (app, server):
        received = await asked(app, server, "patcher", metadata={"plugins": named})
    assert tools_of(received.body) - {"read_output"} == {"apply_patch"}, "reading on is no plugin, and always there"
    assert received.body["usage"] == {"include": True}


@pytest.mark.usefixtures("three_levels")
async def test_T11_the_title_plugin_works_where_it_is_not_disabled(work: Path, monkeypatch: pytest.MonkeyPatch):
    enabled = json.loads(json.dumps(THREE_LEVELS))
    del enabled["agents"]["reader"]["disabled_plugins"]
    async with running(work, monkeypatch, enabled) as (app, _):
        session = await app.open_session("reader")
        assert [update async for update in session.send("Could you please say hello. And more.")]
    assert SessionStore(work / "sessions" / "sessions.sqlite").session(session.id).title == "Say hello"
