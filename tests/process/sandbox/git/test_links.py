"""Links in the place of git's own files, which tools made or a workspace brought along: nobody outside follows one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from owners_git import git
from support import need
from toolyard.process.sandbox.git.git_files import GitFiles
from toolyard.process.sandbox.git.guards import is_usual
from toolyard.process.sandbox.git.inside_repository import REAL_OBJECTS, InsideRepository, PrivateGitFolder
from toolyard.process.sandbox.git.nested import NestedRepositories
from toolyard.process.sandbox.git.repository_walk import RepositoryWalk
from toolyard.process.sandbox.git.submodules import modules_of
from toolyard.process.sandbox.git.workspace_repositories import finish_removals
from toolyard.process.sandbox.mount_points import REPOSITORY, SOCKET, make, remove_unused
from toolyard.process.sandbox.replaced_folders import put_folder_aside

SECRET = "SECRET-OF-THE-OWNER"
SHOWN = ("config", "objects/info/alternates")
"""What git inside gets a copy of."""


def bare_looking(folder: Path) -> Path:
    """What an ordinary clone can bring along: a folder that git takes for a repository."""
    for name in ("objects/info", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "hidden").mkdir()
    (file := tmp_path / "hidden/secret").write_text(f"/{SECRET}\n")
    return file


def made_for(git_folder: Path, place: Path) -> str:
    """All that git inside gets of a repository before anything runs."""
    PrivateGitFolder(InsideRepository(str(git_folder)), str(place / "own"), str(place / "objects")).make()
    return "".join(path.read_text() for path in place.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_link_leads_to_is_not_shown_inside(tmp_path, secret, name):
    folder = bare_looking(tmp_path / "work/store.git")
    (folder / name).symlink_to(secret)
    assert SECRET not in made_for(folder, tmp_path / "place")
    assert not is_usual(str(folder)), "so it can only be read, as it is"


@pytest.mark.parametrize("name", ["objects/info", "", ".."])
def test_nor_by_a_link_on_the_way(tmp_path, secret, name):
    folder = bare_looking(tmp_path / "work/store.git")
    moved = tmp_path / "moved"
    for shown in SHOWN:
        (folder / shown).write_text(f"/{SECRET}\n")
    real = Path(os.path.normpath(folder / name))
    real.rename(moved)
    real.symlink_to(moved)
    told = made_for(folder, tmp_path / "place").splitlines()
    assert told.count(f"/{SECRET}") == (name == "objects/info"), "the configuration is in its place"
    assert not is_usual(str(folder))


def test_files_that_are_no_links_are_shown(tmp_path):
    folder = bare_looking(tmp_path / "work/store.git")
    for name in SHOWN:
        (folder / name).write_text(f"/{SECRET}\n")
    assert made_for(folder, tmp_path / "place").splitlines().count(f"/{SECRET}") == 2
    assert is_usual(str(folder))


@pytest.mark.anyio
@pytest.mark.parametrize("name", SHOWN)
async def test_a_clone_that_brings_such_a_link_shows_no_key_inside(box, name):
    need("git")
    (box.home / ".ssh").mkdir(parents=True, exist_ok=True)
    (key := box.home / ".ssh/id_rsa").write_text(f"{SECRET}\n")
    source = box.home.parent / "hostile"
    folder = bare_looking(source / "store.git")
    for kept in ("refs/.keep", "objects/.keep"):
        (folder / kept).touch()
    (folder / name).symlink_to(key)
    git(source, "init", "-q", "-b", "main", ".")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "one")
    git(box.workspace, "clone", "-q", str(source), ".")
    said = await box.bash(box.mounts(), f"cat store.git/{name}; grep -rs SECRET . ; ls store.git")
    assert SECRET not in said.stdout.text
    assert "HEAD" in said.stdout.text, "it is there, as it is"


ASKED = ("lstat", "stat", "open", "scandir", "listdir", "readlink", "rename", "replace", "unlink", "rmdir", "mkdir")
"""By these the system is asked for something that has a path; what `os.path` does goes through them as well."""


class Exchange:
    """A job that exchanges a folder for a link to a neighbour at one chosen moment of somebody else's work."""

    def __init__(self, folder: Path, neighbour: Path) -> None:
        self._folder, self._spare = str(folder), f"{folder}.spare"
        os.symlink(neighbour, self._spare)
        self._rename = os.rename
        self.asked = 0

    @contextlib.contextmanager
    def at(self, moment: int, *, is_short: bool) -> Iterator[None]:
        """From this question to the system on, or only for that one, the link is there."""
        self.asked, real = 0, {name: getattr(os, name) for name in ASKED}

        def in_between(ask: Callable[..., Any]) -> Callable[..., Any]:
            def asking(*given: Any, **more: Any) -> Any:
                self.asked += 1
                is_now = self.asked == moment
                if is_now:
                    self.take()
                try:
                    return ask(*given, **more)
                finally:
                    if is_now and is_short:
                        self.take()

            return asking

        with pytest.MonkeyPatch.context() as patch:
            for name, ask in real.items():
                patch.setattr(os, name, in_between(ask))
            yield

    def take(self) -> None:
        """Each gets the other's place."""
        between = f"{self._folder}.between"
        for old, new in ((self._folder, between), (self._spare, self._folder), (between, self._spare)):
            self._rename(old, new)


