"""Caches of package managers: a workspace's own, and obeyed by nobody else."""

from __future__ import annotations

import os
import sys
import time
import zipfile

import pytest

from boxes import Box
from support import need, need_backend
from toolyard.files.user_folders import user_folder
from toolyard.process.child import Children
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.packages.caches import CACHES, KEPT_FOR, cache_folder, make_cache_folder
from toolyard.process.sandbox.policy import SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox
from toolyard.runtime.sandbox_policy import build_runner
from yard import Yard

pytestmark = pytest.mark.anyio


@pytest.fixture
async def box(tmp_path):
    box = Box(tmp_path.resolve())
    yield box
    for children in box.open:
        await children.aclose()


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_every_cache_can_be_written_and_is_none_of_the_users(box, backend):
    folder = cache_folder([str(box.workspace)])
    children = box.children(backend, places={"caches": folder})
    names = " ".join(CACHES)
    script = f'for name in {names}; do mkdir -p "${{!name}}" && echo x > "${{!name}}/made" && echo "${{!name}}"; done'
    outcome = await box.bash(children, script)
    assert outcome.stdout.text.split() == [f"{folder}/{below}" for below in CACHES.values()], outcome.stderr.text
    await children.aclose()
    assert all(os.path.isfile(f"{folder}/{below}/made") for below in CACHES.values())
    assert not (box.home / ".npm").exists()


async def test_uvx_runs_a_package_whose_environment_is_the_sandboxs_own(box):
    """So are most MCP servers of Python started; the folder of tools in the user's home cannot even be locked."""
    with zipfile.ZipFile(box.workspace / "greeter-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeter.py", "def main():\n    print('hello from inside')\n")
        about = "greeter-1.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: greeter\nVersion: 1\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\ngreeter = greeter:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    children = box.children(need_backend("bubblewrap"), places={"caches": cache_folder([str(box.workspace)])})
    uvx = f"{need('uv')} tool run --offline --no-config --python {sys.executable}"
    outcome = await box.bash(children, f"{uvx} --from ./greeter-1-py3-none-any.whl greeter")
    assert outcome.stdout.text == "hello from inside\n", outcome.stderr.text
    installed = await box.bash(children, f"{uvx.replace('run', 'install')} ./greeter-1-py3-none-any.whl")
    assert installed.exit_code != 0, "a program for everybody is refused as ever"
    assert not (box.home / ".local").exists()


async def test_one_that_the_owner_put_into_the_workspace_stays_there(box):
    children = box.children(need_backend("bubblewrap"), places={"caches": cache_folder([str(box.workspace)])})
    given = {b"PIP_CACHE_DIR": os.fsencode(box.workspace / "mine"), b"UV_CACHE_DIR": os.fsencode(box.home / "theirs")}
    outcome = await box.bash(children, "echo $PIP_CACHE_DIR; echo $UV_CACHE_DIR", env=box.env | given)
    own, theirs = outcome.stdout.text.split()
    assert own == str(box.workspace / "mine")
    assert theirs.startswith(cache_folder([str(box.workspace)]))


async def test_where_no_cache_can_be_made_nothing_is_said_of_one(box, caches):
    caches.write_text("no folder")
    children = box.children(need_backend("bubblewrap"), places={"caches": cache_folder([str(box.workspace)])})
    outcome = await box.bash(children, "echo cache=$PIP_CACHE_DIR")
    assert outcome.stdout.text == "cache=\n", outcome.stderr.text


async def test_what_one_workspace_leaves_in_its_cache_is_seen_by_no_other(tmp_path, monkeypatch):
    """A poisoned package would run there the next time that it is installed."""
    need_backend("bubblewrap", "bubblewrap-pids")
    seen = []
    for name, line in (("one", "echo evil > $PIP_CACHE_DIR-poison; ls -A ${PIP_CACHE_DIR%/*}"), ("two", "")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        async with Yard(tmp_path / name).app("shell:command") as app:
            every = "caches=${PIP_CACHE_DIR%/*/*}; ls -A $caches $caches/*; cat $caches/*/pip-poison; echo listed"
            seen.append((await app.call_tool("shell", {"command": line or every})).data["stdout"])
    assert "pip-poison" in seen[0]
    assert "listed" in seen[1]
    assert "evil" not in seen[1]
    assert "pip-poison" not in seen[1]


async def test_a_link_in_the_place_of_a_cache_leads_nowhere_outside(box, tmp_path):
    """Neither what makes the folder, nor what shows cargo its settings, nor what removes it follows one."""
    folder = cache_folder([str(box.workspace)])
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("x")
    (box.home / ".cargo").mkdir()
    (box.home / ".cargo" / "config.toml").write_text("")
    children = box.children(need_backend("bubblewrap"), places={"caches": folder})
    outcome = await box.bash(
        children,
        f"cd {folder} && rm -rf cargo && ln -s {victim} cargo && ln -s {victim} npm; cd ..; mv {folder} elsewhere; "
        f"rm -rf {folder}; ln -sfn {victim} {folder}",
    )
    await children.aclose()
    assert "Read-only file system" in outcome.stderr.text
    assert os.path.isdir(folder)
    assert not os.path.islink(folder)
    make_cache_folder(folder)
    os.utime(folder, (1, 1))
    make_cache_folder(cache_folder([str(tmp_path)]))
    assert not os.path.exists(folder), "it was not used for long"
    assert [path.name for path in victim.iterdir()] == ["kept"]


def test_what_was_used_lately_is_kept(tmp_path):
    folders = [cache_folder([str(tmp_path / name)]) for name in ("old", "used", "new")]
    for folder, age in zip(folders, (KEPT_FOR + 60, KEPT_FOR - 3600, 0), strict=True):
        make_cache_folder(folder)
        os.utime(folder, (time.time() - age,) * 2)
    make_cache_folder(folders[-1])
    assert sorted(os.listdir(user_folder("cache") / "sandboxes")) == sorted(map(os.path.basename, folders[1:]))


async def test_builds_of_plugins_do_not_take_what_tools_left(box):
    paths = SandboxPaths(home=str(box.home), workspace=[str(box.workspace)], caches=cache_folder([str(box.workspace)]))
    tools = Sandbox(SandboxPolicy(backends=(need_backend("bubblewrap"),)), paths)
    sandbox = build_runner(tools, allow_remote=False).sandbox
    assert sandbox is not None
    children = Children(Sandbox(*sandbox))
    box.open.append(children)
    make_cache_folder(paths.caches)
    outcome = await box.bash(children, f"echo $PIP_CACHE_DIR; ls {paths.caches}", cwd="/")
    assert outcome.stdout.text.strip() == ""
    assert outcome.exit_code != 0
