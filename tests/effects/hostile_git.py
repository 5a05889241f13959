"""Repositories whose configuration, attributes, hooks and objects run something, or show what is elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effects.scene import Scene

QUIET = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
        ("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2020-01-01T00:00:00Z"))},
}  # fmt: skip
CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = @WORK@/p
	hooksPath = hooks
	pager = @WORK@/p
	editor = @WORK@/p
	sshCommand = @WORK@/p
	askPass = @WORK@/p
	alternateRefsCommand = @WORK@/p
	gitProxy = @WORK@/p
[alias]
	st = !./p
	lg = !./p
	root = !./p
[diff]
	external = @WORK@/p
[diff "evil"]
	textconv = @WORK@/p
	command = @WORK@/p
[filter "evil"]
	clean = @WORK@/p
	smudge = @WORK@/p
	process = @WORK@/p
	required = false
[merge "evil"]
	driver = @WORK@/p
[pager]
	log = @WORK@/p
	status = @WORK@/p
	diff = @WORK@/p
	show = @WORK@/p
	branch = @WORK@/p
	grep = @WORK@/p
	config = @WORK@/p
[interactive]
	diffFilter = @WORK@/p
[gpg]
	program = @WORK@/p
[gpg "ssh"]
	program = @WORK@/p
	defaultKeyCommand = @WORK@/p
[log]
	showSignature = true
[credential]
	helper = "!./p"
[trailer "sign"]
	command = @WORK@/p
	key = sign
[uploadpack]
	packObjectsHook = @WORK@/p
[sequence]
	editor = @WORK@/p
[web]
	browser = evil
[browser "evil"]
	cmd = @WORK@/p
[man]
	viewer = evil
[man "evil"]
	cmd = @WORK@/p
[help]
	autocorrect = immediate
[difftool "evil"]
	cmd = @WORK@/p
[mergetool "evil"]
	cmd = @WORK@/p
[diff]
	tool = evil
[tar "evil"]
	command = @WORK@/p
[maintenance]
	auto = true
[gc]
	auto = 1
	recentObjectsHook = @WORK@/p
[status]
	submoduleSummary = true
[remote "origin"]
	url = ext::@WORK@/p
	uploadpack = @WORK@/p
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "partial"]
	url = ext::@WORK@/p
	promisor = true
[protocol "ext"]
	allow = always
[blame]
	ignoreRevsFile = @HOME@/notes/private.txt
[mailmap]
	file = @HOME@/notes/private.txt
"""
ATTRIBUTES = "*.py diff=evil filter=evil merge=evil\n*.txt diff=evil filter=evil\n"
HOOKS = (
    *("pre-commit", "post-commit", "post-checkout", "post-index-change", "pre-push", "post-merge", "commit-msg"),
    *("fsmonitor-watchman", "pre-auto-gc", "reference-transaction", "prepare-commit-msg", "post-rewrite"),
)


def hostile_repositories(scene: Scene) -> None:
    """The workspace's own with hostile attributes, hostile ones below it, and the neighbour's."""
    repository(scene.neighbour, {"kept.txt": scene.canaries["commit"]}, scene.canaries["commit"])
    own = repository(scene.work, {}, "first", add=("README.md", "notes.txt", "src", "tests", "data.json"))
    add_history(own)
    for path in ("src/app.py", "notes.txt"):
        (scene.work / path).write_text((scene.work / path).read_text() + "changed = True\n")
    (scene.work / ".gitattributes").write_text(ATTRIBUTES)
    (scene.work / ".gitignore").write_text("repos\nsub\n*.log\n")
    below = scene.work / "repos"
    plant(scene, below / "planted")
    plant_submodule(scene, below / "parent")
    look_elsewhere(scene, below)
    scene.tokens["@COMMIT@"] = quietly("git", "-C", str(scene.neighbour), "rev-parse", "HEAD").strip()


def plant(scene: Scene, folder: Path) -> None:
    """Everything by which a repository runs something of its own."""
    planted = repository(folder, {"a.txt": "a\n", "b.py": "b\n", ".gitattributes": ATTRIBUTES}, "first")
    add_history(planted)
    (folder / "a.txt").write_text("changed\n")
    for place in ("hooks", ".git/hooks"):
        for name in HOOKS:
            hook = folder / place / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/bash\n'{scene.work}/p'\n")
            hook.chmod(0o755)
    planted.config.write_text(scene.fill(CONFIG))


