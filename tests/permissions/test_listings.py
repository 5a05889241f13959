"""Calls that only list or print, of programs that also change something, and who is asked about them."""

from __future__ import annotations

import subprocess

import pytest

from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.paths import OwnFolders, is_public
from toolyard.permissions.presets import make_book
from toolyard.permissions.programs.listings.help_texts import asks_for_help
from toolyard.permissions.programs.listings.python_code import computes
from toolyard.permissions.reach import with_reach
from toolyard.permissions.rules import RuleOrigin, parse_rule
from toolyard.permissions.section import Section

pytestmark = pytest.mark.anyio

ANYWHERE = (
    *("git branch -a -vv", "git branch -r --sort=-committerdate", "git branch --format='%(refname:short)'"),
    *("git tag -n3 --sort=-creatordate", "git remote show -n origin", "git symbolic-ref --short -q HEAD"),
    *("git notes list", "git stash list --date=relative", "git submodule status --recursive", "git bisect log"),
    *("git format-patch -2 --stdout", "git archive --format=tar HEAD | tar -tf -", "git cherry -v main"),
    *("git -c color.ui=never log -2", "git -c core.pager=cat show", "git diff --no-index a.txt src/b.txt"),
    *("git range-diff main~1..main HEAD~1..HEAD", "git help -a", "git hash-object --stdin < a.txt"),
    *("umask", "ulimit -n", "jobs -l", "hash ls", "history 5", "pushd src && ls && popd"),
    *("gzip -dc a.gz | head", "xz -l a.xz", "tar -xOf a.tar x.txt", "tar -cf - src | wc -c", "lscpu", "factor 12"),
    *("less -FX a.txt", "bc <<< '2 * 21'", "iconv -f latin1 a.txt", "bash -n tool.sh", "lsof -i :80", "ss -tln"),
    *("declare -A seen; echo x", "set -x; ls; set +x", "mapfile -t rows < a.txt; echo ${#rows[@]}"),
    'hello() { echo "hi $1"; }; hello you',
    'show() { local file=$1 last=${2:-5}; sed -n "1,${last}p" "$file"; }; show a.txt 3; show src/b.txt',
    'total() { find "$1" -type f | wc -l; }; echo $(total src)',
    "bash -lc 'ls src && git status -s'",
    "sh -c 'wc -l \"$1\"' _ a.txt",
    "find src -name '*.txt' -exec sh -c 'head -1 \"$1\"' _ {} \\;",
    "fd -e txt . src -x wc -l",
    "echo $(( $(wc -l < a.txt) * 2 ))",
    "[[ $(< a.txt) == *x* ]] && echo yes",
    'from=$(grep -n x a.txt | head -1 | cut -d: -f1); sed -n "${from},$((from + 3))p" a.txt',
    "grep -rn x --include=*.{txt,md} src",
    "WIDGET=1 ls",
    'name=src/b.txt; echo "in ${name%/*}, called ${name##*/}"',
)
"""What only looks, wherever it runs."""
KEPT = (
    *("pip list", "pip show -f pytest", "npm ls --depth=0", "npm config get registry", "cargo tree --offline"),
    *("go env GOOS", "dpkg -l | head", "docker ps -a", "systemctl status", "split --help", "cargo build --help"),
    *("cat /proc/self/cgroup", "grep Cap /proc/self/status"),
    *("cat /etc/os-release", "ls /usr/bin | wc -l", "grep -c processor /proc/cpuinfo", "wc -c < /proc/version"),
    "python3 -c 'print(6 * 7)'",
    "python3 -c \"import json; print(json.load(open('a.json'))['x'])\"",
    "python3 -m json.tool a.json",
    "python3 - <<'END'\nimport collections\nprint(collections.Counter('abba'))\nEND",
)
"""What may obey files of the folder, or looks at files of the system: fine where a sandbox wholly keeps it in."""
TEMPORARY = 'out=$(mktemp); sort a.txt > "$out"; wc -l < "$out"; rm -f "$out"'
MORE_THAN_LISTS = (
    *(
        "git branch topic",
        "git branch -d topic",
        "git tag v1",
        "git remote add x y",
        "git symbolic-ref HEAD refs/heads/x",
    ),
    *("git stash", "git notes add -m x", "git format-patch -1", "git archive -o x.tar HEAD", "git apply a.patch"),
    *("git -c core.fsmonitor=./x status", "git diff --no-index a.txt /etc/passwd", "git hash-object -w a.txt"),
    *("npm test", "npm install", "npm config set x y", "pip install x", "cargo run", "go run .", "docker run x"),
    *("./tool.sh --help", "env ./tool.sh --help", "npm run x --help"),
    *("less '+!ls' a.txt", "tar -xf a.tar", "gzip a.txt", "bash -c ./tool.sh", "sh -c 'cat \"$1\"' _ /etc/passwd"),
    *("ls() { echo x; }; ls", 'f() { cat "$1"; }; f /etc/passwd'),
    *("f() { cat a.txt; }; cd /etc; f", "f() { f; }; f"),
    *("declare -n x=PATH", "declare PATH=x", "mapfile -C ls x < a.txt", "rm a.txt"),
    *("cat /etc/passwd", "ls /home", "cat /usr/../etc/passwd", "cat /proc/self/environ", "python3 tool.py"),
)


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("a.txt", "src/b.txt", "a.gz", "a.xz", "a.tar", "tool.sh", "a.patch"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "a.json").write_text('{"x": 1}')
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True, timeout=20)
    return str(tmp_path)


