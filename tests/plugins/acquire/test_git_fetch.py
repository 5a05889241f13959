"""Repositories fetched from paths, file addresses and servers on this machine; hostile ones refused or contained."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from repositories import Redirect, commit, git, git_server, repository, serving, static_server, write
from toolyard.core.problems import Problem
from toolyard.files.door import Door
from toolyard.plugins.acquire.fetch import Fetched
from toolyard.plugins.acquire.git import Git
from toolyard.plugins.acquire.git_reference import read_git_reference
from yard import Yard

pytestmark = pytest.mark.anyio


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with a tag, a branch and some commits."""
    folder = repository(tmp_path / "origin", {"word": "first"})
    git(folder, "tag", "v1")
    commit(folder, {"word": "second", "sub/deep": "inside"})
    git(folder, "branch", "side")
    commit(folder, {"word": "third"})
    return folder


def word(fetched: Fetched | Problem) -> str:
    assert isinstance(fetched, Fetched), fetched
    return (fetched.folder / "word").read_text()


@pytest.mark.parametrize(("ref", "text"), [("", "third"), ("#v1", "first"), ("#side", "second"), ("#main", "third")])
async def test_tags_branches_and_the_head(origin, fetch, ref, text):
    assert word(await fetch(f"{origin}{ref}")) == text
    assert word(await fetch(f"file://{origin}{ref}")) == text


async def test_a_commit_by_its_name_whole_or_short(origin, fetch):
    second = git(origin, "rev-parse", "side")
    for name in (second, second[:10]):
        fetched = await fetch(f"{origin}#{name}")
        assert word(fetched) == "second"
        assert fetched.commit == second


async def test_a_commit_that_no_branch_holds_any_more(origin, fetch):
    lost = commit(origin, {"word": "lost"})
    git(origin, "reset", "--quiet", "--hard", "HEAD~1")
    fetched = await fetch(f"{origin}#{lost}")
    if isinstance(fetched, Fetched):  # whether git gives it out is up to its version
        assert word(fetched) == "lost"
    else:
        assert fetched.code == "plugin_ref_missing"


async def test_a_bare_repository_and_one_whose_head_is_detached(origin, fetch, tmp_path):
    git(origin, "clone", "--quiet", "--bare", str(origin), str(tmp_path / "bare.git"))
    assert word(await fetch(f"{tmp_path}/bare.git#v1")) == "first"
    git(origin, "checkout", "--quiet", "--detach", "v1")
    assert word(await fetch(str(origin))) == "first"


async def test_only_the_files_are_kept(origin, fetch):
    fetched = await fetch(f"{origin}#side")
    names = sorted(str(path.relative_to(fetched.folder)) for path in fetched.folder.rglob("*"))
    assert names == ["sub", "sub/deep", "word"]
    assert sorted(path.name for path in fetched.folder.parent.iterdir()) == ["toolyard.json", "tree"]


async def test_what_was_fetched_is_used_again_until_the_repository_changes(origin, fetch):
    first = await fetch(str(origin))
    again = await fetch(str(origin))
    assert first.folder == again.folder
    commit(origin, {"word": "fourth"})
    assert word(await fetch(str(origin))) == "fourth"
    assert word(first) == "third", "who still uses the old one keeps it"
    git(origin, "tag", "--force", "v1", "side")
    assert word(await fetch(f"{origin}#v1")) == "second", "a tag that was moved"


async def test_uncommitted_work_is_not_fetched(origin, fetch):
    write(origin, {"word": "uncommitted"})
    assert word(await fetch(str(origin))) == "third"


async def test_a_reference_that_is_missing_names_near_ones(origin, fetch):
    refusal = await fetch(f"{origin}#v2")
    assert refusal.code == "plugin_ref_missing"
    assert "'v2'" in refusal.message
    assert "v1" in refusal.hint


@pytest.mark.parametrize("where", ["nowhere", "file", "empty"])
async def test_what_is_no_repository_says_so(tmp_path, fetch, where):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    refusal = await fetch(str(tmp_path / where))
    assert refusal.code == "plugin_fetch_failed"
    assert str(tmp_path / where) in refusal.message
    assert list((tmp_path / "cache" / "plugins").glob("[!.]*")) == []


async def test_a_repository_without_commits(tmp_path, fetch):
    git(tmp_path, "init", "--quiet", "new")
    refusal = await fetch(f"{tmp_path}/new")
    assert refusal.code in ("plugin_fetch_failed", "plugin_ref_missing")


async def test_over_http_when_policy_allows_the_host(origin, fetch, tmp_path):
    with git_server(tmp_path) as (address, log):
        refused = await fetch(f"{address}/origin#v1")
        assert refused.code == "plugin_remote_not_allowed"
        refused = await fetch(f"{address}/origin#v1", allow_remote=True, allowed_git_hosts=["example.org"])
        assert refused.code == "plugin_host_not_allowed"
        assert log == [], "nobody was asked"
        for ref, text in (("v1", "first"), ("side", "second"), (git(origin, "rev-parse", "side"), "second")):
            fetched = await fetch(f"{address}/origin#{ref}", allow_remote=True, allowed_git_hosts=["127.0.0.1"])
            assert word(fetched) == text
        asked = len(log)
        assert asked
        await fetch(f"{address}/origin#v1", allow_remote=True)
        assert len(log) == asked, "what is in the cache is not asked for again"


async def test_over_http_from_a_server_that_knows_nothing_of_git(origin, fetch, tmp_path):
    git(origin, "clone", "--quiet", "--bare", str(origin), str(tmp_path / "served" / "bare.git"))
    git(tmp_path / "served" / "bare.git", "update-server-info")
    with static_server(tmp_path / "served") as address:
        assert word(await fetch(f"{address}/bare.git#v1", allow_remote=True)) == "first"


