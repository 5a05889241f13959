"""Walking, ignoring, matching names and searching, beside what git, grep and ripgrep find."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from support import need
from toolyard.files.workspace import listing, searching
from toolyard.files.workspace.globs import path_pattern
from toolyard.files.workspace.places import FileFault, Workspace
from toolyard.files.workspace.walking import walked

OPTIONS = {"output_mode": "content", "limit": 1000, "context": 0}
IGNORE_FILES = {
    ".gitignore": "*.log\n!keep.log\n/build\nnode_modules/\ndocs/**/draft\n**/deep/*.tmp\n\\#odd\n[ab]?.c\nspace\\ \n"
    "trail   \n!/src/ab.c\n",
    "src/.gitignore": "*.tmp\n!important.tmp\n/only-here\nsub/\n",
    "src/x/.gitignore": "!*.log\n*\n!.gitignore\n!in.py\n",
    ".git/info/exclude": "private\n*.bak\n",
}
FILES = [
    *("a.log", "keep.log", "src/a.log", "src/keep.log", "build/x", "src/build/x", "node_modules/m/i.js"),
    *("src/node_modules", "docs/draft", "docs/a/draft", "docs/a/b/draft", "docs/draft2", "x/deep/a.tmp", "deep/b.tmp"),
    *("deep/c/d.tmp", "#odd", "a1.c", "b2.c", "c3.c", "src/ab.c", "src/a2.c", "src/important.tmp", "src/other.tmp"),
    *("src/only-here", "src/y/only-here", "src/sub/f", "src/y/sub", "src/x/in.py", "src/x/out.py", "src/x/z.log"),
    *("private", "a.bak", "src/private", "trail", "größe/ü.py", ".hidden/x"),
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run([need("git"), "init", "-q", tmp_path], check=True)
    for name, text in {**dict.fromkeys(FILES, "x\n"), "space ": "x\n", **IGNORE_FILES}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def all_files(top: Path, start: str = ".", **how) -> set[str]:
    workspace = Workspace(str(top))
    with workspace.at(start) as spot:
        return {listed.path + name for listed in walked(workspace, spot, **how) for name in listed.files}


def of_git(folder: Path) -> set[str]:
    shown = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=folder, capture_output=True, check=True
    )
    return {os.fsdecode(name) for name in shown.stdout.split(b"\0") if name}


def test_what_git_ignores_is_left_out_and_nothing_else(repository: Path):
    assert all_files(repository) == of_git(repository)
    everything = {str(path.relative_to(repository)) for path in repository.rglob("*") if path.is_file()}
    assert all_files(repository, ignoring=False) == everything


@pytest.mark.parametrize("folder", ["src", "src/x", "docs"])
def test_the_rules_above_a_folder_hold_in_it(repository: Path, folder: str):
    assert all_files(repository, folder) == of_git(repository / folder)
    assert all_files(repository / folder) == of_git(repository / folder), "also where that is the workspace"


def test_no_link_is_walked_into(tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to("../outside")
    (tmp_path / "work" / "round").symlink_to(".")
    assert all_files(tmp_path / "work") == set()


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", ".py"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/d/a"], ["a", "srcs/a"]),
        ("src/**/t_*.py", ["src/t_a.py", "src/d/e/t_.py"], ["src/d/a.py"]),
        ("*.{js,ts}", ["a.js", "a.ts"], ["a.{js,ts}", "a.jsx"]),
        ("[!a-c]?.c", ["dx.c"], ["ax.c", "/x.c"]),
        ("a\\*", ["a*"], ["ab"]),
        ("{a,b}/{c,d}", ["a/c", "b/d"], ["a/b"]),
        ("[", ["["], ["a"]),
        ("z[b-a]", [], ["za", "zb"]),
    ],
)
def test_a_pattern_of_paths(pattern: str, fits: list[str], fits_not: list[str]):
    regex = path_pattern(pattern)
    assert [path for path in (*fits, *fits_not) if regex.fullmatch(path)] == fits


def test_a_pattern_with_many_braces_stays_small():
    assert len(path_pattern("{a,b}" * 40).pattern) < 1_000_000


def test_files_come_with_the_newest_first_and_their_number(tmp_path: Path):
    for age, name in enumerate(["old.py", "d/newer.py", "newest.py"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (age, age))
    workspace = Workspace(str(tmp_path))
    with workspace.at(".") as spot:
        found = listing.glob(workspace, spot, "**/*.py", {"limit": 2})
    assert found == {"lines": ["newest.py", "d/newer.py"], "more": True, "total": 3}


def search(
    top: Path,
    pattern: str,
    start: str = ".",
    *,
    literal: bool = False,
    ignore_case: bool = False,
    multiline: bool = False,
    **options,
) -> list[str]:
    query = searching.Query(pattern, ignore_case=ignore_case, literal=literal, multiline=multiline)
    workspace = Workspace(str(top))
    with workspace.at(start) as spot:
        return searching.grep(workspace, spot, query, {**OPTIONS, **options})["lines"]


TEXTS = {
    "a.py": "import os\nclass Foo:\n    def bar(self):\n        return os.name\n",
    "d/b.txt": "foo bar\n\nBAR foo\nlast line without end: foo",
    "d/c.md": "x.y\nx+y\n(a|b)\naab\n\n\n",
    "crlf.txt": "one foo\r\ntwo\r\nfoo three\r\n",
    "größe.txt": "schöne größe\n",
}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "binary").write_bytes(b"foo\0foo\n")
    return tmp_path


@pytest.mark.parametrize("how", [{}, {"ignore_case": True}, {"context": 1}, {"output_mode": "count"}], ids=str)
@pytest.mark.parametrize(
    "pattern", ["foo", r"\bfoo\b", r"^\s*def \w+", "a*b", "x.y", r"o{2}", "größe", "foo$", "^$", "(foo|bar) "]
)
def test_a_search_finds_what_grep_finds(texts: Path, pattern: str, how: dict):
    option = {"ignore_case": "-i", "context": "-C1", "output_mode": "-c"}
    argv = ["grep", "-rnIP", *(option[name] for name in how), "--", pattern, "."]
    told = subprocess.run(
        argv, cwd=texts, capture_output=True, env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    ).stdout.decode()
    lines = {line.removeprefix("./").removesuffix("\r") for line in told.splitlines()}
    if "output_mode" in how:
        lines = {line for line in lines if not line.endswith(":0")}
    found = set(search(texts, pattern, **how))
    if pattern in ("foo$", "^$"):  # where we take both ends of a line for one
        lines, found = ({line for line in some if "crlf" not in line} for some in (lines, found))
    assert found - {"--"} == lines - {"--"}


def test_what_is_searched_and_shown_can_be_narrowed(texts: Path):
    assert search(texts, "foo$", "crlf.txt") == ["crlf.txt:1:one foo"]
    assert search(texts, "foo", "d") == [
        "d/b.txt:1:foo bar",
        "d/b.txt:3:BAR foo",
        "d/b.txt:4:last line without end: foo",
    ]
    assert search(texts, "foo", "d/b.txt", output_mode="files_with_matches") == ["d/b.txt"]
    assert search(texts, "x.y", literal=True) == ["d/c.md:1:x.y"]
    assert search(texts, r"class Foo:\n.*bar", multiline=True) == ["a.py:2:class Foo:", "a.py:3:    def bar(self):"]
    assert search(texts, "foo", glob="*.txt", output_mode="files_with_matches") == ["crlf.txt", "d/b.txt"]


def test_text_in_two_bytes_a_character_is_searched_and_an_odd_name_is_quoted(tmp_path: Path):
    (tmp_path / "wide.txt").write_bytes("a\nneedle\n".encode("utf-16"))
    (tmp_path / os.fsdecode(b"odd\xff")).write_text("needle\n")
    assert search(tmp_path, "needle") == ['"odd\\377":1:needle', "wide.txt:2:needle"]


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "(?P<x"])
def test_what_is_no_expression_is_said(tmp_path: Path, pattern: str):
    with pytest.raises(FileFault, match="no regular expression"):
        search(tmp_path, pattern)


@pytest.mark.parametrize(
    "pattern", ["ab?c", "a(b)?c", "x*needle", r"\d+foo", "a|b", "[abc]def", "a{0,2}bcd", r"\w\.py", "(?i)x"]
)
def test_no_match_is_lost_by_what_every_match_must_have(pattern: str):
    required = searching.required_text(pattern, literal=False).decode()
    for text in ("ac", "abc", "needle", "xxneedle", "1foo", "a", "b", "bdef", "bcd", "aabcd", "q.py", "X"):
        if re.search(pattern, text):
            assert required in text
