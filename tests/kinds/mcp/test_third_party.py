"""Servers that others wrote, from the registries, as they are."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT, need
from toolyard.core.content import ImagePart
from yard import Yard

pytestmark = pytest.mark.anyio
LOCKS = Path(__file__).parent / "locks"


def from_npm(name: str, *arguments: str) -> dict:
    """The entry for a server that `scripts/npm-packages` installed."""
    node = need("node")
    package = ROOT / ".venv" / "npm" / "node_modules" / "@modelcontextprotocol" / name
    if not package.exists():
        need("npm")
        pytest.fail(f"{package} is not installed: run scripts/npm-packages")
    return {"mcp": {"command": [node, str(package / "dist" / "index.js"), *arguments], "name": name}}


async def test_everything(yard: Yard):
    async with yard.app(from_npm("server-everything", "stdio")) as app:
        assert app.problems() == []
        assert (await app.call_tool("echo", {"message": "hi"})).text == "Echo: hi"
        total = await app.call_tool("get-sum", {"a": 2, "b": 3})
        assert "5" in total.text
        picture = await app.call_tool("get-tiny-image", {})
        assert [type(part) for part in picture.attachments] == [ImagePart]
        work = {"duration": 1, "steps": 2}
        slow = await app.call_tool("trigger-long-running-operation", work, on_event=yard.watch)
        assert (slow.failure, yard.streamed() != "") == (None, True)
        found = [spec.name for spec in app.tool_specs()]
        assert {"server-everything_read_resource", "server-everything_get_prompt"} <= set(found)
        prompt = await app.call_tool("server-everything_get_prompt", {"name": "simple-prompt"})
        assert prompt.text.startswith("user: ")


async def test_filesystem(yard: Yard):
    yard.file("files/a.txt", "what it says\n")
    async with yard.app(from_npm("server-filesystem", str(yard.folder / "files"))) as app:
        read = await app.call_tool("read_text_file", {"path": str(yard.folder / "files" / "a.txt")})
        assert "what it says" in read.text
        refused = await app.call_tool("read_text_file", {"path": "/etc/passwd"})
        assert refused.failure == "exit_code"


async def test_memory(yard: Yard):
    entry = from_npm("server-memory")
    entry["mcp"]["env"] = {"MEMORY_FILE_PATH": str(yard.folder / "memory.json")}
    entities = [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]
    async with yard.app(entry) as app:
        assert (await app.call_tool("create_entities", {"entities": entities})).ok
        assert "counts" in (await app.call_tool("read_graph", {})).text


@pytest.fixture(scope="session")
def python_servers() -> Path:
    """Two servers from PyPI in an environment of their own, kept beside the tests' from one run to the next."""
    folder, lock = ROOT / ".venv" / "mcp-servers", LOCKS / "servers.txt"
    mark = folder / ".installed"
    with (ROOT / ".venv" / "mcp-servers.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # tests run in several processes
        if not mark.exists() or mark.read_text() != lock.read_text():
            uv, python = need("uv"), folder / "bin" / "python"
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True, timeout=300)
            install = [uv, "pip", "install", "-q", "--require-hashes", "--python", python, "-r", lock]
            subprocess.run(install, check=True, timeout=300)
            mark.write_text(lock.read_text())
    return folder / "bin"


async def test_git(yard: Yard, python_servers: Path):
    git = need("git")
    subprocess.run([git, "init", "-q", "repo"], cwd=yard.folder, check=True)
    yard.file("repo/new.txt", "x")
    async with yard.app({"mcp": {"command": [str(python_servers / "mcp-server-git")]}}) as app:
        status = await app.call_tool("git_status", {"repo_path": str(yard.folder / "repo")})
    assert (status.failure, "new.txt" in status.text) == (None, True)


async def test_time(yard: Yard, python_servers: Path):
    async with yard.app({"mcp": {"command": [str(python_servers / "mcp-server-time")]}}) as app:
        result = await app.call_tool("get_current_time", {"timezone": "UTC"})
    assert (result.failure, "UTC" in result.text) == (None, True)
