"""What root alone may read, root's tools may not: at any depth, in whatever folder, as soon as it is there."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from boxes import PATIENCE, Box
from support import need_backend
from toolyard.files.inside import is_inside
from toolyard.process.sandbox import secrets as sandbox_secrets
from toolyard.process.sandbox.backends import bubblewrap as bubblewrap_backend
from toolyard.process.sandbox.backends.owner_map import can_map_owners, in_mapped_mounts, mapped_mounts, mounts
from toolyard.process.sandbox.secrets import ROOTS_ALONE, files_of_root

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root's")]
DEPTHS = range(1, 7)
READ_ALL = """
import os, sys
for path in sys.argv[1:]:
    try:
        print(os.path.basename(path), open(path).read())
    except OSError:
        pass
"""


@pytest.fixture
def box(tmp_path):
    return Box(tmp_path)


@pytest.fixture
async def closed(box):
    yield
    async with asyncio.timeout(PATIENCE):
        for children in box.open:
            await children.aclose()


@pytest.fixture(params=["/etc", "/opt", "/var/lib", "/srv"])
def folder(request):
    """A folder that everybody may enter, among those of the system."""
    if not os.path.isdir(request.param):
        pytest.skip(f"there is no {request.param}")
    made = Path(tempfile.mkdtemp(prefix="toolyard-test-", dir=request.param))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def make_secrets(folder: Path) -> list[Path]:
    """At each depth a file for root, one for its group, one for everybody, and a folder for root with a public file."""
    made: list[Path] = []
    for depth in DEPTHS:
        folder = folder / f"level-{depth}" if depth > 1 else folder
        folder.mkdir(exist_ok=True, mode=0o755)
        for name, mode in (("owner", 0o600), ("group", 0o640), ("public", 0o644)):
            path = folder / f"{name}-{depth}"
            path.write_text("told")
            path.chmod(mode)
            made.append(path)
        inner = folder / "closed"
        inner.mkdir(mode=0o700)
        (inner / f"within-{depth}").write_text("told")
        (inner / f"within-{depth}").chmod(0o644)
        made.append(inner / f"within-{depth}")
    return made


def look_only_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For files of root's only here: other tests make and remove some elsewhere, and a machine may have too many."""
    assert any(is_inside(str(folder), top) for top in ROOTS_ALONE)
    monkeypatch.setattr(sandbox_secrets, "ROOTS_ALONE", (str(folder),))


PUBLIC = {f"public-{depth}" for depth in DEPTHS}


async def read_inside(box, children, paths) -> set[str]:
    outcome = await box.python(children, READ_ALL, *map(str, paths))
    assert outcome.exit_code == 0, outcome.stderr.text
    return {line.split()[0] for line in outcome.stdout.text.splitlines()}


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("backend", ["bubblewrap", "bubblewrap-pids", "landlock"])
async def test_what_root_alone_may_read_is_not_read_inside_at_any_depth(box, folder, backend, monkeypatch):
    if backend == "landlock":
        look_only_in(folder, monkeypatch)
    paths = make_secrets(folder)
    assert await read_inside(box, box.children(backend), paths) == PUBLIC


@pytest.mark.usefixtures("closed")
async def test_it_is_not_read_either_when_it_comes_to_be_later(box, folder):
    if not can_map_owners(ROOTS_ALONE):
        pytest.skip("owners cannot be mapped here")
    children = box.mounts()
    assert await read_inside(box, children, []) == set()
    assert await read_inside(box, children, make_secrets(folder)) == PUBLIC


