"""Sessions of an ordinary user, and in something like a container: with everything that they can do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import PATIENCE, need_backend
from users import ORDINARY, as_other

SESSION = """
import asyncio, json, os, sys
from toolyard.process.child import Children, ChildRequest
from toolyard.process.limits import Limits
from toolyard.process.sandbox.policy import SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.bash.session.session import BashSession

async def main(home, work):
    said = {}
    sandbox = Sandbox(SandboxPolicy(), SandboxPaths(home=home, workspace=[work]))
    children = Children(sandbox)
    said["name"] = sandbox.name
    env = {b"PATH": os.environb[b"PATH"]}
    request = ChildRequest(argv=["/bin/bash", "-c", f"cat {home}/.ssh/key; id -u; exit 3"], cwd=work, env=env)
    outcome = await children.run(request)
    said["child"] = [outcome.exit_code, outcome.stdout.text]
    request = ChildRequest(argv=["/bin/bash", "-c", "setsid sleep 300 & sleep 300"], cwd=work, env=env, timeout=0.3)
    said["timed out"] = (await children.run(request)).timed_out
    async with BashSession(work, children=children) as shell:
        await shell.run("x=kept")
        said["interrupted"] = (await shell.run("sleep 300 & while :; do :; done", timeout=0.3)).timed_out
        said["state"] = (await shell.run("echo $x")).output
        asked = await shell.run("read name </dev/tty; echo hello $name", interactive=True)
        said["waits"] = asked.waiting_for_input
        said["answered"] = (await shell.write("bob\\n")).output
        job = shell.jobs[(await shell.run("sleep 0.1; echo out; exit 4", background=True)).job]
        await job.wait(60)
        said["job"] = [job.exit_code, job.read()]
        said["ended"] = (await shell.run("exit 5")).exit_code
        said["taken over"] = (await shell.run("echo $x > made; cat made")).output
        said["killed"] = (await shell.run("kill -9 $$")).exit_code
        said["fresh"] = (await shell.run("echo fresh")).output
    async with BashSession(work, children=children, limits=Limits(processes=200, memory_bytes=1 << 30)) as shell:
        said["limited"] = (await shell.run("echo limited")).output
    await children.aclose()
    print(json.dumps(said))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where an ordinary user can be: the folders of tests are root's alone."""
    place = Path(tempfile.mkdtemp(prefix="toolyard-user-", dir="/tmp"))
    for name in ("home/.ssh", "work"):
        (place / name).mkdir(parents=True)
    (place / "home/.ssh/key").write_text("secret")
    if os.geteuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, ORDINARY, ORDINARY)
    yield place
    shutil.rmtree(place)


@pytest.mark.parametrize("contained", [False, True], ids=["free", "contained"])
@pytest.mark.parametrize("ordinary", [True, False], ids=["user", "root"])
def test_a_session_can_do_everything_and_get_nowhere(place, ordinary, contained):
    best = need_backend("bubblewrap", "bubblewrap-pids")
    need_backend("landlock")
    if not ordinary and os.geteuid() != 0:
        pytest.skip("only root can be root")
    if not ordinary:
        for path in (place, *place.rglob("*")):
            os.chown(path, 0, 0)
    argv = [*as_other(ordinary=ordinary, contained=contained), sys.executable, "-c", SESSION]
    env = {"PATH": os.environ["PATH"], "HOME": str(place / "home")}
    ran = subprocess.run(
        [*argv, str(place / "home"), str(place / "work")], capture_output=True, env=env, cwd="/", timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr.decode()
    said = json.loads(ran.stdout)
    code, output = said.pop("child")
    assert (code, "secret" in output) == (3, False)
    assert output.strip() == {True: str(os.geteuid() or ORDINARY), False: "0" if contained else "65534"}[ordinary]
    assert said == {
        "name": "landlock without attributes, protected, obeyed" if contained else best,
        "timed out": True,
        "interrupted": True,
        "state": "kept\n",
        "waits": True,
        "answered": "hello bob\n",
        "job": [4, "out\n"],
        "ended": 5,
        "taken over": "kept\n",
        "killed": 137,
        "fresh": "fresh\n",
        "limited": "limited\n",
    }
