"""What bubblewrap mounted while somebody led it elsewhere: seen in the kernel's table, and nothing starts there."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boxes import Box
from effects.scene import place_outside_tmp
from support import need
from toolyard.errors import CannotStart
from toolyard.process.keeper.mounts_inside import innermost
from toolyard.process.sandbox.backends.confinement import Confinement
from toolyard.process.sandbox.backends.mount_table import are_as_meant, unescaped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@pytest.fixture
async def box() -> AsyncIterator[Box]:
    """Where its neighbours can be seen from inside."""
    with tempfile.TemporaryDirectory(dir=place_outside_tmp()) as folder:
        os.chmod(folder, 0o755)
        box = Box(Path(folder))
        yield box
        for children in box.open:
            await children.aclose()


@pytest.fixture
def neighbour(box) -> Path:
    """Beside the workspace, in which there is a repository of somebody else's."""
    need("git")
    for folder in (box.workspace / "sub", box.folder / "neighbour"):
        subprocess.run(["git", "init", "-q", folder], check=True)
    return box.folder / "neighbour"


@contextlib.contextmanager
def led_elsewhere(box, target: str):
    """As a job of another application does for the moment in which the mounts are made."""
    sub = box.workspace / "sub"
    sub.rename(box.workspace / "kept")
    sub.symlink_to(target)
    yield
    sub.unlink()
    (box.workspace / "kept").rename(sub)


@pytest.mark.parametrize("target", ["../neighbour", "{neighbour}"], ids=["relative", "absolute"])
async def test_nothing_starts_where_a_folder_was_a_link_while_it_was_mounted(box, neighbour, monkeypatch, target):
    ready = Confinement.ready_prefix
    target = target.format(neighbour=neighbour)

    @contextlib.contextmanager
    def with_a_link(self):
        with led_elsewhere(box, target), ready(self) as prefix:
            yield prefix

    children = box.mounts()
    await children.choose_sandbox()
    monkeypatch.setattr(Confinement, "ready_prefix", with_a_link)
    script = f"echo x > {neighbour}/written; echo x > ../neighbour/written; echo x > sub/written"
    with pytest.raises(CannotStart):
        await box.bash(children, script)
    assert not (neighbour / "written").exists()
    monkeypatch.setattr(Confinement, "ready_prefix", ready)
    await box.bash(box.mounts(), script)
    assert not (neighbour / "written").exists()
    assert (box.workspace / "sub" / "written").exists(), "when nobody does that, all is as usual"


async def test_a_mount_elsewhere_is_seen_also_when_all_is_as_it_was(box, neighbour):
    bwrap, sub = need("bwrap"), str(box.workspace / "sub")
    binds = [word for path in (str(box.workspace), sub) for word in ("--bind", path, path)]
    prefix = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", *binds, "--"]
    for is_led in (False, True):
        moment = led_elsewhere(box, "../neighbour") if is_led else contextlib.nullcontext()
        with moment, subprocess.Popen([*prefix, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
            assert inside.stdin
            assert inside.stdout
            inside.stdin.write(b"x")
            inside.stdin.flush()
            os.read(inside.stdout.fileno(), 1)  # so all mounts are made
            seen = are_as_meant(innermost(inside.pid), prefix)
            inside.stdin.close()
        assert seen is not is_led


def test_names_in_the_table_are_read_as_they_are():
    assert unescaped(rb"/a\040b\134c\012d") == "/a b\\c\nd"
