"""The guards against the programs themselves: every row of options and every script that a guard lets pass is run."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import need
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.judge import judge_line
from toolyard.permissions.programs.awk_sed_jq import awk_concern, jq_concern, sed_concern
from toolyard.permissions.rules import RuleBook, RuleOrigin, parse_rule

PATIENCE = 20
WORDS = {
    "sort": """
        -o marker -omarker --output=marker --output --outp=marker --o x -k 1 -k1 -k -t : -t -- -S 1M --parallel=2
        --compress-program=./p --compress-program -r -n -u -z -c --check --files0-from=n --sort=n - -uo -no -to -ko
        --key
    """,
    "uniq": """
        -c -d -D -u -i -f 1 -f1 -s 1 -w 2 --skip-fields=1 --skip-fields --group --all-repeated -z -- x y marker -
        -cf
    """,
    "find": """
        . x -name a -exec touch marker {} ; + -execdir -ok -delete -fprint marker -fprintf %p -fls -print -ls -type
        f -maxdepth 1 -o ! ( ) -prune -printf -path -newer -size +1 -perm -u+x -files0-from n -H -empty ls cat
    """,
    "xargs": """
        -n 1 -n1 -I {} -I% % -i -0 -r -P 2 -L 1 -l -d , -E x -e -a n --arg-file=n --arg-file --arg-f --max-args=1
        --max-args --max-lines --replace --replace=% --delimiter=, --eof --null -x -s 100 ls cat touch marker echo
        env sh -c --
    """,
    "env": """
        -i - -u A A=1 LC_ALL=C PATH=. -C . --chdir=. -S ls touch marker ls cat -- --unset=A -v --split-string=ls
        nice
    """,
    "timeout": """
        -k 1 --kill-after=1 -s KILL -s9 --signal=9 --signal -v --foreground --pres 5 1s -- ls cat touch marker sh -c
    """,
    "nice": "-n 5 -n5 -5 --adjustment=5 --adjustment --adj=5 -- ls cat touch marker 5",
    "tar": """
        -t -f a.tar tf tvf cf xf -c -x -r -u --list --create --extract --file=a.tar --file -I ./p
        --use-compress-program=./p --use-comp --to-command=./p -F --checkpoint=1 --checkpoint-action=exec=./p -O
        --index-file=marker --occurrence -T n -X n -C . -v -b 1 marker x -M -K -g --listed-incremental=marker -d -h
        tIf
    """,
    "tee": "-a -i -p -- marker x /dev/null - --append --output-error",
    "sed": """
        -n -e p -ep --expression=p --expression -i -i.b --in-place -E -s -l 5 -f s.sed --file=s.sed -- 1p x y -ne
        -ni -en
    """,
    "awk": "-F : -F: -v x=1 -f s.awk -fs.awk -W exec -- {print} 1 x y -e -i -E --exec -Wexec=s.awk",
    "openssl": """
        version dgst -sha256 x -out marker -out=marker --out marker rand 4 -hex -writerand marker enc -base64 -in genrsa
        -engine ./p x509 -noout -text list -commands prime 7 -provider ./p pkey -keyout marker s_client req -config x
    """,
    "patch": "-p0 -i x -o marker -e --ed -r marker --dry-run --output=marker -omarker --rej=marker -R x y",
    "dd": "if=x of=marker bs=1 count=1 status=none of=/dev/null conv=notrunc",
    "shuf": "-n 1 -e -i 1-3 -o marker --output=marker -z x -omarker -eo -no",
    "split": "-n 2 -b 1 x marker --filter=./p --filter ./p",
    "printf": "-v x %s %d %n a -- %% -vx a[$(touch${IFS}marker)]",
    "test": "-v x a[$(touch${IFS}marker)] -f -n -z = != -eq 1 ! -a -o ( ) -R",
}
SED = [
    *"sy/,|#\\\n;{}pdnNgGhxq12$!&[]^* 5=lDPzFQMm",
    *(
        "e touch marker",
        "w marker",
        "W marker",
        "e",
        "w",
        "a\\\n",
        "b",
        "t",
        ":a",
        "ba",
        "[/]",
        "0~2",
        "gI",
        "\\%",
        "%",
    ),
    *("s/a/b/", "y/a/b/", "/a/", "1,2", "s,a,b,", "p;"),
    *(
        "s/[/]a/",
        "s/[^/]*/",
        "s/[]/]/",
        "s/[\\]/",
        "s/[[:alpha:]/]/",
        "/[/]a/",
        "y/[/]/",
        "/e",
        "/w marker",
        "t\n",
        "b\n",
    ),
]
AWK = [
    *'{}()/><|;\n,+-*%=~!12 []?:@$^#\\"x',
    *(
        "print",
        "printf",
        "$1",
        "NR",
        "||",
        "&&",
        "/a/",
        '/"/',
        '"a"',
        '"marker"',
        '"touch marker"',
        "system",
        ">>",
        "++",
    ),
    *(
        'system("touch marker")',
        "getline",
        "BEGIN",
        "if",
        "else",
        "in",
        "length",
        "return",
        "\\\n",
        "1system(",
        "/[/]/",
    ),
    *("{print ", "{printf ", "BEGIN{", ' | "touch marker"', "function f(x)"),
]
JQ = [
    *'.|[](){},:;?"$#\n\\ @1',
    *(
        "env",
        "ENV",
        "$ENV",
        "$ ENV",
        "$#\nENV",
        ".env",
        "\\(",
        '"\\(env)"',
        "{env",
        "env:",
        "as $x",
        "if",
        "then",
        "end",
    ),
    *(
        "def f:",
        "f",
        "..",
        "and",
        "//",
        '{"a":',
        "reduce",
        "input",
        "#c\n",
        '"a"',
        ".a",
        "$env",
        "{$ENV}",
        "[env]",
        "(env)",
    ),
]
BOOK = RuleBook(
    [parse_rule(f"{name} **", "allow", RuleOrigin(label="test")) for name in [*WORDS, "ls", "cat", "echo"]],
)
# The same lines each time: what a new one finds belongs into the corpus.
STEADY = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with files whose names are in the words above; whatever runs a program or writes a file shows in it."""
    folder = tmp_path_factory.mktemp("guards")
    (folder / "x").write_text("a b\nx y\n1 2\n")
    (folder / "y").write_text("a\nb\n")
    (folder / "n").write_text("x\n--checkpoint-action=exec=./p\n")
    (folder / "s.sed").write_text("w marker\n")
    (folder / "s.awk").write_text('BEGIN { system("touch marker") }\n')
    (folder / "p").write_text(f"#!/bin/sh\ntouch {folder}/marker\nexec cat\n")
    (folder / "p").chmod(0o755)
    subprocess.run([need("tar"), "cf", "a.tar", "x", "y"], cwd=folder, check=True)
    return folder