def armed(folder: Path, text: str) -> Path:
    """A git folder with something in each place that git would obey."""
    bare_looking(folder)
    for name in ("hooks", "remotes"):
        (folder / name).mkdir()
    (folder / "config").write_text(f'[core]\n\tfsmonitor = /evil\n[user]\n\tname = "{text}"\n')
    (folder / "hooks/pre-commit").write_text(text)
    (folder / "remotes/origin").write_text(text)
    (folder / "commondir").write_text("/nowhere\n")
    (folder / "objects/info/alternates").write_text(f"/real/{REAL_OBJECTS}\n/{text}\n")
    (folder / "link").symlink_to("/nowhere")
    os.mkfifo(folder / "pipe")
    return folder


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is below a folder, and when each was changed, which nobody can set."""
    paths = [os.path.join(above, name) for above, *names in os.walk(folder) for some in names for name in some]
    return {path: (facts.st_ino, facts.st_ctime_ns) for path in paths for facts in [os.lstat(path)]}


def texts_in(folder: Path) -> str:
    """All that files below a folder say, where no link leads there."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return "".join(path.read_text() for path in files if path.resolve() == path)


SCENES: dict[str, Callable[[Path], object]] = {
    "a link to nowhere": lambda folder: (folder / ".git").symlink_to("/nowhere/at/all"),
    "a repository": lambda folder: armed(folder / ".git", "own"),
    "a bare one": lambda folder: armed(folder, "own"),
    "a pointer to nowhere": lambda folder: (folder / ".git").write_text("gitdir: /nowhere/at/all\n"),
    "a pointer": lambda folder: (armed(folder / "real", "own"), (folder / ".git").write_text("gitdir: real\n")),
}


FROM = pytest.mark.parametrize("is_short", [True, False], ids=["for a moment", "from a moment on"])


def check_each_moment(
    tmp_path: Path,
    neighbour: Path,
    prepare: Callable[[Path], object],
    work: Callable[[Path], object],
    *,
    is_short: bool,
) -> int:
    """Do some work on a folder again and again: first undisturbed, then each time exchanged at another moment.

    Tells how many moments there were.
    """
    before, moment, asked = state_of(neighbour), -1, 0
    while moment < asked:
        moment += 1
        (folder := tmp_path / f"work-{moment}/folder").mkdir(parents=True)
        prepare(folder)
        exchange = Exchange(folder, neighbour)
        with exchange.at(moment, is_short=is_short):
            done = work(folder)
        asked = max(asked, exchange.asked)  # whoever is disturbed may give up early
        assert state_of(neighbour) == before, f"at moment {moment}, which did {done}"
        assert SECRET not in texts_in(folder.parent), f"at moment {moment}"
    return moment


@FROM
@pytest.mark.parametrize("scene", SCENES)
def test_at_no_moment_a_sweep_touches_or_reads_what_a_folder_is_exchanged_for(tmp_path, scene, is_short):
    def sweep(folder: Path) -> dict[str, str]:
        walk = RepositoryWalk(caches="/nowhere/caches")
        return NestedRepositories([str(folder.parent)], time.time() - 60, repositories=["/real"], walk=walk).sweep()

    (neighbour := tmp_path / "neighbour").mkdir()
    for place in (neighbour, neighbour / ".git", neighbour / "real"):
        armed(place, SECRET)
    assert check_each_moment(tmp_path, neighbour, SCENES[scene], sweep, is_short=is_short) > 20


