"""What a workspace hides, beside what git itself ignores, over rules of every kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import need
from toolyard.files.workspace.places import Workspace
from toolyard.files.workspace.walking import walked

NAMES = ["a", "b", "ab", "a.c", "abc", "!x", "#y", "x y", "a]", "[b]", "A", "*", "a\\b", "é", "a-c", "0", "c ", "\ta"]
SETS = [
    "[ab]",
    "[!a]",
    "[^a]",
    "[a-c]",
    "[]a]",
    "[!]]",
    "[a-]",
    "[\\]a]",
    "[b-a]",
    "[a-c-e]",
    "[--0]",
    "[é]",
    "[/]",
    "[a",
]
CLASSES = ["[[:alpha:]]", "[![:digit:]]", "[[:space:]x]", "[[:none:]]", "[[a]"]
PIECES = [
    "a",
    "b",
    "c",
    "ab",
    "é",
    ".",
    "-",
    " ",
    "\t",
    "!",
    "#",
    "*",
    "?",
    "**",
    "***",
    "/",
    "**/",
    "/**",
    "//",
    "a**",
]
ESCAPES = ["\\", "\\*", "\\a", "\\ ", "\\\\ ", "a\\  ", "{a,b}"]
RULE = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", "!", "/", "!/"]),
        st.lists(st.sampled_from(PIECES * 2 + SETS + CLASSES + ESCAPES), min_size=1, max_size=4).map("".join),
        st.sampled_from(["", "", "", "/", "  ", "\r"]),
    ),
)
RULES = st.lists(RULE, min_size=1, max_size=3).map("\n".join)
FILES = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join), min_size=5, max_size=14)
ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/"}


@pytest.fixture(scope="module")
def repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([need("git"), "init", "-q", name], env=ENVIRONMENT, check=True)
        yield Path(name)


def make(top: Path, files: list[str], rules: str, inner: str, mark: str) -> None:
    """A tree with rules at its top and in the first of its folders."""
    for entry in top.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name in files:
        try:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text("")
        except OSError:  # what is a file cannot be a folder, too
            continue
    folder = next((top / name.split("/")[0] for name in files if (top / name.split("/")[0]).is_dir()), top)
    (folder / ".gitignore").write_text(inner)
    (top / ".gitignore").write_text(mark + rules)


def seen_by_git(top: Path) -> set[str]:
    everywhere = f"core.excludesFile={top}/.git/everywhere"
    command = ["git", "-c", everywhere, "ls-files", "-oz", "--exclude-standard"]
    ran = subprocess.run(command, cwd=top, env=ENVIRONMENT, capture_output=True, check=True, timeout=60)
    return {os.fsdecode(name) for name in ran.stdout.split(b"\0") if name}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=FILES, rules=RULES, inner=RULES, mark=st.sampled_from(["", "", "\ufeff"]))
def test_what_git_ignores_is_hidden_and_nothing_else(
    repository: Path, files: list[str], rules: str, inner: str, mark: str
):
    make(repository, files, rules, inner, mark)
    assert seen_by_us(repository) == seen_by_git(repository), (rules, inner)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=FILES, rules=RULES, exclude=RULES, everywhere=RULES)
def test_what_git_ignores_in_the_repository_and_everywhere_is_hidden_and_nothing_else(
    repository: Path, files: list[str], rules: str, exclude: str, everywhere: str
):
    make(repository, files, rules, "", "")
    kept = {"info/exclude": exclude, "everywhere": everywhere}
    try:
        for name, text in kept.items():
            (repository / ".git" / name).write_text(text)
        seen = seen_by_us(repository, everywhere.encode().decode("latin-1"))
        assert seen == seen_by_git(repository), (rules, exclude, everywhere)
    finally:
        for name in kept:
            (repository / ".git" / name).unlink()


def seen_by_us(top: Path, everywhere: str = "") -> set[str]:
    workspace = Workspace(str(top), everywhere)
    with workspace.at(".") as start:
        return {listed.path + name for listed in walked(workspace, start) for name in listed.files}


def test_a_second_work_tree_has_the_rules_of_its_repository(tmp_path: Path):
    git = [need("git"), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (
        ["init", "-q", "one"],
        ["-C", "one", "commit", "-qm", "x", "--allow-empty"],
        ["-C", "one", "worktree", "add", "-q", "../two"],
    ):
        subprocess.run([*git, *command], cwd=tmp_path, env=ENVIRONMENT, check=True)
    (tmp_path / "one/.git/info/exclude").write_text("hidden\n")
    for name in ("hidden", "shown"):
        (tmp_path / "two" / name).write_text("")
    assert seen_by_us(tmp_path / "two") == {"shown"}


def test_a_folder_of_the_name_of_a_file_with_rules_is_left_closed(tmp_path: Path):
    (tmp_path / ".gitignore").mkdir()
    before = os.listdir("/proc/self/fd")
    assert seen_by_us(tmp_path) == set()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ("[b-a]\na", {"a"}),
        ("a**/b", {"ab"}),
        ("?", {"a", "0"}),
        ("[é]", set()),
        ("*\n!a", {"0", "ab", "é", ".gitignore"}),
        ("a  \n0\\ ", {"a"}),
        ("ab/", set()),
    ],
)
def test_what_is_easily_got_wrong(repository: Path, rules: str, hidden: set[str]):
    names = ["a", "ab", "0", "é"]
    make(repository, names, rules, "", "")
    assert {*names, ".gitignore"} - seen_by_git(repository) == hidden, "git itself"
    workspace = Workspace(str(repository))
    with workspace.at(".") as start:
        (top,) = [listed for listed in walked(workspace, start) if not listed.path]
    assert {*names, ".gitignore"} - {*top.files} == hidden