def check_harmless(argv: list[str], folder: Path) -> None:
    """Run it, and see that nothing was written."""
    before = sorted(os.listdir(folder))
    command = ["timeout", "-s", "KILL", str(PATIENCE), *argv]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(command, cwd=folder, env=env, input=b"x\nmarker\n", capture_output=True)
    assert sorted(os.listdir(folder)) == before, argv


@pytest.mark.parametrize("program", WORDS)
def test_options_that_a_guard_lets_pass_run_and_write_nothing(folder, program):
    @settings(STEADY, max_examples=120)
    @given(words=st.lists(st.sampled_from(WORDS[program].split()), max_size=6))
    def try_out(words):
        line = shlex.join([program, *words])
        if judge_line(line, BOOK, CallSite(tool="bash", cwd=str(folder), workspace=str(folder))).decision == "allow":
            check_harmless(["bash", "--norc", "-c", "--", line], folder)

    try_out()


@settings(STEADY, max_examples=600)
@given(pieces=st.lists(st.sampled_from(SED), max_size=8))
def test_scripts_of_sed_that_pass_run_and_write_nothing(folder, pieces):
    script = "".join(pieces)
    if sed_concern(script) is None:
        check_harmless(["sed", script, "x"], folder)


@settings(STEADY, max_examples=600)
@given(pieces=st.lists(st.sampled_from(AWK), max_size=8), end=st.sampled_from(["", "}", "\n}"]))
def test_programs_of_awk_that_pass_run_and_write_nothing(folder, pieces, end):
    program = "".join(pieces) + end
    if awk_concern(program) is None:
        check_harmless(["awk", program, "x"], folder)


