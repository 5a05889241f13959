"""The examples of the page on configuring plugins, as they are printed there, against a model service of our own.

Keys come from the environment, and so does the address of the service. What a page leaves to its reader is added beside
the example: the entry of `providers` that it names, and files.
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

PORTABLE = """
{
  "plugin_cache_dir": "${env:CONFIG_DIR}/.plugin_cache/plugins",
  "plugins": [
    "path:${env:BUILTIN_PLUGINS}/openrouter",
    "path:${env:BUILTIN_PLUGINS}/feature-system-message"
  ],
  "agents": {
    "default": {
      "provider": "openrouter_tools",
      "system_message": {
        "template": "{{AGENTS}}",
        "variables": {
          "AGENTS": {
            "text": "${file:${env:WORKING_DIR}/AGENTS.md}"
          }
        }
      }
    }
  }
}
"""
MIXINS = """
{
  "mixin_policy": {
    "default_merge": "deep",
    "max_depth": 16
  },
  "mixins": {
    "portable-system-message": {
      "system_message": {
        "variables": {
          "AGENTS": {
            "text": "${file:${env:WORKING_DIR}/AGENTS.md}"
          }
        }
      }
    },
    "openai-base": {
      "mixin_refs": ["portable-system-message"],
      "provider": "openai_compatible",
      "model": "gpt-5-mini"
    }
  },
  "providers": {
    "openai": {
      "mixin_refs": ["openai-base"],
      "api_key": "${env:OPENAI_API_KEY}"
    }
  },
  "agents": {
    "default": {
      "provider": "openai",
      "system_message": {
        "template": "{{AGENTS}}"
      }
    }
  }
}
"""
TEMPLATES = """
{
  "plugins": [
    "path:${env:BUILTIN_PLUGINS}/openrouter",
    "path:${env:BUILTIN_PLUGINS}/feature-system-message"
  ],
  "agents": {
    "default": {
      "provider": "openrouter_gemini_tools",
      "system_message": {
        "template": "{{BASE}}\\n\\n{{GIT_SECTION}}\\n\\n{{WORKING_DIRECTORY_LINE}}",
        "runtime_code": "${env:CONFIG_DIR}/system_messages/helpers/runtime.py",
        "variables": {
          "BASE": {
            "files": [
              "${env:CONFIG_DIR}/system_messages/gemini/preamble.md",
              "${env:CONFIG_DIR}/system_messages/gemini/core-mandates.md"
            ]
          },
          "GIT_SECTION": {
            "files": [
              "${env:CONFIG_DIR}/system_messages/gemini/git-section.md"
            ],
            "condition": {
              "inline_code": "is_git_repo()"
            }
          },
          "WORKING_DIRECTORY_LINE": {
            "inline_code": "f'Current working directory: {cwd}'"
          }
        }
      }
    }
  }
}
"""
THREE_LEVELS = """
{
  "plugin_cache_dir": "${env:PLUGIN_CACHE_DIR}",
  "providers": {
    "openrouter_codex": {
      "provider": "openrouter",
      "model": "openai/gpt-5-mini",
      "api_key": "${env:OPENROUTER_API_KEY}",
      "plugins": [
        "path:${env:REPO_ROOT}/plugins/codex-tools"
      ],
      "disabled_plugins": ["apply_patch"]
    },
    "openrouter_gemini": {
      "provider": "openrouter",
      "model": "google/gemini-2.5-flash-lite",
      "api_key": "${env:OPENROUTER_API_KEY}",
      "plugins": [
        "path:${env:REPO_ROOT}/plugins/gemini-tools"
      ]
    }
  },
  "plugins": [
    "path:${env:REPO_ROOT}/plugins/openrouter",
    "path:${env:REPO_ROOT}/plugins/feature-request-options"
  ],
  "disabled_plugins": ["openrouter_usage"],
  "agents": {
    "codex-agent": {
      "provider": "openrouter_codex"
    },
    "gemini-agent": {
      "provider": "openrouter_gemini",
      "plugins": [
        "path:${env:REPO_ROOT}/plugins/session-title-app"
      ],
      "disabled_plugins": ["session_title_app"]
    }
  }
}
"""
RUNTIME = """
import os
from pathlib import Path

cwd = os.getcwd()

def is_git_repo():
    return (Path(cwd) / ".git").exists()