POINTS: list[tuple[str, bytes | None]] = [
    *((".cargo", None), (".npmrc", SOCKET), ("empty", b""), ("file", b"text"), (".git", REPOSITORY)),
]


@FROM
def test_nor_does_the_removal_of_mount_points(tmp_path, is_short):
    def points(folder: Path) -> list[tuple[str, bytes | None]]:
        return [(str(folder / name), content) for name, content in POINTS]

    def prepare(folder: Path) -> None:
        assert [make(path, content) for path, content in points(folder)] == [None] * len(POINTS)

    (neighbour := tmp_path / "neighbour").mkdir()
    prepare(neighbour)
    tried = check_each_moment(
        tmp_path, neighbour, prepare, lambda folder: remove_unused(points(folder)), is_short=is_short
    )
    assert tried > 20
    remove_unused(points(neighbour))
    assert list(neighbour.iterdir()) == [], "where nobody disturbs it, all goes"


def test_a_link_or_a_pipe_in_the_place_of_a_mount_point_stays_and_holds_nobody_up(tmp_path):
    (tmp_path / "other").touch()
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git/HEAD")
    (tmp_path / "empty").symlink_to("other")
    remove_unused([(str(tmp_path / "empty"), b""), (str(tmp_path / ".git"), REPOSITORY)])
    assert (tmp_path / "empty").is_symlink()
    assert (tmp_path / ".git/HEAD").exists()


@FROM
def test_nor_does_the_removal_of_a_worktree_that_git_inside_removed(tmp_path, is_short):
    bare_looking(real := tmp_path / "real")
    (neighbour := tmp_path / "neighbour").mkdir()

    def prepare(folder: Path) -> None:
        (folder / ".git").write_text(f"gitdir: {real}/worktrees/gone\n")

    prepare(neighbour)
    tried = check_each_moment(
        tmp_path, neighbour, prepare, lambda folder: finish_removals([str(folder / ".git")]), is_short=is_short
    )
    assert tried > 5
    assert finish_removals([str(neighbour / ".git")]) == [str(neighbour)], "where nobody disturbs it"


@FROM
def test_nor_does_what_makes_a_git_folder(tmp_path, is_short):
    def work(folder: Path) -> None:
        with contextlib.suppress(OSError):
            files = GitFiles(str(folder / "deep/.git"))
            files.make_root()
            files.make_folder("objects/info")
            files.add("HEAD", b"text")

    (neighbour := tmp_path / "neighbour").mkdir()
    assert check_each_moment(tmp_path, neighbour, lambda folder: None, work, is_short=is_short) > 10
    (alone := tmp_path / "alone").mkdir()
    work(alone)
    assert (alone / "deep/.git/objects/info").is_dir()
    assert (alone / "deep/.git/HEAD").read_text() == "text"


@FROM
def test_nor_does_what_puts_a_replaced_folder_aside(tmp_path, is_short):
    def prepare(folder: Path) -> None:
        (folder / "guarded").mkdir()
        (folder / "guarded/new").write_text("new")

    def work(folder: Path) -> object:
        return put_folder_aside(str(folder / "guarded"), before)

    (neighbour := tmp_path / "neighbour").mkdir()
    prepare(neighbour)
    (tmp_path / "before").mkdir()
    before = os.open(tmp_path / "before", os.O_RDONLY)
    try:
        assert check_each_moment(tmp_path, neighbour, prepare, work, is_short=is_short) > 5
    finally:
        os.close(before)


def test_a_pointer_that_came_along_has_no_link_removed_in_the_folder_that_it_names(tmp_path):
    (work := tmp_path / "work").mkdir()
    (other := tmp_path / "other").mkdir()
    (other / "link").symlink_to("/nowhere")
    (work / ".git").write_text(f"gitdir: {other}\n")
    assert NestedRepositories([str(work)], time.time() - 60).sweep() == {}
    assert (other / "link").is_symlink()


def test_no_submodules_are_found_behind_a_link(tmp_path):
    bare_looking(tmp_path / "other/module")
    (tmp_path / "other/module/config").touch()
    (place := tmp_path / "place").mkdir()
    (place / "modules").symlink_to(tmp_path / "other")
    assert list(modules_of(str(place))) == []
    assert list(modules_of(str(tmp_path))) == []
