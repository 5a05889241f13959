"""What is known of words with variables, output and folders in them, and what is not."""

from __future__ import annotations

import pytest

from judged_workspace import lead_astray, make_workspace
from toolyard.bash.syntax.parse import read_line
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.expansion.shell_state import FRESH, ShellFacts


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    where = make_workspace(tmp_path_factory.mktemp("lines"))
    lead_astray(where)
    return where


def words(line, where, shell=FRESH):
    commands = ExpandedLine(read_line(line), str(where), str(where), shell).reading().commands
    (cat,) = (command for command in commands if command.name == "cat")
    return cat.words[1:]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("x=a; cat $x", ["a"]),
        ("x='a b'; cat $x", ["a", "b"]),
        ("x='a b'; cat \"$x\"", ["a b"]),
        ("x=; cat $x y", ["y"]),
        ('x=; cat "$x"', [""]),
        ("x=src; cat $x/*.txt", ["src/notes.txt"]),
        ("x='src/*.txt'; cat $x", ["src/notes.txt"]),
        ("x='src/*.txt'; cat \"$x\"", ["src/*.txt"]),
        ("x=$(echo a b); cat $x", ["a", "b"]),
        ("x=$(timeout 5 echo a); cat $x", None),
        ("cat x$(ls '')", ["x"]),
        ("x=src/app.py; cat ${x%.py}.txt", ["src/app.txt"]),
        ("x=src/app.py; cat ${x##*/}", ["app.py"]),
        ("x=$(basename src/app.py .py); cat $x", ["app"]),
        ("x=$(dirname src/app.py); cat $x/app.py", ["src/app.py"]),
        ("read x <<< a; cat $x", ["a"]),
        ("cat {a,b}$((1))", None),
        ("for f in a; do cat $f; done", ["a"]),
        ("export X=a; cat $X", ["a"]),
        ("x=a; x=b; cat $x", None),
        ("x=$(cat $x)", None),
        ("for x in a $(cat $x); do :; done", None),
        ("x=a; if true; then x=b; fi; cat $x", None),
        ("x=a | cat $x", None),
        ("ls | { x=a; cat $x; }", ["a"]),
        ("if true; then x=a; cat $x; fi", ["a"]),
        ("if x=a; then cat $x; fi", ["a"]),
        ("if true; then x=a; else cat $x; fi", None),
        ("if true; then x=a; elif true; then cat $x; fi", None),
        ("case y in a) x=a;; *) cat $x;; esac", None),
        ("true && x=a && cat $x", ["a"]),
        ("x=a && ls && cat $x", ["a"]),
        ("true && x=a; cat $x", None),
        ("true || x=a && cat $x", None),
        ("true || x=a; cat $x", None),
        ("x=a & cat $x", None),
        ("while true; do x=a; break; done; cat $x", None),
        ("while x=a; do cat $x; done", ["a"]),
        ("until cat $x; do x=a; done", None),
        ("f() { x=a; }; cat $x", None),
        ("cat $x; x=a", None),
        ("(x=a); cat $x", None),
        ("x=a; eval y; cat $x", None),
        ("x=a; read x; cat $x", None),
        ("x=a; x+=b; cat $x", None),
        ("x=$y; y=$x; cat $x", None),
        ("IFS=,; x=a,b; cat $x", None),
        ("for f in a b; do cat $f; done", None),
    ],
)
def test_a_word_is_certain_when_nothing_else_can_stand_there(workspace, line, values):
    found = [word.value for word in words(line, workspace)]
    assert (found if None not in found else None) == values


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("for f in README.md src/app.py; do cat $f; done", True),
        ("for f in README.md /etc/passwd; do cat $f; done", False),
        ("for f in src/*.py; do cat $f; done", True),
        ('for f in "a b" c; do cat "$f"; done', True),
        ('for f in "a b" c; do cat $f; done', False),
        ('for f in "a*" c; do cat $f; done', False),
        ("for f in a b; do cat src/$f; done", True),
        ("for f in a b; do cat ../$f; done", False),
        ("for f in a b; do cat /$f; done", False),
        ("for f in a b; do cat $f/../..; done", False),
        ("for f in ./a ./b; do cat .$f; done", False),
        ("for f in a b; do cat x.$f; done", True),
        ("for f in src/a src/b; do cat ${f%/*}; done", True),
        ("for f in src/a src/b; do cat ${f#src}; done", False),
        ("for f in src/a src/b; do cat ${f#*/}; done", True),
        ("cat $(seq 3)", True),
        ("cat $(find src)", True),
        ("cat $(find src | head -3)", True),
        ("cat $(find src | sed s/x/y/)", False),
        ("cat $(find /etc)", False),
        ("cat $(find src -printf %p)", False),
        ("cat $(git rev-parse HEAD)", True),
        ("cat $(git rev-parse --git-dir)", False),
        ("cat $(git rev-parse /etc/passwd)", False),
        ("cat $(curl x)", False),
        ("cat $?", True),
        ("cat $y", False),
        ("cat $((1 + 2))", True),
        ('find src | while read f; do cat "$f"; done', True),
        ('while read f; do cat "$f"; done < <(find src)', True),
        ('while read f; do cat "$f"; done < README.md', False),
        ('find src | while read f g; do cat "$f"; done', False),
    ],
)
def test_a_word_stays_inside_when_everything_it_becomes_does(clean, line, inside):
    assert all(word.inside or word.value is not None for word in words(line, clean)) is inside


