"""Links in the place of git's own files, which tools made or a workspace brought along: nobody outside follows one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from owners_git import git
from support import need
from toolyard.process.sandbox.git.guards import is_usual
from toolyard.process.sandbox.git.inside_repository import InsideRepository, PrivateGitFolder

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