@pytest.mark.usefixtures("closed")
async def test_where_owners_cannot_be_mapped_it_is_looked_for_and_hidden(box, folder, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")  # which is tried out before anything is changed
    for module in (sandbox_secrets, bubblewrap_backend):
        monkeypatch.setattr(module, "can_map_owners", lambda _: False)
    look_only_in(folder, monkeypatch)
    children = box.mounts()
    paths = make_secrets(folder)
    assert await read_inside(box, children, paths) == PUBLIC
    assert children.sandbox.name.startswith("bubblewrap")


@pytest.mark.usefixtures("closed")
async def test_a_secret_that_is_gone_when_the_sandbox_starts_costs_nothing(box):
    kept, gone = box.folder / "kept", box.folder / "gone"
    for path in (kept, gone):
        path.write_text("told")
    children = box.children(
        need_backend("bubblewrap", "bubblewrap-pids"), places={"also_hidden": [str(kept), str(gone)]}
    )
    assert children.sandbox.layout.access(str(gone)) in ("hidden", "private")
    gone.unlink()
    assert await read_inside(box, children, [kept, gone]) == set()
    assert children.sandbox.name.startswith("bubblewrap")


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("how", ["workspace", "also_readable", "readable", "home"])
async def test_what_is_named_is_read_as_its_owner_reads_it(box, folder, how):
    paths = make_secrets(folder)
    given = str(folder) if how == "home" else [str(folder), str(box.workspace)]
    children = box.children(need_backend("bubblewrap", "bubblewrap-pids"), places={how: given})
    assert await read_inside(box, children, paths) == {path.name for path in paths}


@pytest.mark.usefixtures("closed")
async def test_work_of_root_is_root_s_on_disk(box):
    outcome = await box.bash(box.mounts(), "umask 077; echo x > made; mkdir sub; cat made; ls /usr/bin/env /etc/passwd")
    assert outcome.stdout.text.split() == ["x", "/etc/passwd", "/usr/bin/env"]
    facts = [(box.workspace / name).stat() for name in ("made", "sub")]
    assert [(one.st_uid, one.st_gid) for one in facts] == [(0, 0), (0, 0)]


def test_the_mounts_of_the_machine_are_those_that_the_kernel_tells_of():
    found = dict(mounts())
    assert next(iter(found)) == "/"
    assert found["/proc"] == "proc"
    assert all(os.path.lexists(point) for point in found if not point.startswith("/mnt/"))


@pytest.mark.usefixtures("closed")
async def test_nothing_of_the_view_is_seen_outside_while_it_is_used_or_after(box):
    before = dict(mounts())
    children = box.mounts()
    await box.bash(children, "true")
    assert dict(mounts()) == before
    view = Path(children.sandbox.folder().view)
    assert not view.exists() or not list(view.iterdir())
    await children.aclose()
    assert not view.exists()
    assert os.stat("/").st_mode & 0o005 == 0o005


@pytest.mark.usefixtures("closed")
async def test_no_handle_on_the_mounts_is_left_inside(box):
    outcome = await box.bash(box.mounts(), "readlink /proc/$$/fd/* /proc/self/ns/mnt; true")
    assert outcome.stdout.text.count("mnt:") == 1, "its own, and no other"


def test_the_view_cannot_be_written_even_by_root(tmp_path):
    if not can_map_owners():
        pytest.skip("owners cannot be mapped here")
    view = tmp_path / "view"
    with mapped_mounts(str(view)) as handle:
        inside = f"cd {view}{tmp_path} && touch made; chmod 700 {view}; rm -rf {view}{tmp_path}; true"
        ran = subprocess.run([*in_mapped_mounts(handle), "/bin/sh", "-c", inside], capture_output=True, timeout=60)
    assert ran.stderr.decode().count("Read-only file system") == 3
    assert view.exists()
    assert not (tmp_path / "made").exists()


@pytest.fixture
def huge(tmp_path, monkeypatch):
    """A folder with more than is looked at, beside a small one; in both a file of root's, deep down."""
    need_backend("landlock")  # which is tried out before anything is changed
    monkeypatch.setattr(sandbox_secrets, "ROOTS_ALONE", (str(tmp_path),))
    monkeypatch.setattr(sandbox_secrets, "MOST_LOOKED_AT", 300)
    for number in range(200):
        (tmp_path / "huge" / f"a{number}" / "b").mkdir(parents=True)
    (tmp_path / "small" / "a1" / "b").mkdir(parents=True)
    for path in (deep := [tmp_path / name / "a1" / "b" / "deep" for name in ("huge", "small")]):
        path.write_text("x")
        path.chmod(0o600)
    return deep


def test_what_is_too_much_to_be_looked_through_is_hidden_as_a_whole_and_named(huge):
    found = files_of_root()
    of_huge, of_small = map(str, huge)
    assert any(is_inside(of_huge, path) for path in found.hidden)
    assert any(is_inside(of_huge, path) for path in found.whole)
    assert [path for path in found.hidden if is_inside(of_small, path)] == [of_small], "which had its turn"


def test_what_is_too_much_to_be_hidden_one_by_one_is_hidden_with_its_folder(huge, monkeypatch):
    monkeypatch.setattr(sandbox_secrets, "MOST_LOOKED_AT", 10_000)
    monkeypatch.setattr(sandbox_secrets, "MOST", 5)
    for number in range(200):
        file = huge[0].parent.parent / f"file-{number}"
        file.write_text("x")
        file.chmod(0o600)
    found = files_of_root()
    assert len(found.hidden) <= 5
    for path in huge:
        assert any(is_inside(str(path), hidden) for hidden in found.hidden)
    assert str(huge[1]) in found.hidden
    assert found.whole == [str(huge[0].parent.parent)]


@pytest.mark.usefixtures("closed")
async def test_under_landlock_nothing_is_read_of_what_was_not_looked_through(box, huge):
    children = box.children("landlock")
    assert await read_inside(box, children, huge) == set()
    assert children.sandbox.report().closed


def test_an_ordinary_user_maps_nobody():
    source = "from toolyard.process.sandbox.backends.owner_map import can_map_owners; print(can_map_owners())"
    from users import as_other

    argv = [*as_other(ordinary=True), sys.executable, "-c", source]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, cwd="/")
    assert ran.stdout == "False\n", ran.stderr
