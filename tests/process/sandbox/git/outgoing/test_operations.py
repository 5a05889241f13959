"""Files of a merge, a rebase or a bisection that waits: git outside goes on from what git writes, and from no more."""

from __future__ import annotations

import subprocess

import pytest

from support import need
from toolyard.process.sandbox.git.outgoing.operations import is_plain, refused_files
from toolyard.process.sandbox.git.travelling import travels

ID = b"1234567890123456789012345678901234567890"
FILES = {
    "MERGE_HEAD": (ID + b"\n", b"ref: refs/heads/main\n"),
    "CHERRY_PICK_HEAD": (ID + b"\n", b"zzzz\n"),
    "FETCH_HEAD": (ID + b"\tnot-for-merge\tbranch 'x' of https://example.org/x\n", b"garbage\n"),
    "BISECT_START": (b"main\n", b"-f\n"),
    "BISECT_NAMES": (b" 'a b' 'c'\n", b" $(touch x)\n"),
    "BISECT_LOG": (
        b"git bisect start '--' 'a'\n# good: [x] y\ngit bisect good " + ID + b"\n",
        b"git bisect run x; y\n",
    ),
    "SOMETHING_NEW": (None, b"x\n"),
    "rebase-merge/git-rebase-todo": (
        b"pick 1234567 x\n\n# exec x\nlabel onto\nmerge -C 1234567 other # x\nupdate-ref refs/heads/x\nbreak\n",
        b"pick 1234567 x\nexec touch x\n",
    ),
    "rebase-merge/done": (b"fixup -C 1234567 x\n", b"  x touch x\n"),
    "rebase-merge/strategy": (b"ort\n", b"../x\n"),
    "rebase-merge/strategy_opts": (b" '--ours'\n", b" '--x=$(touch x)'\n"),
    "rebase-merge/refs-to-delete": (b"refs/rewritten/x\n", b"refs/heads/main\n"),
    "rebase-merge/author-script": (
        b"GIT_AUTHOR_NAME='A '\\''B'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n",
        b"GIT_AUTHOR_NAME='A'; touch x\n",
    ),
    "rebase-merge/head-name": (b"refs/heads/a/b\n", b"refs/tags/x\n"),
    "rebase-merge/gpg_sign_opt": (None, b"-Sx\n"),
    "rebase-apply/apply-opt": (b"\n", b"--directory=..\n"),
    "sequencer/opts": (b"[options]\n\tmainline = 1\n\tedit = true\n", b"[options]\n\tstrategy = ../x\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_git_writes_is_taken_and_a_command_is_not(name):
    ours, theirs = FILES[name]
    for of in (name, f"worktrees/w/{name}"):
        assert ours is None or is_plain(of, ours)
        assert not is_plain(of, theirs)


def test_a_rebase_is_handed_over_whole_or_not_at_all():
    files = {
        "rebase-merge/onto": ID,
        "rebase-merge/done": b"exec x\n",
        "worktrees/w/rebase-merge/onto": ID,
        "index": b"",
    }
    assert refused_files(files) == {"rebase-merge/onto", "rebase-merge/done"}


START = (
    "git init -q -b main .; git config user.name a; git config user.email a@b; echo 1 > f; git add f; git commit -qm 1;"
)
FORK = (
    f"{START} git checkout -qb b; echo b > f; git commit -qam b; git checkout -q main; echo c > f; git commit -qam c;"
)
WAITING = {
    "merge": f"{FORK} git merge b",
    "rebase": f"{FORK} git rebase b",
    "rebase with more": f"{FORK} git checkout -q main; git rebase -i --autosquash -X ours --update-refs b^",
    "rebase of patches": f"{FORK} git rebase --apply b",
    "cherry-pick": f"{FORK} git cherry-pick -x b^ b",
    "revert": f"{FORK} git revert --no-edit HEAD~1",
    "bisect": f"{FORK} git bisect start HEAD HEAD~1 -- 'f' 'a b'",
    "mail": f"{FORK} git format-patch -q -1 b --stdout > x.patch; git am -3 x.patch",
    "edit": f"{FORK} GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -i HEAD~1",
}


@pytest.mark.parametrize("what", WAITING)
def test_what_git_itself_writes_is_taken(tmp_path, what):
    need("git")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(tmp_path)}
    env["GIT_SEQUENCE_EDITOR"] = env["GIT_EDITOR"] = "true"
    subprocess.run(["sh", "-c", WAITING[what]], cwd=tmp_path, capture_output=True, env=env, timeout=60)
    git = tmp_path / ".git"
    contents = {str(path.relative_to(git)): path.read_bytes() for path in git.rglob("*") if path.is_file()}
    contents = {name: data for name, data in contents.items() if travels(name)}
    assert any("HEAD" in name and name != "HEAD" for name in contents) or "BISECT_LOG" in contents
    assert refused_files(contents) == set()
