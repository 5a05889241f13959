"""What the owner has git ignore everywhere, as the tools see it, and who may say which file that is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import need
from toolyard.app import AgentApplication
from yard import Yard

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("ours", [False, True], ids=["ripgrep", "own"])]


@pytest.fixture
def yard(tmp_path: Path, monkeypatch) -> Yard:
    folder = tmp_path / "yard"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Yard(folder)


@pytest.fixture
def home(tmp_path_factory, monkeypatch) -> Path:
    """One with no settings of git yet."""
    need("rg")
    folder = tmp_path_factory.mktemp("home")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(folder))
    return folder


async def shown_names(app: AgentApplication, ours: bool) -> list[str]:
    """What each of the tools that look for files shows, which must be the same."""
    if ours:
        loaded = await app._lifecycle.current()
        for tool in (plugin.tools[0] for one in loaded.sources() for plugin in one.source.plugins()):
            tool._ripgrep = lambda: None
    by_glob = await app.call_tool("glob", {"pattern": "**/*.txt"})
    by_grep = await app.call_tool("grep", {"pattern": "needle", "output_mode": "files_with_matches"})
    by_list = await app.call_tool("list", {"depth": 3})
    listed = [name for name in by_list.text.split("\n") if name.endswith(".txt")]
    assert sorted(by_glob.text.split("\n")) == sorted(by_grep.text.split("\n")) == sorted(listed)
    return sorted(listed)


def open_app(yard: Yard, **rest) -> AgentApplication:
    return AgentApplication(yard.config("files:read", **rest), yard.folder.parent / "sessions")


async def test_it_is_left_out_unless_a_nearer_rule_shows_it(yard: Yard, home: Path, ours: bool):
    for name in ("a.txt", "b.txt", "sub/a.txt", "sub/c.txt"):
        yard.file(name, "needle\n")
    yard.file("sub/.gitignore", "!a.txt\n")
    async with open_app(yard) as app:
        assert await shown_names(app, ours) == ["a.txt", "b.txt", "sub/a.txt", "sub/c.txt"]
        (home / ".config/git").mkdir(parents=True)
        (home / ".config/git/ignore").write_bytes(b"\xef\xbb\xbfa.txt\n/sub/c.txt\n")
        assert await shown_names(app, ours) == ["b.txt", "sub/a.txt"]
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
        (home / "mine").write_text("b.txt\n")
        assert await shown_names(app, ours) == ["a.txt", "sub/a.txt", "sub/c.txt"]
        everything = await app.call_tool("grep", {"pattern": "needle", "no_ignore": True})
        assert "b.txt:1:needle" in everything.text


async def test_its_paths_begin_at_the_repository_also_for_a_workspace_below(yard: Yard, home: Path, ours: bool):
    subprocess.run([need("git"), "init", "-q", str(yard.folder)], check=True)
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("/work/a.txt\n/b.txt\n")
    for name in ("work/a.txt", "work/b.txt"):
        yard.file(name, "needle\n")
    async with open_app(yard, working_directory=str(yard.folder / "work")) as app:
        assert await shown_names(app, ours) == ["b.txt"]


async def test_settings_that_may_have_been_written_inside_name_no_file(yard: Yard, home: Path, monkeypatch, ours: bool):
    secret = home / "secret"
    secret.write_text("a.txt\n")
    yard.file("a.txt", "needle\n")
    subprocess.run([need("git"), "init", "-q", str(yard.folder)], check=True)
    subprocess.run(["git", "-C", str(yard.folder), "config", "core.excludesFile", str(secret)], check=True)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(yard.file("gitconfig", f"[core]\nexcludesFile = {secret}\n")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(yard.folder))
    (yard.folder / "git").mkdir()
    (yard.folder / "git/ignore").symlink_to(secret)
    async with open_app(yard) as app:
        assert await shown_names(app, ours) == ["a.txt"]