def test_of_texts_that_are_all_known_each_is_looked_at(workspace):
    (workspace / "src/out.py").symlink_to("/etc/passwd")
    assert all(word.inside for word in words("for f in a b; do cat src/$f.py; done", workspace))
    assert not any(word.inside for word in words("for f in a out; do cat src/$f.py; done", workspace))
    (word,) = words("for f in src/a.py src/b.py; do cat ${f%.py}.txt; done", workspace)
    assert word.texts == ("src/a.txt", "src/b.txt")


@pytest.mark.parametrize(
    "line",
    [
        'for f in *.py; do cat "$f"; done',
        'find src | while read f; do cat "$f.x"; done',
        "cat $(git ls-files -o)",
        "cat $(find .)",
        "cat $(ls src)",
        'for f in src/*; do b=$(basename "$f"); cat "$b"; done',
    ],
)
def test_a_link_that_leads_out_makes_names_uncertain_that_could_be_its(workspace, clean, line):
    assert not any(word.inside for word in words(line, workspace))
    assert all(word.inside for word in words(line, clean) if word.value is None)


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("cat x", {"."}),
        ("cd src; cat x", {"src"}),
        ("cd src && cat x", {"src"}),
        ("cd src; cd ..; cat x", {"."}),
        ("cd docs && cd api && cat x", {"docs", "docs/api"}),
        ("cd src; cd - ; cat x", {".", "src"}),
        ("cd nothing; cat x", {".", "nothing"}),
        ("(cd src); cat x", {".", "src"}),
        ("true && cd src; cat x", {".", "src"}),
        ("cd src | cat x", {".", "src"}),
        ("for d in src docs; do cd $d; cat x; done", {".", "src", "docs"}),
        ("d=src; cd $d; cat x", {"src"}),
        ("cd $(pwd); cat x", {"."}),
        ("cd $y; cat x", None),
        ("cd; cat x", None),
        ("cd -; cat x", None),
        ("cd -P src; cat x", None),
        ("CDPATH=/; cd src; cat x", None),
        ("CDPATH=/ cd src; cat x", None),
        ("for i in 1 2 3; do cd x/..; cd ..; cat x; done", None),
    ],
)
def test_cd_is_followed_as_far_as_it_is_certain(workspace, line, folders):
    expanded = ExpandedLine(read_line(line), str(workspace), str(workspace), FRESH)
    where = expanded.where(line.rindex("cat x"))
    found = {folder.removeprefix(str(workspace)).lstrip("/") or "." for folder in where.folders}
    assert (found if where.certain else None) == folders


def test_a_shell_that_splits_or_matches_otherwise_makes_words_uncertain(workspace):
    odd = ShellFacts(variables=frozenset({"IFS"}))
    assert [word.value for word in words("x=a; cat $x", workspace, odd)] == [None]
    odd = ShellFacts(globs_oddly=True)
    (found,) = words("cat src/*.txt", workspace, odd)
    assert (found.value, found.inside) == (None, False)
    odd = ShellFacts(odd_variables=frozenset({"x"}))
    assert [word.value for word in words("x=a; cat $x", workspace, odd)] == [None]


def test_many_files_are_told_as_one_word_that_holds_for_all(tmp_path):
    for number in range(100):
        (tmp_path / f"file{number}").touch()
    (found,) = words("cat *", tmp_path)
    assert (found.value, found.inside, found.may_be_option) == (None, True, False)
    (tmp_path / "-o").touch()
    (found,) = words("cat *", tmp_path)
    assert found.may_be_option
    (tmp_path / "file1").unlink()
    (tmp_path / "file1").symlink_to("/etc/passwd")
    (found,) = words("cat *", tmp_path)
    assert not found.inside


@pytest.mark.parametrize("name", ["a\nb", "a ", "a .. b"])
def test_names_that_would_be_read_as_others_are_not_inside(tmp_path, name):
    (tmp_path / "src" / name).mkdir(parents=True)
    (found,) = words('find src | while read f; do cat "$f"; done', tmp_path)
    assert not found.inside


def test_a_chain_of_variables_takes_no_time_without_end(tmp_path):
    line = ";".join(["x0=a", *(f"x{at}=$x{at - 1}$x{at - 1}" for at in range(1, 150)), "cat $x149"])
    assert [word.value for word in words(line, tmp_path)] == [None]
