"""What each backend keeps in: real escapes, tried as root, as an ordinary user and in something like a container."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from support import PATIENCE, need_backend
from toolyard.config.settings import SandboxProperty
from toolyard.core.sandbox_properties import PROPERTIES, PROPERTY_DESCRIPTIONS
from toolyard.process.sandbox.policy import BACKENDS
from toolyard.process.sandbox.self_test import cache
from toolyard.process.sandbox.self_test.tries import LOOKING, TRIES
from users import as_other

WHO = {
    "root": as_other(),
    "user": as_other(ordinary=True),
    "root in a container": as_other(contained=True),
    "user in a container": as_other(ordinary=True, contained=True),
}
KEPT_BY_LANDLOCK = [name for name in PROPERTIES if name not in ("attributes", "protected", "obeyed")]
"""It knows no exception to a grant: what lies in a workspace that can be written, can be written. And it looks at what
files hold, not at the rights and times that they have."""


def probe(who: str) -> dict[str, dict]:
    """Every backend, and none, tried by somebody."""
    for backend in BACKENDS:
        need_backend(backend)
    if who.startswith("root") and os.geteuid() != 0:
        pytest.skip("only root can be root")
    argv = [*WHO[who], sys.executable, "-m", "toolyard.process.sandbox.self_test.probe"]
    ran = subprocess.run(argv, capture_output=True, timeout=PATIENCE, cwd="/")
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def held(found: dict) -> list[str]:
    assert found["failure"] is None
    return [name for name in PROPERTIES if not found["open"][name]]


@pytest.mark.parametrize("who", ["root", "user"])
def test_bubblewrap_keeps_everything_in(who):
    found = probe(who)
    assert held(found["bubblewrap"]) == held(found["bubblewrap-pids"]) == [*PROPERTIES]
    assert held(found["landlock"]) == KEPT_BY_LANDLOCK
    assert held(found["none"]) == [], "each try succeeds where nothing keeps it in, or it would prove nothing"


OPEN_IN_LANDLOCK = {f"change_{what}_{how}" for what in ("rights", "times", "owner") for how in ("outside", "by_handle")}


@pytest.mark.parametrize("who", ["root", "user"])
def test_what_landlock_leaves_open_of_a_file_outside_is_what_the_documentation_says(who):
    assert set(probe(who)["landlock"]["open"]["attributes"]) == OPEN_IN_LANDLOCK
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
    named = re.search(r"^- landlock leaves open, of `attributes`: (.*)$", page, re.MULTILINE)
    assert named
    assert set(named[1].split(", ")) == {way.replace("_", " ") for way in OPEN_IN_LANDLOCK}


@pytest.mark.parametrize("who", ["root in a container", "user in a container"])
def test_where_there_are_no_namespaces_landlock_keeps_all_but_three(who):
    found = probe(who)
    assert "namespace" in found["bubblewrap"]["failure"]
    assert "namespace" in found["bubblewrap-pids"]["failure"]
    assert held(found["landlock"]) == KEPT_BY_LANDLOCK


def test_every_single_try_succeeds_as_root_without_a_sandbox():
    tried = {name: list(tries) for name, tries in TRIES.items()}
    tried["writes"].remove("cannot_write_workspace")  # which would be bad news
    tried["sockets"].remove("cannot_connect_own_socket")
    found = probe("root")["none"]["open"]
    # What a kernel may refuse to everybody, typing on a terminal, is not asked of it.
    missing = {name: set(ways) - set(found[name]) - {"type_on_a_terminal"} for name, ways in tried.items()}
    assert not any(missing.values()), missing


def test_every_property_is_tried_and_explained_and_can_be_required():
    assert (*TRIES, *LOOKING) == tuple(PROPERTY_DESCRIPTIONS) == PROPERTIES == get_args(SandboxProperty)


def test_what_is_used_is_not_found_out_again_however_many_others_are(monkeypatch, tmp_path):
    """Each container that is started has namespaces of its own, and so a result of its own."""
    monkeypatch.setattr(cache, "CACHE_FOLDERS", (str(tmp_path),))
    ours, file = cache.fingerprint(), Path(cache.cache_file())
    result = {"support": [7], "tested": {"landlock": {"open": {}, "failure": None}}}
    file.write_text(json.dumps({ours: result}))
    file.chmod(0o600)
    for number in range(3 * cache.MOST_KEPT):
        assert cache.SelfTest().knows("landlock")
        newest = list(json.loads(file.read_text()).items())[-cache.MOST_KEPT :]
        file.write_text(json.dumps(dict(newest) | {str(number): result}))
    assert json.loads(file.read_text())[ours] == result
