"""A remote branch is fetched once, and again when somebody asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repositories import commit, descriptor, git_server, greeting, repository
from support import CommandLine, need
from toolyard.errors import UnknownPlugin
from yard import Yard, script

pytestmark = pytest.mark.anyio

NODE = {"name": "n", "type": "module", "agent": {"tools": [{"id": "node_greet", "entry": "index.js"}]}}


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    need("git")
    return Yard(tmp_path)


def files(word: str) -> dict[str, str]:
    """A repository with a tool of each kind, all of which say a word."""
    return {
        "python/plugin.py": greeting("greet", word),
        "python/agent_plugin.json": descriptor("plugin.greet")["agent_plugin.json"],
        "bash/bash_greet.bash": script("bash_greet", run=f"echo {word}"),
        "bash/agent_plugin.json": json.dumps({"bash_tools": [{"file": "bash_greet.bash"}]}),
        "node/package.json": json.dumps(NODE),
        "node/index.js": f'export default {{description: "g", execute: () => "{word}"}}',
    }


def plugins(address: str) -> list[Any]:
    url = f"{address}/origin"
    return [
        {"git": url, "ref": "main", "subdirectory": "python"},
        {"bash_tool": {"git": url, "ref": "main", "subdirectory": "bash"}},
        {"node_tool": {"git": url, "ref": "main", "subdirectory": "node"}},
    ]


async def words(app) -> list[str]:
    return [(await app.call_tool(name, {})).text.strip() for name in ("greet", "bash_greet", "node_greet")]


async def test_a_branch_stays_what_it_was_until_it_is_fetched_again_and_then_for_every_kind(yard):
    need("node")
    origin = repository(yard.folder / "origin", files("old"))
    with git_server(yard.folder) as (address, log):
        app = yard.app(*plugins(address), policy={"allow_remote": True}, plugin_cache_dir="cache")
        async with app:
            assert app.get_config_errors() == []
            assert await words(app) == ["old"] * 3
            newer = commit(origin, files("new"))
            await app.reload()
            assert await words(app) == ["old"] * 3
            (found,) = await app.refresh_plugins(["bash_greet"])
            assert (found.state, found.now) == ("updated", newer)
            assert set(found.plugins) == {"greet", "bash_greet", "node_greet"}
            assert await words(app) == ["new"] * 3
            assert [one.state for one in await app.refresh_plugins()] == ["current"]
        del log[:]
        async with yard.app(*plugins(address), policy={"allow_remote": True}, plugin_cache_dir="cache") as app:
            assert await words(app) == ["new"] * 3
        assert log == [], "it is in the cache"


@pytest.mark.parametrize("policy", [{"allow_remote": False}, {"allow_remote": True, "allowed_git_hosts": ["other"]}])
async def test_what_policy_does_not_allow_any_more_is_gone_for_every_kind(yard, policy):
    need("node")
    repository(yard.folder / "origin", files("old"))
    with git_server(yard.folder) as (address, _):
        app = yard.app(*plugins(address), policy={"allow_remote": True}, plugin_cache_dir="cache")
        async with app:
            assert await words(app) == ["old"] * 3
            yard.config(*plugins(address), policy=policy, plugin_cache_dir="cache")
            assert (await app.call_tool("greet", {})).failure == "unknown_tool"
            assert (app.tools(), len(app.problems())) == ([], 3)


async def test_what_cannot_be_fetched_again_stays_and_is_told(yard):
    origin = repository(yard.folder / "origin", files("old"))
    with git_server(yard.folder) as (address, _):
        spec = plugins(address)[0]
        async with yard.app(spec, policy={"allow_remote": True}, plugin_cache_dir="cache") as app:
            assert (await app.call_tool("greet", {})).text == "old"
            origin.rename(yard.folder / "moved")
            (found,) = await app.refresh_plugins(["origin"])
            assert (found.state, found.problem.code) == ("failed", "plugin_fetch_failed")
            assert found.problem.where.line
            assert (await app.call_tool("greet", {})).text == "old"
            with pytest.raises(UnknownPlugin, match="'gret'; known: greet, origin"):
                await app.refresh_plugins(["gret"])


async def test_policy_is_asked_before_anything_is_fetched_again(yard):
    repository(yard.folder / "origin", files("old"))
    with git_server(yard.folder) as (address, log):
        async with yard.app(plugins(address)[0], plugin_cache_dir="cache") as app:
            (found,) = await app.refresh_plugins()
            assert found.problem.code == "plugin_remote_not_allowed"
        assert log == []


async def test_a_local_repository_and_a_commit_have_nothing_to_refresh(yard):
    origin = repository(yard.folder / "origin", files("old"))
    first = commit(origin, {})
    with git_server(yard.folder) as (address, log):
        fixed = {"git": f"{address}/origin", "ref": first, "subdirectory": "python"}
        local = {"git": "origin", "subdirectory": "python"}
        async with yard.app(fixed, local, policy={"allow_remote": True}, plugin_cache_dir="cache") as app:
            del log[:]
            assert [one.state for one in await app.refresh_plugins()] == ["current", "current"]
        assert log == []


async def test_a_local_repository_of_node_tools_that_moved_on_is_noticed_on_reload(yard, tmp_path_factory):
    need("node")
    origin = repository(tmp_path_factory.mktemp("elsewhere") / "origin", files("old"))
    spec = {"node_tool": {"git": str(origin), "subdirectory": "node"}}
    async with yard.app(spec, plugin_cache_dir="cache") as app:
        assert (await app.call_tool("node_greet", {})).text == "old"
        commit(origin, files("new"))
        await app.reload()
        assert (await app.call_tool("node_greet", {})).text == "new"


def test_the_command_shows_what_changed(tmp_path: Path):
    toolyard = CommandLine(tmp_path)
    origin = repository(tmp_path / "origin", files("old"))
    with git_server(tmp_path) as (address, _):
        toolyard.config(plugins(address)[0], policy={"allow_remote": True})
        assert toolyard("call", "greet", "{}").out == "old\n"
        newer = commit(origin, files("new"))
        ran = toolyard("plugins", "refresh")
        assert (ran.code, ran.out.split()[0], newer[:10] in ran.out) == (0, "updated", True)
        assert toolyard("call", "greet", "{}").out == "new\n"
        (row,) = toolyard("plugins", "refresh", "greet", "--json").json
        assert (row["state"], row["now"], row["plugins"]) == ("current", newer, ["greet"])
        ran = toolyard("plugins", "refresh", "gret")
        assert (ran.code, "known: greet, origin" in ran.err) == (2, True)
    assert toolyard("plugins", "refresh").code == 2
    toolyard.config()
    ran = toolyard("plugins", "refresh")
    assert (ran.code, "no plugin comes from a git repository" in ran.err) == (0, True)