async def decision(line: str, workspace: str, preset: str, kept: str, *rules: object) -> str:
    found = [parse_rule(rule, "allow", RuleOrigin(label="test")) for rule in rules]
    book = make_book(Section(is_configured=True, preset=preset), found, kept=kept)
    own = OwnFolders(("/tmp",), (workspace,)) if kept == "wholly" else OwnFolders()
    where = CallSite(tool="bash", cwd=workspace, workspace=workspace, own=own)
    return with_reach(await decide_line(line, book, where), None, book.usual_reach).decision


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("line", ANYWHERE)
async def test_nobody_is_asked_about_what_only_lists(workspace, preset, line):
    assert await decision(line, workspace, preset, "not") == "allow"


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("line", KEPT)
async def test_what_obeys_the_folder_is_free_only_where_a_sandbox_wholly_holds(workspace, preset, line):
    found = [await decision(line, workspace, preset, kept) for kept in ("not", "partly", "wholly")]
    assert found == ["ask", "ask", "allow"]


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
async def test_temporary_files_of_its_own_may_be_made_and_removed(workspace, preset):
    assert await decision(TEMPORARY, workspace, preset, "wholly") == "allow"
    assert await decision(TEMPORARY, workspace, preset, "not") == "ask"


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("line", MORE_THAN_LISTS)
async def test_what_does_more_than_to_list_is_asked_about(workspace, preset, line):
    assert await decision(line, workspace, preset, "wholly") == "ask"


@pytest.mark.parametrize("name", [".npmrc", "src/.npmrc"])
async def test_settings_of_the_folder_make_a_listing_a_question(workspace, name):
    line = "cd src && npm ls"
    assert await decision(line, workspace, "read-only", "wholly") == "allow"
    with open(f"{workspace}/{name}", "w") as settings:
        settings.write("script-shell=./tool.sh\n")
    assert await decision(line, workspace, "read-only", "wholly") == "ask"


async def test_a_file_that_python_would_take_for_a_module_closes_the_look_of_its_code(workspace):
    book = make_book(Section(is_configured=True, preset="read-only"), kept="wholly")
    where = CallSite(tool="bash", cwd=workspace, workspace=workspace)

    async def reach() -> str:
        return with_reach(await decide_line("python3 -c 'print(1)'", book, where), None, book.usual_reach).reach

    assert await reach() == "look"
    with open(f"{workspace}/json.py", "w") as module:
        module.write("print('mine')\n")
    assert await reach() == "closed"


