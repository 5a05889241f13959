"""Lines that nobody vouches for run unasked where there is nothing to change and nothing of others to see."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolyard.core.reach import Reach
from toolyard.core.tool import JsonInput, Plan, ToolSpec
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.grants import GrantStore
from toolyard.permissions.paths import OwnFolders
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.presets import make_book
from toolyard.permissions.reach import with_reach
from toolyard.permissions.rules import RuleOrigin, parse_rule
from toolyard.permissions.section import Section
from toolyard.permissions.verdict import PermissionRequest, Verdict

pytestmark = pytest.mark.anyio

LOOKS = (
    "make -n build",
    "ruff check --no-cache src",
    "cargo fmt --all -- --check",
    "sqlite3 :memory: < a.txt",
    "n=08; n=$((10#$n)); if (( n != 1 && n != 2 )); then echo $n; fi",
    'x=$(mktemp); trap \'rm -f "$x"\' EXIT; ls > "$x"',
    "for c in gzip xz; do $c -c < a.txt | wc -c; done",
    "time (find . | wc -l)",
    "tar -czf /tmp/a.tgz src && tar -tzf /tmp/a.tgz",
    "exec 3< a.txt; read -r x <&3; exec 3<&-; echo $x",
    "sqlite3 :memory: <<'E'\nselect 1;\nE",
    "python3 -c 'import json, yaml; print(json.load(open(\"a.json\")))'",
    "cat > /tmp/x.py <<'E'\nprint(1)\nE\npython3 /tmp/x.py",
    "readelf -h /bin/ls",
    "fd -e py -x wc -l {} \\;",
    "man -P cat git-log | head",
    "git --version --build-options",
    "sqlite3 -csv -header :memory: '.import a.txt t' 'select * from t'",
    "node -e 1",
    "node -p \"require('./a.json').x\"",
    "perl -ne print a.txt",
    "ruby -rjson -e 'puts 1'",
    "php -r 'echo 1;'",
    "python3 -c \"import os; os.listdir('/')\"",
    "python3 -c \"print(open('/etc/passwd').read())\"",
    "python3 - <<'E'\nimport pathlib\nprint(list(pathlib.Path('src').rglob('*')))\nE",
    "python3 -m zipfile -l a.zip",
    "python3 -m http.server --help",
    ". /etc/os-release; echo $NAME",
    "gawk -F, '{print $1}' a.txt",
    "git annotate a.txt",
    'f() { cat "$@"; }; f a.txt /etc/passwd',
    'f() { shift; cat "$1"; }; f a.txt a.txt',
    "shopt -s nullglob; ls *",
    "echo $(( $(cat a.txt) ))",
    'sed -n "$(cat a.txt)p" a.txt',
    "x=$(< a.txt); echo \"${x%%$'\\n'*}\"",
    "declare -i x=y",
    'git log --format=%H | while read h; do git show "$h:a.txt"; done',
    "ls | xargs -I{} sh -c 'echo {}; head -1 {}'",
    'while read -r name; do grep -rnw "$name" src; done < a.txt',
    "seq 3 | xargs -I{} sed -n '{}p' a.txt",
    "declare -A n=(); while read k; do n[$k]=$(( ${n[$k]:-0} + 1 )); done < a.txt",
    "ls -R > /tmp/found.$$",
    "PYTHONPATH=src python3 -W error -X importtime -c 'import tool'",
    "cat <<'E' | python3 -\nprint(1)\nE",
    "python3 - a.txt <<'E'\nimport sys\nE",
    "python3 -m pytest --collect-only -q",
    "python3 manage.py showmigrations --plan",
    "pytest --co -q | tail -3",
    "ruby -wc a.rb; php -l a.php",
    "gcc -fsyntax-only -Wall src/a.c",
    "gcc -E -dM -x c /dev/null",
    "cargo --version; rustc -V; mvn -v; lua -v; strace -V",
    "some-tool --version",
    "mypy src --cache-dir=/dev/null; flake8 src; python3 -m pyflakes src",
    "helm lint charts/app; helm template charts/app; poetry show --tree; bundle list",
    'sqlite3 -header a.db "SELECT 1"',
    "openssl x509 -in a.crt -noout -dates; pandoc -t plain a.md; xmlstarlet sel -t -v //version pom.xml",
    "git hash-object a.txt",
    "tox -l; nox --list; patch --dry-run -p1 < a.txt",
    "set | perl -ne print",
    "python3 -c 'import src'",
    "perl -e 'system(\"ls\")'",
    "node -e \"require('child_process').execSync('ls')\"",
    "node -r ./tool.js -e 1",
    "node -e \"require('./tool')\"",
    "ruby -r./tool -e 1",
    "python3 -c 'import tool'",
    "python3 -c \"import subprocess; subprocess.run(['ls'])\"",
    "awk '{n[$1]++} END {for (k in n) print n[k], k | \"sort -k1,1nr -u\"}' a.txt",
    "python3 -m tokenize -e src/b.txt; python3 -B -m pyclbr tool",
    "python3 -Bc 'print(open(\"a.txt\").read())'",
    "sqlite3 :memory: '.mode csv' '.import a.txt r' 'select * from r'",
    'bash -n a.sh && dash -n a.sh; for f in *.sh; do bash -n "$f"; done',
    "git clean -nd; git apply --check < a.txt",
    "git bundle create -q /tmp/all.$$ main && rm -f /tmp/all.$$",
    'git archive HEAD | tar -x -C "$(mktemp -d)"',
    "rm /tmp/found-[ab].$$; rm -rf /tmp/found.$$; mkdir -p /tmp/found-$$",
    "gcc -Wall -o /tmp/tried src/*.c; gcc -print-search-dirs; rustc -vV; gcc -E -P src/a.c",
    "xargs -a a.txt -n1 basename; env -i LANG=C sort a.txt; timeout 5 sort a.txt",
    "tee >(wc -l >&2) < a.txt | tail -1",
    "dd if=a.txt bs=64 count=1 status=none",
    "hash -r; command -v ruff",
    "cargo metadata --no-deps --offline --manifest-path src/Cargo.toml",
    "ldd tool.so",
)
WANTS_MORE = (
    "awk '{print > \"b.txt\"}' a.txt",
    "awk '{print | \"sh tool.sh\"}' a.txt; awk '{print | \"sort -no b.txt\"}' a.txt",
    "awk '\"cat tool.sh\" | getline' a.txt",
    "env sh tool.sh; timeout 5 python3 tool.py; xargs -a a.txt bash tool.sh; env -S 'sh tool.sh'",
    "python3 -m venv env; python3 -m http.server",
    "python3 -B -m tool",
    "sqlite3 :memory: '.save a.db'",
    "sh -n +n tool.sh; bash -n -c ls; bash -n $x tool.sh",
    "unzip -qo a.zip -d all; tar -xzf a.tgz -C all",
    "git clean -fd",
    "git clone . copy",
    "git bundle create all.bundle main",
    "rm /tmp/a.$$ a.txt",
    "gcc -o tried src/a.c",
    "env FOO=1 rm a.txt; timeout 5 make",
    "dd if=a.txt of=b.txt",
    "cat /proc/self/environ",
    "PATH=.:$PATH ls",
    "BASH_ENV=./tool.sh bash -c ls",
    "LD_PRELOAD=./tool.so ls",
    "make",
    "make check",
    "pytest",
    "cargo check",
    "npm run x --help",
    "rubocop -a",
    'sqlite3 a.db "DELETE FROM x"',
    "pandoc -o a.html a.md",
    "git hash-object -w a.txt",
    "perl -pi -e s/a/b/ a.txt",
    "python3 -c \"import requests; requests.get('http://x')\"",
    "ruff check --fix src",
    "terraform apply -check",
    "tar -czf a.tgz src",
    "bash tool.sh",
    "perl -i -pe s/a/b/ a.txt",
    "perl -e 'unlink \"a.txt\"'",
    "perl tool.pl",
    "node -e \"require('fs').writeFileSync('x', '')\"",
    "node tool.js",
    "python3 -m tool",
    "python3 -m zipfile -e a.zip .",
    "python3 -c \"open('x', 'w')\"",
    "curl $URL",
    "npm install $x",
    "rm $x",
    "find $x -delete",
    "sed -i $x a.txt",
    "git checkout $x",
    "git -c core.fsmonitor=./x status",
    "git push $x",
    "./tool.sh $x",
    "for PATH in .; do ls; done",
    "awk 'BEGIN { system(\"./tool.sh\") }'",
    "cat ../other/x $x",
    "ls | sh",
    "eval $x",
    "source ./tool.sh",
    "cat /proc/$PPID/environ",
    "sort $x > out.txt",
    "mkdir x && node -e 1",
    "cd / && node -e 1",
)


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("a.txt", "tool.sh", "tool.js", "tool.py", "tool.pl"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "a.json").write_text('{"x": 1}')
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True, timeout=20)
    return str(tmp_path)


async def verdict(
    line: str,
    workspace: str,
    preset: str = "read-only",
    *,
    kept: str = "wholly",
    deny: str = "",
    wanted: Reach | None = None,
) -> Verdict:
    rules = [parse_rule(deny, "deny", RuleOrigin(label="test"))] if deny else []
    book = make_book(Section(is_configured=True, preset=preset), rules, kept=kept)
    where = CallSite(tool="bash", cwd=workspace, workspace=workspace, own=OwnFolders(("/tmp",), (workspace,)))
    return with_reach(await decide_line(line, book.reaching(wanted), where), wanted, book.usual_reach)


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("line", LOOKS)
async def test_what_is_for_looking_is_not_asked_about(workspace, preset, line):
    found = await verdict(line, workspace, preset)
    assert (found.decision, found.reach) == ("allow", "closed"), found.reason


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("line", WANTS_MORE)
async def test_what_plainly_wants_more_is_asked_about(workspace, preset, line):
    assert (await verdict(line, workspace, preset)).decision == "ask"


async def test_it_needs_a_sandbox_that_wholly_holds_and_no_rule_that_has_to_be_seen_to_be_kept(workspace):
    line = "node -e 1"
    assert [(await verdict(line, workspace, kept=kept)).decision for kept in ("not", "partly")] == ["ask", "ask"]
    assert (await verdict(line, workspace, deny="rm **")).decision == "ask"


async def test_who_says_how_far_to_look_is_not_given_less(workspace):
    found = await verdict("node -e 1", workspace, wanted="look")
    assert (found.decision, found.reach) == ("ask", "look")
    found = await verdict("node -e 1", workspace, "workspace", wanted="work")
    assert (found.decision, found.reach) == ("ask", "work")


@pytest.fixture
def temporary(tmp_path_factory):
    """The folder that is `/tmp` inside."""
    folder = tmp_path_factory.mktemp("inside")
    for name in ("plain", "links"):
        (folder / name).mkdir()
    (folder / "out").write_text("x\n")
    (folder / "plain" / "file").write_text("x\n")
    (folder / "l").symlink_to("/home/other")
    (folder / "links" / "l").symlink_to("/home/other/doc.txt")
    return str(folder)


class SameForAll:
    """What the configuration says, to whichever agent."""

    def __init__(self, section: Section) -> None:
        self._section = section

    def of(self, _agent: str) -> Section:
        return self._section


async def call(
    line: str, workspace: str, temporary: str, preset: str, reach: Reach | None = None, *, allow: str = ""
) -> Verdict:
    """The verdict of a policy on a line whose temporary files are there."""
    rules = [parse_rule(allow, "allow", RuleOrigin(label="test"))] if allow else []
    section = Section(is_configured=True, preset=preset, rules=rules)
    request = PermissionRequest(
        call_id="1",
        tool=ToolSpec(name="bash", description="", input=JsonInput(schema={})),
        kind="shell_session",
        plan=Plan(arguments={"command": line}, command=line, cwd=Path(workspace), reach=reach),
        preview=nothing_to_show,
        workspace=Path(workspace),
        kept="wholly",
        temporary=("/tmp",),
        temporary_places=(temporary,),
        not_temporary=(workspace,),
    )
    return await RulePolicy(SameForAll(section), GrantStore(Path(temporary) / "none")).decide(request)


async def nothing_to_show() -> str:
    return ""


@pytest.mark.parametrize("wanted", [None, "look"])
@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize(
    "line",
    [
        *("cat /tmp/out", "cat /tmp/l", "cat /tmp/l/doc.txt", "grep -R x /tmp", "cat < /tmp/l", "cd /tmp && cat l"),
        *("cat /tmp/*", "ls /tmp", "echo x > /tmp/l", "cat a.txt > /tmp/l", "x=/tmp/l; cat $x", "cat /tmp/{l,out}"),
        *("cp a.txt /tmp/l", "x=$(cat /tmp/l)", "export OUT=$(cat /tmp/l)"),
    ],
)
async def test_lines_that_name_temporary_files_and_only_look_do_so_in_a_closed_look(
    workspace, temporary, preset, line, wanted
):
    found = await call(line, workspace, temporary, preset, wanted)
    assert (found.decision, found.reach) == ("allow", "closed"), found.reason


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("cp /tmp/out copy.txt", "allow"),
        ("cp /tmp/plain/file copy.txt", "allow"),
        ("cp -r /tmp/plain copies", "allow"),
        ("mkdir x && cat /tmp/out", "allow"),
        ("OUT=/tmp/out", "allow"),
        ("export OUT=/tmp/out", "allow"),
        ("mkdir x && export OUT=$(cat /tmp/out)", "allow"),
        ("mkdir x && export OUT=$(cat /tmp/l)", "ask"),
        ("make > /tmp/new; cat /tmp/new", "allow"),
        ("cp /tmp/l copy.txt", "ask"),
        ("cp /tmp/l/doc.txt copy.txt", "ask"),
        ("cp /tmp/links/* .", "ask"),
        ("cp -rL /tmp/links copies", "ask"),
        ("mkdir x && cat /tmp/l", "ask"),
        ("mkdir x && cat < /tmp/links/l", "ask"),
        ("mkdir x; echo y > /tmp/l", "ask"),
        ("make > /tmp/new; cat /tmp/links/*", "ask"),
    ],
)
async def test_a_line_that_needs_more_and_names_a_link_among_temporary_files_is_asked_about(
    workspace, temporary, line, decision
):
    found = await call(line, workspace, temporary, "workspace", allow="make")
    assert found.decision == decision, found.reason
    assert found.reach == "work"


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize(
    "line",
    [
        "cp -r src /tmp/copy && sed -i s/a/b/ /tmp/copy/*.txt && diff -r src /tmp/copy; perl -ne print a.txt",
        "mkdir -p /tmp/all && unzip -qo a.zip -d /tmp/all; tar -xzf a.tgz -C /tmp/all; ls /tmp/all",
    ],
)
async def test_a_line_that_changes_only_temporary_files_looks_closed_as_a_whole(workspace, temporary, preset, line):
    found = await call(line, workspace, temporary, preset)
    assert (found.decision, found.reach) == ("allow", "closed"), found.reason


async def test_what_a_preset_lets_look_goes_along(workspace):
    found = await verdict("npm ls | perl -ne print", workspace, "workspace")
    assert (found.decision, found.reach) == ("allow", "closed")
