"""A branch that tools can commit to is not run as they moved it, whatever kind of plugin it holds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from repositories import commit, descriptor, git, greeting, repository
from support import need, need_backend
from toolyard.app import AgentApplication
from yard import Yard, inhabit, script

pytestmark = pytest.mark.anyio

NODE = {"name": "n", "type": "module", "agent": {"tools": [{"id": "node_greet", "entry": "index.js"}]}}
COMMIT = """cd {folder} && git config user.name tool && git config user.email tool@example.org
sed -i s/{before}/{after}/ python/plugin.py bash/bash_greet.bash node/index.js
git commit -qam 'by a tool' && echo done"""


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    need("git")
    need_backend("bubblewrap", "bubblewrap-pids")
    return Yard(inhabit(tmp_path, monkeypatch) / "project")


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


def plugins(url: str, ref: str | None = "main", *kinds: str) -> list[Any]:
    named = {"git": url, **({"ref": ref} if ref else {})}
    every = {
        "python": {**named, "subdirectory": "python"},
        "bash": {"bash_tool": {**named, "subdirectory": "bash"}},
        "node": {"node_tool": {**named, "subdirectory": "node"}},
    }
    return ["shell:command", *(every[kind] for kind in kinds or every)]


def opened(yard: Yard, *plugins: Any) -> AgentApplication:
    return yard.app(*plugins, plugin_cache_dir="cache")


def faults(app: AgentApplication) -> list[dict[str, Any]]:
    """But for the word that a repository which is the workspace itself cannot be guarded."""
    return [one for one in app.get_config_errors() if one["type"] != "sandbox_code_in_reach"]


async def words(app: AgentApplication, *names: str) -> list[str]:
    return [(await app.call_tool(name, {})).text.strip() for name in names or ("greet", "bash_greet", "node_greet")]


async def run(app: AgentApplication, command: str) -> str:
    return (await app.call_tool("shell", {"command": command})).text


async def by_tool(app: AgentApplication, folder: Path | str, before: str = "owner", after: str = "evil") -> None:
    text = await run(app, COMMIT.format(folder=folder, before=before, after=after))
    assert "done" in text, text


@pytest.mark.parametrize("ref", ["main", None])
async def test_what_a_tool_committed_is_not_run_by_a_later_start_of_any_kind(yard, ref):
    need("node")
    origin = repository(Path.cwd(), files("owner"))
    async with opened(yard, *plugins(str(origin), ref)) as app:
        assert faults(app) == []
        await by_tool(app, origin)
    assert "evil" in git(origin, "show", "main:python/plugin.py"), "it is handed over"
    async with opened(yard, *plugins(str(origin), ref)) as app:
        assert await words(app) == ["owner"] * 3
        problems = faults(app)
        assert {one["type"] for one in problems} == {"plugin_ref_moved"}
        assert len(problems) == 3
        assert "toolyard plugins refresh work" in problems[0]["hint"]


async def test_nor_is_it_because_its_owner_committed_on_top_of_it_or_packed_it(yard):
    origin = repository(Path.cwd(), files("owner"))
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        await by_tool(app, origin)
    commit(origin, {"another": "file"})
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        assert await words(app, "greet") == ["owner"]
    git(origin, "gc", "--quiet")
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        assert await words(app, "greet") == ["owner"]


async def test_commits_of_the_owner_are_followed_also_after_tools_ran(yard):
    origin = repository(Path.cwd(), files("first"))
    git(origin, "tag", "v1")
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        assert "ran" in await run(app, "echo ran")
    commit(origin, files("second"))
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        assert (faults(app), await words(app, "greet")) == ([], ["second"])
    async with opened(yard, *plugins(str(origin), "v1", "python")) as app:
        assert (faults(app), await words(app, "greet")) == ([], ["first"]), "a name that was not used yet"


async def test_a_name_that_was_never_known_without_tools_is_refused_until_it_is_named_whole_or_taken(yard):
    origin = repository(Path.cwd(), files("owner"))
    async with opened(yard, "shell:command") as app:
        await by_tool(app, origin)
    evil = git(origin, "rev-parse", "main")
    for ref in ("main", evil[:12]):
        async with opened(yard, *plugins(str(origin), ref, "python", "bash")) as app:
            problems = faults(app)
            assert [one["type"] for one in problems] == ["plugin_ref_in_reach"] * 2
            assert "tools could commit to" in problems[0]["detail"]
            assert [tool.spec.name for tool in app.tools()] == ["shell"]
    async with opened(yard, *plugins(str(origin), evil, "python")) as app:
        assert (faults(app), await words(app, "greet")) == ([], ["evil"])
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        (found,) = await app.refresh_plugins(["work"])
        assert (found.state, found.now) == ("updated", evil)
        assert (faults(app), await words(app, "greet")) == ([], ["evil"])
    async with opened(yard, *plugins(str(origin), "main", "python")) as app:
        assert (faults(app), await words(app, "greet")) == ([], ["evil"])


async def test_a_repository_elsewhere_is_followed_unless_the_workspace_is_a_worktree_of_it(yard, tmp_path):
    elsewhere, free = repository(tmp_path / "elsewhere", files("owner")), repository(tmp_path / "free", files("owner"))
    git(elsewhere, "branch", "plugin")
    git(elsewhere, "worktree", "add", "--quiet", "-b", "tried", str(yard.folder / "tree"))
    config = yard.config(*plugins(str(elsewhere), "plugin", "python"), plugin_cache_dir="cache")
    subprocess.run(["cp", "-r", config, yard.folder / "tree"], check=True)
    async with AgentApplication(yard.folder / "tree" / config.name, yard.folder / "sessions") as app:
        assert await words(app, "greet") == ["owner"]
        await run(app, f"cd {yard.folder}/tree && git switch -q plugin")
        await by_tool(app, yard.folder / "tree")
    assert "evil" in git(elsewhere, "show", "plugin:python/plugin.py"), "it is handed over"
    async with AgentApplication(yard.folder / "tree" / config.name, yard.folder / "sessions") as app:
        assert await words(app, "greet") == ["owner"]
    async with opened(yard, *plugins(str(free), "main", "python")) as app:
        assert await words(app, "greet") == ["owner"]
        commit(free, files("newer"))
        await app.reload()
        assert (faults(app), await words(app, "greet")) == ([], ["newer"])


async def test_what_its_owner_commits_while_something_runs_there_waits_until_it_is_taken(yard):
    need("node")
    origin = repository(yard.folder / "origin", files("old"))
    async with opened(yard, *plugins("origin", "main", "node")) as app:
        assert await words(app, "node_greet") == ["old"]
        commit(origin, files("new"))
        await app.reload()
        assert await words(app, "node_greet") == ["old"], "its host runs inside, and could have done that"
        assert [one["type"] for one in faults(app)] == ["plugin_ref_moved"]
        await app.refresh_plugins(["origin"])
        assert (faults(app), await words(app, "node_greet")) == ([], ["new"])


async def test_a_branch_that_is_called_like_a_commit_is_none(yard):
    origin = repository(Path.cwd(), files("owner"))
    git(origin, "branch", name := "ab" * 32)
    async with opened(yard, *plugins(str(origin), name, "python")) as app:
        (problem,) = faults(app)
        assert problem["type"] in ("plugin_ref_missing", "plugin_fetch_failed")