_hidden = 1
"""
OPENROUTER = {"provider": "openrouter", "model": "google/gemini-2.5-flash-lite", "api_key": "${env:OPENROUTER_API_KEY}"}


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
    work: Path, monkeypatch: pytest.MonkeyPatch, example: str, **beside: Any
) -> AsyncIterator[tuple[AgentApplication, FakeModelServer]]:
    """An example in use; what is beside it is merged into its top level."""
    value = json.loads(example)
    for key, more in beside.items():
        value[key] = [*value.get(key, []), *more] if isinstance(more, list) else {**value.get(key, {}), **more}
    (work / "config.json").write_text(json.dumps(value, indent=2))
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


async def test_T11_the_portable_example_runs(work: Path, monkeypatch: pytest.MonkeyPatch):
    (work / "AGENTS.md").write_text("Mind the tests.")
    providers = {"openrouter_tools": OPENROUTER}
    async with running(work, monkeypatch, PORTABLE, providers=providers) as (app, server):
        received = await asked(app, server)
    assert system_of(received.body) == "Mind the tests."
    assert received.headers["authorization"] == "Bearer key-of-openrouter"


async def test_T11_the_example_of_mixins_runs(work: Path, monkeypatch: pytest.MonkeyPatch):
    (work / "AGENTS.md").write_text("Mind the tests.")
    plugins = [f"path:${{env:BUILTIN_PLUGINS}}/{name}" for name in ("openai-compatible", "feature-system-message")]
    async with running(work, monkeypatch, MIXINS, plugins=plugins) as (app, server):
        received = await asked(app, server)
    assert received.body["model"] == "gpt-5-mini"
    assert system_of(received.body) == "Mind the tests."
    assert received.headers["authorization"] == "Bearer key-of-openai"


@pytest.mark.parametrize("in_git", [True, False])
async def test_T11_the_example_of_templates_runs(work: Path, monkeypatch: pytest.MonkeyPatch, in_git: bool):
    for name, text in (("preamble", "Be brief."), ("core-mandates", "Be right."), ("git-section", "Commit often.")):
        file = work / "system_messages" / "gemini" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    helpers = work / "system_messages" / "helpers"
    helpers.mkdir()
    (helpers / "runtime.py").write_text(RUNTIME)
    if in_git:
        (work / ".git").mkdir()
    providers = {"openrouter_gemini_tools": OPENROUTER}
    async with running(work, monkeypatch, TEMPLATES, providers=providers) as (app, server):
        received = await asked(app, server)
    git = "Commit often." if in_git else ""
    assert system_of(received.body) == f"Be brief.\n\nBe right.\n\n{git}\n\nCurrent working directory: {work}"


@pytest.fixture
def three_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(BUILTIN, tmp_path / "repository" / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("REPO_ROOT", str(tmp_path / "repository"))
    monkeypatch.setenv("PLUGIN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("three_levels")
async def test_T11_the_example_of_three_levels_runs_as_its_bullets_say(work: Path, monkeypatch: pytest.MonkeyPatch):
    async with running(work, monkeypatch, THREE_LEVELS) as (app, server):
        codex, gemini = [{one.plugin: one for one in app.plugins(name)} for name in ("codex-agent", "gemini-agent")]
        for agent in (codex, gemini):
            assert agent["openrouter"].on, "every agent gets the global provider package"
            assert agent["feature_request_options"].on
            assert not agent["openrouter_usage"].on, "disabled at the top level"
        assert {"shell", "apply_patch", "update_plan"} <= set(codex), "from the provider's entry"
        assert not codex["apply_patch"].on, "disabled at the provider's level"
        assert {"read_file", "glob"} <= set(gemini) - set(codex), "from the provider's entry"
        assert "session_title_app" in set(gemini) - set(codex), "from the agent's entry"
        assert not gemini["session_title_app"].on, "disabled at the agent's level"

        received = await asked(app, server, "codex-agent")
        assert received.body["model"] == "openai/gpt-5-mini"
        assert "usage" not in received.body, "what a disabled feature would ask for"
        assert {"shell", "update_plan"} <= tools_of(received.body)
        assert "apply_patch" not in tools_of(received.body)

        received = await asked(app, server, "gemini-agent")
        assert received.body["model"] == "google/gemini-2.5-flash-lite"
        assert {"read_file", "glob"} <= tools_of(received.body)
        assert "update_plan" not in tools_of(received.body)


@pytest.mark.usefixtures("three_levels")
async def test_T11_a_session_that_names_its_plugins_has_exactly_those(work: Path, monkeypatch: pytest.MonkeyPatch):
    named = ["openrouter", "apply_patch", "openrouter_usage"]
    async with running(work, monkeypatch, THREE_LEVELS) as (app, server):
        received = await asked(app, server, "codex-agent", metadata={"plugins": named})
    assert tools_of(received.body) - {"read_output"} == {"apply_patch"}, "reading on is no plugin, and always there"
    assert received.body["usage"] == {"include": True}


@pytest.mark.usefixtures("three_levels")
async def test_T11_the_title_plugin_works_where_it_is_not_disabled(work: Path, monkeypatch: pytest.MonkeyPatch):
    enabled = json.loads(THREE_LEVELS)
    del enabled["agents"]["gemini-agent"]["disabled_plugins"]
    async with running(work, monkeypatch, json.dumps(enabled)) as (app, _):
        session = await app.open_session("gemini-agent")
        assert [update async for update in session.send("Could you please say hello. And more.")]
    assert SessionStore(work / "sessions" / "sessions.sqlite").session(session.id).title == "Say hello"