def plant_submodule(scene: Scene, folder: Path) -> None:
    """A harmless repository with a hostile one in it, which git enters when it looks at the outer one."""
    inner = repository(folder / "sub", {"inner.txt": "x\n"}, "inner")
    outer = repository(folder, {"a.txt": "a\n"}, "outer", add=("sub",))
    (outer.work / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    inner.config.write_text(scene.fill(CONFIG))


def look_elsewhere(scene: Scene, below: Path) -> None:
    """Repositories that are partly those of others."""
    repository(below / "elsewhere", {"a": "a"}, "a").set("core.worktree", str(scene.neighbour))
    (below / "pointer").mkdir()
    (below / "pointer" / ".git").write_text(f"gitdir: {scene.neighbour}/.git\n")
    borrower = repository(below / "borrower", {"a": "a"}, "b")
    (borrower.folder / "objects/info/alternates").write_text(f"{scene.neighbour}/.git/objects\n")
    repository(below / "including", {"a": "a"}, "c").set("include.path", str(scene.home / "notes/private.txt"))
    repository(below / "blaming", {"a": "a"}, "f").set("blame.ignoreRevsFile", str(scene.home / "notes/private.txt"))
    common = repository(below / "common", {"a": "a"}, "d")
    (common.folder / "commondir").write_text(f"{scene.neighbour}/.git\n")
    linked = repository(below / "linked", {"a": "a"}, "e")
    (linked.folder / "logs/HEAD").unlink()
    (linked.folder / "logs/HEAD").symlink_to(scene.neighbour / ".git/logs/HEAD")
    (linked.work / ".mailmap").symlink_to(scene.neighbour / "secret.txt")
    quietly("git", "clone", "-q", "--bare", str(below / "linked"), str(below / "bare.git"))
    with (below / "bare.git" / "config").open("a") as config:
        config.write(scene.fill("[core]\n\tfsmonitor = @WORK@/p\n\tpager = @WORK@/p\n[alias]\n\tx = !@WORK@/p\n"))


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".git"
        self.config = self.folder / "config"
        self.work = folder

    def set(self, key: str, value: str) -> None:
        quietly("git", "config", "--file", str(self.config), key, value)


def repository(folder: Path, files: dict[str, str], message: str, add: tuple[str, ...] = ()) -> Repository:
    """A new one with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git = ("git", "-C", str(folder))
    quietly("git", "init", "-q", "-b", "main", str(folder))
    for name, text in files.items():
        (folder / name).write_text(text)
    quietly(*git, "add", *files, *add)
    quietly(*git, "commit", "-q", "-m", message)
    quietly(*git, "repack", "-adq")
    made = Repository(folder)
    for hook in (made.folder / "hooks").iterdir():
        hook.unlink()
    return made


def add_history(own: Repository) -> None:
    """A commit that claims to be signed, so that git asks a program whether that is so; a tag, a branch, a stash."""
    git = ("git", "-C", str(own.work))
    header = quietly(*git, "cat-file", "commit", "HEAD").partition("\n\n")[0]
    tree, *people = header.split("\n")
    parent = quietly(*git, "rev-parse", "HEAD").strip()
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----"
    text = "\n".join((tree, f"parent {parent}", *people, signature, "", "signed", ""))
    commit = subprocess.run(
        [*git, "hash-object", "-t", "commit", "-w", "--stdin"],
        input=text, capture_output=True, text=True, check=True, env=os.environ | QUIET,
    ).stdout.strip()  # fmt: skip
    quietly(*git, "update-ref", "refs/heads/main", commit)
    quietly(*git, "tag", "v1.0")
    quietly(*git, "branch", "topic")
    changed = next(path for path in (own.work / "notes.txt", own.work / "a.txt") if path.exists())
    before = changed.read_text()
    changed.write_text("stashed\n")
    quietly(*git, "stash")
    quietly(*git, "repack", "-adq")
    quietly(*git, "prune")
    changed.write_text(before)


def quietly(*argv: str) -> str:
    """Run git as nobody in particular, before anything hostile is there."""
    done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | QUIET, timeout=60)
    assert done.returncode == 0, (argv, done.stderr)
    return done.stdout
