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
from toolyard.process.sandbox.git.guards import is_usual
from toolyard.process.sandbox.git.inside_repository import REAL_OBJECTS, InsideRepository, PrivateGitFolder
from toolyard.process.sandbox.git.nested import NestedRepositories
from toolyard.process.sandbox.git.repository_walk import RepositoryWalk

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


@pytest.mark.parametrize("is_short", [True, False], ids=["for a moment", "from a moment on"])
@pytest.mark.parametrize("scene", SCENES)
def test_at_no_moment_a_sweep_touches_or_reads_what_a_folder_is_exchanged_for(tmp_path, scene, is_short):
    (neighbour := tmp_path / "neighbour").mkdir()
    for place in (neighbour, neighbour / ".git", neighbour / "real"):
        armed(place, SECRET)
    before, moment, asked = state_of(neighbour), 0, 1
    while moment < asked:
        moment += 1
        (folder := tmp_path / f"work-{moment}/folder").mkdir(parents=True)
        SCENES[scene](folder)
        exchange = Exchange(folder, neighbour)
        walk = RepositoryWalk(caches="/nowhere/caches")
        nested = NestedRepositories([str(folder.parent)], time.time() - 60, repositories=["/real"], walk=walk)
        with exchange.at(moment, is_short=is_short):
            moved = nested.sweep()
        asked = exchange.asked
        assert state_of(neighbour) == before, f"at moment {moment}, which moved {moved}"
        assert SECRET not in texts_in(folder.parent), f"at moment {moment}"
    assert moment > 20, "or hardly anything was tried"
