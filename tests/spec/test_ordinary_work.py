"""Ordinary work meets no false obstacle: projects of each kind from nothing, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from effects.scene import place_outside_tmp
from support import ROOT, TOOLYARD, need, need_backend
from users import ORDINARY, as_other

pytestmark = pytest.mark.timeout(300)
PATIENCE = 240
WALK = ROOT / "tests" / "ordinary_work.py"
USERS = {
    "root": [],
    "ordinary": as_other(ordinary=True),
}
CONTAINED = {"root": as_other(contained=True), "ordinary": as_other(ordinary=True, contained=True)}
REGISTRIES = ("https://pypi.org/simple/six/", "https://registry.npmjs.org/left-pad")


@pytest.fixture(scope="module")
def registries() -> None:
    """Without them a walk is skipped, but never in CI, which has them."""
    for url in REGISTRIES:
        try:
            urllib.request.urlopen(url, timeout=20).close()
        except (OSError, urllib.error.URLError) as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{url} cannot be reached: {error}")
            pytest.skip(f"{url} cannot be reached: {error}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A home and a workspace in it, where a user would have them."""
    with tempfile.TemporaryDirectory(prefix="ordinary-", dir=place_outside_tmp()) as folder:
        for path in (Path(folder), Path(folder, "home"), Path(folder, "home", "work")):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
            if os.geteuid() == 0:
                os.chown(path, ORDINARY, ORDINARY)
        yield Path(folder)


def walk(name: str, backend: str, place: Path, user: str) -> list[dict[str, object]]:
    """Do a walk as somebody; what did not go as it should."""
    if user == "root" and os.geteuid() == 0:
        for path in (place, place / "home", place / "home" / "work"):
            os.chown(path, 0, 0)
    given = {
        key: os.environ[key] for key in os.environ if "CERT" in key or "CA_BUNDLE" in key or key.startswith("PIP_")
    }
    rustup = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    toolchain = {"RUSTUP_HOME": rustup} if os.path.isdir(rustup) and user == "root" else {}
    env = {"HOME": str(place / "home"), "PATH": f"{TOOLYARD.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    env |= {"SHELL": "/bin/sh", "TERM": "xterm"}
    prefix = (CONTAINED if backend == "landlock" else USERS)[user]
    argv = [*prefix, sys.executable, str(WALK), name, backend]
    ran = subprocess.run(
        argv, cwd=place / "home" / "work", env=given | toolchain | env, capture_output=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr.decode()
    done = json.loads(ran.stdout)
    assert len(done) > 1 or name == "rust", "nothing was done"
    return [step for step in done if not step["fine"]]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "name", ["python", "node", "c", "rust", "managers", "sockets", "git below", "git here", "refused", "offline"]
)
def test_E07_a_project_is_made_from_nothing_without_a_false_obstacle(registries, place, name, user):
    need_backend("bubblewrap", "bubblewrap-pids")
    for program in ("uv", "npm", "make", "cc", "curl", "git"):
        need(program)
    assert walk(name, "bubblewrap", place, user) == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", ["python", "node", "c", "rust", "git below", "git here", "refused"])
def test_E07_under_landlock_alone_it_is_made_with_the_network_of_the_machine(registries, place, name, user):
    need_backend("landlock")
    assert walk(name, "landlock", place, user) == []