@settings(STEADY, max_examples=600)
@given(pieces=st.lists(st.sampled_from(JQ), max_size=8))
def test_programs_of_jq_that_pass_show_no_variable_of_the_environment(folder, pieces):
    program = "".join(pieces)
    if jq_concern(program) is None:
        env = {"PATH": os.environ["PATH"], "SECRET": "only in the environment"}
        command = ["timeout", "-s", "KILL", str(PATIENCE), need("jq"), "-n", program]
        shown = subprocess.run(command, cwd=folder, env=env, input=b"1\n", capture_output=True).stdout
        assert b"only in the environment" not in shown, program


@pytest.mark.parametrize(
    ("script", "is_harmless"),
    [
        ("s/[/]x/y/", True),
        ("s/[^/]*$//", True),
        ("s,/[^/]*$,,", True),
        ("/[/]x/p", True),
        ("1p\n3p", True),
        (":a;N;$!ba;s/\\n/ /g", True),
        ("s/[/]x/y/e", False),
        ("s/[/]x/y/w f", False),
        ("s/[/x/w f", False),
        ("s/[\\]/x/e", False),
        ("s/[]/]/x/e", False),
        ("s/[[:alpha:]/]/x/e", False),
        ("y/[/]/ab/;e x", False),
        ("/[/]/e x", False),
        ("t\ne", False),
        ("b\nw f", False),
        ("a\\\ns/x/y\ne x", False),
        ("s/a\n/b/", False),
        ("r f", False),
        ("R f", False),
        ("W f", False),
    ],
)
def test_what_the_guard_of_sed_makes_of_a_script(script, is_harmless):
    assert (sed_concern(script) is None) is is_harmless


@pytest.mark.parametrize(
    ("program", "is_harmless"),
    [
        (".env", True),
        (".env.x", True),
        ('.["env"]', True),
        ("{env}", True),
        ("{env: .env, import: 1}", True),
        ("[.[] | {name, env}]", True),
        ('"env"', True),
        ('"\\(.env)"', True),
        ("$env", True),
        ("env", False),
        ("$ENV", False),
        ("$ ENV", False),
        ("$#\nENV", False),
        ('"\\(env)"', False),
        ('"\\("\\($ENV)")"', False),
        ("{a: env}", False),
        ("{(env.x): 1}", False),
        ("{a: [1, env]}", False),
        (".. | env", False),
        (". env", False),
        ('include "x"; .', False),
        ('"', False),
    ],
)
def test_what_the_guard_of_jq_makes_of_a_program(program, is_harmless):
    assert (jq_concern(program) is None) is is_harmless


@pytest.mark.parametrize(
    ("program", "is_harmless"),
    [
        ("{print $1}", True),
        ("$1 > 5", True),
        ("/a|b/", True),
        ('{print > "x"}', False),
        ('{printf "%s",\n$1 > "x"}', False),
        ('{print 1system("x")}', False),
        ('BEGIN{if(1) /"/; system("x"); /"/}', False),
        ("{s += $1} END {print s / NR}", True),
    ],
)
def test_what_the_guard_of_awk_makes_of_a_program(program, is_harmless):
    assert (awk_concern(program) is None) is is_harmless