async def test_somebodys_own_rule_keeps_its_meaning(workspace):
    for line in ("git branch topic", "npm test"):
        rule = " ".join(line.split()[:2]) + " **"
        assert await decision(line, workspace, "workspace", "wholly") == "ask"
        assert await decision(line, workspace, "workspace", "wholly", rule) == "allow"


async def test_what_lists_runs_with_less_reach_and_so_does_not_go_along_with_what_writes(workspace):
    book = make_book(Section(is_configured=True, preset="workspace"), kept="wholly")
    where = CallSite(tool="bash", cwd=workspace, workspace=workspace)
    reach = {}
    for line in ("npm ls", "env npm ls", "bash -c 'npm ls'", "ls", "touch made.txt"):
        found = with_reach(await decide_line(line, book, where), None, book.usual_reach)
        reach[line] = (found.decision, found.reach)
    lowered = dict.fromkeys(("npm ls", "env npm ls", "bash -c 'npm ls'"), ("allow", "look"))
    assert reach == {**lowered, "ls": ("allow", "work"), "touch made.txt": ("allow", "work")}
    assert await decision("npm ls > made.txt", workspace, "workspace", "wholly") == "ask"
    assert await decision("npm ls && make test", workspace, "workspace", "wholly", "make test") == "ask"


async def test_who_asks_for_all_of_the_usual_reach_is_not_given_less(workspace):
    book = make_book(Section(is_configured=True, preset="workspace"), kept="wholly")
    where = CallSite(tool="bash", cwd=workspace, workspace=workspace)
    assert (await decide_line("npm ls", book.reaching("work"), where)).decision == "ask"
    assert (await decide_line("ls", book.reaching("work"), where)).decision == "allow"


@pytest.mark.parametrize(
    ("line", "is_help"),
    [
        ("split --help", True),
        ("cargo build --help", True),
        ("rustc --version --verbose", True),
        ("node -v", True),
        ("unknown -v", False),
        ("unknown build --help", False),
        ("go run x --help", False),
        ("npm exec x --help", False),
        ("env x --help", False),
        ("./x --help", False),
        ("sudo --help", False),
    ],
)
def test_which_calls_print_how_a_program_is_used(line, is_help):
    assert asks_for_help(line.split()) == is_help


@pytest.mark.parametrize(
    ("path", "public"),
    [
        ("/etc/os-release", True),
        ("/usr/bin", True),
        ("/usr/include/stdio.h", True),
        ("/etc", False),
        ("/etc/passwd", False),
        ("/usr", False),
        ("/usr/bin/../../etc/passwd", False),
        ("/proc/self/environ", False),
        ("/var/log", False),
        ("usr/bin", False),
    ],
)
def test_which_files_of_the_system_are_nobodys(path, public):
    assert is_public(path) == public


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("print(2 ** 10)", ()),
        ("import sys; print(sys.version_info[:2])", ()),
        ("import json\nfor row in open('a.jsonl'):\n    print(json.loads(row)['x'])", ("a.jsonl",)),
        ("with open('x', encoding='utf-8') as file: print(len(file.read().split()))", ("x",)),
    ],
)
def test_code_that_only_computes_is_read(code, reads):
    found = computes(code)
    assert found is not None
    assert found.reads == reads


@pytest.mark.parametrize(
    "code",
    [
        *(
            "import os",
            "import sys; sys.modules",
            "open('x', 'w')",
            "open(name)",
            "f = open; f('x')",
            "map(open, ['x'])",
        ),
        *(
            "open(*['x'])",
            "eval('1')",
            "print.__self__",
            "().__class__",
            "'{0.x}'.format(1)",
            "from json import codecs",
        ),
        *(
            "import json as open",
            "json = 1; json.load",
            "getattr(print, 'x')",
            "def open(x): pass",
            "x.y = 1",
            "import a.b",
        ),
        *("class X: pass", "async def f(): pass", "global x", "print(", "lambda: exec('x')", "[].__doc__"),
    ],
)
def test_any_other_code_is_a_question(code):
    assert computes(code) is None
