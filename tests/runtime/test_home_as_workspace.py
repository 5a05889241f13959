"""A home as the workspace, also of two applications at once: nothing that starts by itself can be made, or is left."""

from __future__ import annotations

import contextlib
import os

import pytest

from support import PATIENCE, need_backend
from toolyard.app import AgentApplication
from yard import Yard

pytestmark = pytest.mark.anyio
STARTS_BY_ITSELF = (
    *(".bashrc", ".bash_profile", ".zshenv", ".config/git/config", ".config/autostart/x.desktop", ".vim/plugin/x.vim"),
    *(".config/pip/pip.conf", ".config/systemd/user/x.service", ".ssh/authorized_keys", ".local/bin/git", "tools/git"),
)  # fmt: skip
MOVED_AWAY = (".vimrc", ".bash_login", "bin/git")


@pytest.fixture
def home(tmp_path, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/tools:{os.environ['PATH']}")
    monkeypatch.chdir(home)
    return home


@contextlib.asynccontextmanager
async def application(home, name):
    async with AgentApplication(Yard(home).config("shell:session"), home.parent / name) as app:
        yield app


def made(home, paths) -> list[str]:
    """Those that are there; an empty file is nothing."""
    return [path for path in paths if (home / path).is_file() and (home / path).read_text() == "x\n"]


def written(paths) -> str:
    """A line that tries to write each."""
    return "; ".join(f"mkdir -p {os.path.dirname(path) or '.'} 2>/dev/null; echo x > {path}" for path in paths)


async def test_what_starts_by_itself_can_neither_be_made_nor_is_anything_left(home):
    async with application(home, "sessions") as app:
        await app.call_tool("bash", {"command": written((*STARTS_BY_ITSELF, *MOVED_AWAY))})
        assert made(home, (*STARTS_BY_ITSELF, *MOVED_AWAY)) == []
    assert {name for name in os.listdir(home) if not name.endswith(".from-sandbox")} == {"toolyard.json"}


async def test_the_end_of_one_application_takes_no_guard_from_another(home):
    async with application(home, "one") as second:
        async with application(home, "two") as first:
            await first.call_tool("bash", {"command": "true"})
            waiting = {"command": f"read x; {written(STARTS_BY_ITSELF)}", "background": True, "interactive": True}
            await second.call_tool("bash", waiting)
        await second.call_tool("bash_job", {"action": "write", "id": "1", "text": "go\n"})
        await second.call_tool("bash_job", {"action": "wait", "id": "1", "timeout": PATIENCE})
        assert made(home, STARTS_BY_ITSELF) == []
    assert os.listdir(home) == ["toolyard.json"]


async def test_a_key_that_comes_to_be_cannot_be_read(home):
    async with application(home, "sessions") as app:
        await app.call_tool("bash", {"command": "true"})
        (home / ".ssh/key").write_text("secret")
        assert "secret" not in (await app.call_tool("bash", {"command": "cat .ssh/key"})).text
