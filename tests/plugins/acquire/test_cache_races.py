"""Installing is raced and killed: the cache is never half-written, and every process ends with a working plugin."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hosts
from repositories import BACKEND, commit, git, packaging, repository, write
from support import PATIENCE, running

INSTALL = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop())
from hosts import make_host
from toolyard.kinds.python_function.install import Installed, install
from toolyard.plugins.acquire.fetch import Fetched
from toolyard.plugins.acquire.git_reference import read_git_reference
from toolyard.process.child import Children

async def main(cache, git, project):
    children = Children()
    host = make_host(children, cache=Path(cache))
    fetched = await host.fetcher.fetch(read_git_reference(git, None, "/"))
    assert isinstance(fetched, Fetched), fetched
    installed = await install(Path(project), name="raced", beside=(), host=host)
    assert isinstance(installed, Installed), installed
    await children.aclose()
    print(json.dumps([str(fetched.folder), *map(str, installed.roots)]))

asyncio.run(main(*sys.argv[1:]))
"""
FILES = {f"raced/part{index}.py": f"VALUE = {index}\n" for index in range(30)}
SLOW = BACKEND + "\nimport time\ntime.sleep(0.3)\n"
"""A build that takes a while, so that there is something to interrupt."""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A process that fetches one plugin and installs another."""
    origin = repository(tmp_path / "origin", {f"file{index}": "x" * 20_000 for index in range(30)})
    commit(origin, {"last": "one"})
    git(origin, "tag", "v1")
    project = write(tmp_path / "project", {**packaging("raced"), **FILES, "backend/in_tree.py": SLOW})
    return [
        sys.executable,
        "-c",
        INSTALL,
        str(tmp_path / "cache"),
        str(origin),
        str(project),
        str(Path(hosts.__file__).parent),
    ]


def check(folders: list[str]) -> None:
    """Both plugins are whole."""
    tree, site = map(Path, folders)
    assert sorted(path.name for path in tree.iterdir()) == sorted(["last", *(f"file{index}" for index in range(30))])
    assert all((site / name).read_text() == text for name, text in FILES.items())


def check_cache(cache: Path) -> None:
    """Whatever is there under its final name is whole."""
    contents = {"origin": "tree", "raced": "site/raced", "pip": "pip/pip"}
    for folder in cache.glob("[!.]*"):
        json.loads((folder / "toolyard.json").read_text())
        inside = list((folder / contents[folder.name.rpartition("-")[0]]).iterdir())
        assert len(inside) >= (30 if "pip" not in folder.name else 5)


def test_four_processes_at_once_share_one_installation(command, tmp_path):
    racing = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    ended = [process.communicate(timeout=PATIENCE) for process in racing]
    assert [process.returncode for process in racing] == [0] * 4, ended
    answers = {out for out, _ in ended}
    assert len(answers) == 1
    check(json.loads(answers.pop()))
    assert [len(list((tmp_path / "cache" / "plugins").glob(f"{name}-*"))) for name in ("origin", "raced")] == [1, 1]


def test_one_who_is_killed_leaves_no_half_plugin(command, tmp_path):
    chance = random.Random(tmp_path.name)
    for _ in range(8):
        with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                process.wait(chance.uniform(0.1, 2.5))
            except subprocess.TimeoutExpired:
                process.kill()
        check_cache(tmp_path / "cache" / "plugins")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout))
    assert [path.name for path in (tmp_path / "cache" / "plugins").glob(".raced*.tmp")] == [], (
        "what the dead left is swept away"
    )


def test_one_who_waits_takes_over_when_the_first_is_killed(command, tmp_path):
    with (
        running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first,
        running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second,
    ):
        locks = tmp_path / "cache" / "plugins" / ".locks"
        while not list(locks.glob("*")) and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        out, error = second.communicate(timeout=PATIENCE)
        assert second.returncode == 0, error
    check(json.loads(out))