async def test_a_server_cannot_send_us_elsewhere(origin, fetch, tmp_path):
    with git_server(tmp_path) as (address, log), serving(partial(Redirect, address)) as elsewhere:
        refusal = await fetch(f"{elsewhere}/origin#v1", allow_remote=True)
        assert refusal.code == "plugin_fetch_failed"
        assert log == []


async def test_nothing_of_a_repository_runs_while_it_is_fetched(origin, fetch, tmp_path, monkeypatch):
    owned = tmp_path / "owned"
    commit(origin, {".gitattributes": "* filter=x\n"})
    for name in ("post-checkout", "post-merge", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        file = write(origin / ".git" / "hooks", {name: f"#!/bin/sh\ntouch {owned}\n"}) / name
        file.chmod(0o755)
    git(origin, "config", "core.fsmonitor", f"touch {owned}")
    git(origin, "config", "uploadpack.packObjectsHook", f"touch {owned}; false")
    commands = {"filter.x.smudge": f"touch {owned}", "core.hooksPath": str(origin / ".git" / "hooks")}
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(commands)))
    for index, (key, value) in enumerate(commands.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{index}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{index}", value)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {owned}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "strange"))
    fetched = await fetch(str(origin))
    assert word(fetched) == "third"
    assert not owned.exists()


async def test_submodules_are_not_fetched_and_that_is_said(origin, fetch, tmp_path):
    inner = repository(tmp_path / "inner", {"x": "y"})
    git(origin, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    commit(origin, {})
    fetched = await fetch(str(origin))
    assert [note.code for note in fetched.notes] == ["plugin_submodules"]
    assert list((fetched.folder / "inner").iterdir()) == []
    assert [note.code for note in (await fetch(str(origin))).notes] == ["plugin_submodules"], "also from the cache"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../etc", "sub/../../x"])
async def test_a_link_out_of_the_repository_is_refused(origin, fetch, target):
    os.symlink(target, origin / "link")
    commit(origin, {})
    refusal = await fetch(str(origin))
    assert refusal.code == "plugin_outside"
    assert "'link'" in refusal.message


async def test_a_link_inside_the_repository_is_kept(origin, fetch):
    os.symlink("../word", origin / "sub" / "link")
    commit(origin, {})
    fetched = await fetch(str(origin))
    assert (fetched.folder / "sub" / "link").read_text() == "third"


async def test_a_repository_beyond_the_limit_is_refused_before_it_is_written(origin, fetch, tmp_path):
    commit(origin, {"huge": "0" * 3_000_000})
    refusal = await fetch(str(origin), install_max_bytes=1_000_000)
    assert refusal.code == "plugin_too_large"
    assert "install_max_bytes" in refusal.hint
    assert not any(path.stat().st_size > 1_000_000 for path in (tmp_path / "cache").rglob("*") if path.is_file())


async def test_a_pack_beyond_the_limit_is_refused(origin, fetch):
    (origin / "noise").write_bytes(os.urandom(3_000_000))
    commit(origin, {})
    assert (await fetch(str(origin), install_max_bytes=1_000_000)).code == "plugin_too_large"


async def test_without_git_that_is_said(origin, fetch, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = await fetch(str(origin))
    assert refusal.code == "plugin_git_missing"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("git+origin", "below/agent_plugin.json"),
        ("bash+git:origin", "none.bash"),
        ("node+git:origin", "package.json"),
    ],
)
async def test_a_fault_of_what_was_fetched_is_told_where_the_repository_is_named(tmp_path, spec, words):
    yard = Yard(tmp_path)
    files = {
        "agent_plugin.json": '{"bash_tools": [{"file": "none.bash"}], "subdirectory": "below"}',
        "package.json": '{"name": "x", "agent": {"tools": 3}}',
        "below/agent_plugin.json": '{"entries": 3}',
    }
    repository(yard.folder / "origin", files)
    if spec.startswith("git+"):
        spec = {"git": "origin", "subdirectory": "below"}
    async with yard.app(spec, plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
    assert (problem["file"], problem["line"] > 1) == (str(yard.folder / "toolyard.json"), True)
    assert problem["detail"].startswith(words)
    assert f" of {yard.folder}/origin: " in problem["detail"]


async def test_a_listing_that_failed_or_was_cut_is_no_proof_of_a_size(origin, children, tmp_path, monkeypatch):
    """What is in a repository is known only from a whole list of it."""
    work = tmp_path / "work"
    work.mkdir()
    reference = read_git_reference(str(origin), "", "/")
    opened = Git.open(reference, work, children, Door.here(), timeout=60, most_bytes=1 << 20)
    assert (await opened.run("init", "--quiet", "--bare", str(opened.repository), inside=False)).exit_code == 0
    head = await opened.fetch()
    assert await opened.listing(head) is False
    failed = await opened.listing("0" * 40)
    assert isinstance(failed, Problem)
    assert "could not list the files" in failed.message
    monkeypatch.setattr("toolyard.plugins.acquire.git.MOST_LISTING", 60)
    cut = await opened.listing(head)
    assert isinstance(cut, Problem)
    assert cut.code == "plugin_fetch_failed"


async def test_a_repository_of_more_bytes_than_allowed_is_refused_before_a_file_is_written(tmp_path, fetch):
    origin = repository(tmp_path / "large", {"large": "x" * 5000, "other": "y" * 4000})
    assert isinstance(await fetch(str(origin), install_max_bytes=9000), Fetched), "all that may be"
    refused = await fetch(str(origin), install_max_bytes=8999)
    assert isinstance(refused, Problem)
    assert refused.code == "plugin_too_large"
    assert "holds 9000 bytes, more than 8999" in refused.message
