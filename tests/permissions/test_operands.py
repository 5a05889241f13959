"""Which words of a command are paths, in every spelling of an option, and what becomes of those."""

from __future__ import annotations

import pytest

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.presets import LOOKING, WORKING, split
from toolyard.permissions.programs.listings.find import listing_of
from toolyard.permissions.programs.operands import operands_of

LETTERS = {"read": "<", "write": ">", "run": "!"}


def shown(line: str) -> str:
    """The paths of a line, each behind a sign for its role."""
    found = operands_of(read_line(line).commands[0].words)
    assert found is not None, line
    paths = [LETTERS[path.role] + path.text for path in found.paths]
    return " ".join([*paths, *(["unknown"] if found.unknown else [])])


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        # separate, glued, in a row, with an equals sign, abbreviated, behind the end of options
        ("grep -f p x", "<p <x"),
        ("grep -fp x", "<p <x"),
        ("grep -rnfp x", "<p <x"),
        ("grep --file=p x", "<p <x"),
        ("grep --file p x", "<p <x"),
        ("grep --exclude-f=p a x", "<p <x"),
        ("grep --fil=p x", "<. unknown"),
        ("grep -e pattern x", "<x"),
        ("grep -- /pattern x", "<x"),
        ("grep /pattern x y", "<x <y"),
        ("grep -A 3 /pattern x", "<x"),
        ("grep -e -e x", "<x"),
        ("grep -f=p x", "<p <x"),
        # what could be two things, or nothing
        ("grep --exclude=a p x", "<x"),
        ("grep --exclude-=a p x", "<x unknown"),
        ("grep --no-such p x", "<x unknown"),
        ("grep -q=3 p x", "<x unknown"),
        ("grep --quiet=3 p x", "<x unknown"),
        # scripts and patterns are no paths
        ("sed -n /re/p x", "<x"),
        ("sed -e /re/p x", "<x"),
        ("sed -n -e p -- x", "<x"),
        ("awk -F/ /re/ x", "<x"),
        ("jq --arg a /b .c x", "<x"),
        ("jq --rawfile a /b .c x", "</b <x"),
        ("jq --args .a b c", "<b <c"),
        ("cut -d/ -f1 x", "<x"),
        ("tr / _", ""),
        ("sort -t/ -k2 x", "<x"),
        ("head -c 100 x", "<x"),
        ("head -5 x", "<x"),
        ("head -5c x", "<x unknown"),
        ("test -f /x", ""),
        ("date +/x", ""),
        ("rg --files src", "<src"),
        ("rg pattern", "<."),
        ("fd x src", "<src"),
        # reading, writing and running
        ("sort -uo/x y", ">/x <y"),
        ("sort --outp=x y", ">x <y"),
        ("sort --compress-prog=p y", "!p <y"),
        ("sort --files0-from=n", "<n unknown"),
        ("uniq a b", "<a >b"),
        ("xxd -ps a b", "<a >b"),
        ("xxd -c8 a b", "<a >b"),
        ("xxd -c 8 a", "<a"),
        ("tee -a x y", ">x >y"),
        ("cp a b c", "<a <b >c >c/a >c/b"),
        ("cp -t d a b", ">d <a <b >d/a >d/b"),
        ("cp --target=d a", ">d <a >d/a"),
        ("mkdir -m 700 a", ">a"),
        ("touch -r x y", "<x >y"),
        ("chmod -x a", ">a"),
        ("chmod u+x a", ">a"),
        ("dd if=a of=b bs=1", "<a >b"),
        # spellings of their own
        ("tar xzf a -C /d", "<a </d"),
        ("tar -tzf/a x", "</a"),
        ("tar tf a x", "<a"),
        ("tar cf a x", "<a <x"),
        ("tree -Lo 2 x", ">x <."),
        ("find", "<."),
        ("find a b -name /x", "<a <b"),
        ("find -L a -newer b", "<a <b"),
        ("find -D exec a -fprintf b c", "<a >b"),
        ("find a -newermt /x", "<a"),
        ("find a -exec cat /x ;", "<a"),
        ("find a -nonsense", "<a unknown"),
        ("ps axo pid", ""),
        ("env -C /x ls", "</x"),
        ("xargs -a x ls", "<x"),
        # git reads the repository of its folder, too
        ("git log --format=/x -5 -- src", "<src <."),
        ("git log --grep /x", "<."),
        ("git -C x log -S/y", "<x <."),
        ("git diff -O/x", "</x <."),
        ("git grep -f x y", "<x <y <."),
        ("git grep /x y", "<y <."),
        ("git blame -S x y", "<x <y <."),
        ("git show HEAD:/x", "<HEAD:/x <."),
        ("git log --no-such", "<. unknown"),
        ("git stash show -p", "<."),
    ],
)
def test_the_paths_of_a_command_are_found_by_the_options_of_its_program(line, paths):
    assert shown(line.replace(";", r"\;")) == paths


PROGRAMS = sorted({pattern.split()[0] for pattern in split(LOOKING) + split(WORKING) if "**" in pattern})


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_options_of_every_program_that_a_preset_allows_are_known(name):
    words = [literal_word(name), literal_word("x")]
    assert operands_of(words) is not None or listing_of(words) is not None


def test_nothing_is_said_of_a_program_that_is_not_known():
    assert operands_of(read_line("no-such-program /etc/passwd").commands[0].words) is None


@pytest.mark.parametrize(
    ("line", "is_path"),
    [
        ('grep "$x" a', True),  # it may be an option that names a file
        ('grep -e "$x" a', False),
        ('grep -m"$x" p a', False),
        ('grep --include="$x" p a', False),
        ('grep p "$x"', True),
        ('head -n "$x" a', False),
        ("grep p src/$x", True),
    ],
)
def test_a_word_that_only_bash_knows_is_a_path_where_it_may_be_one(line, is_path):
    found = operands_of(read_line(line).commands[0].words)
    assert found is not None
    assert found.unknown is None
    assert any(path.word.value is None for path in found.paths) is is_path


@pytest.mark.parametrize("line", ["grep -e $x a", "grep -f$x a", 'grep -q"$x" a', "sort $x", 'sort "$x"'])
def test_a_word_that_may_be_any_option_makes_everything_uncertain(line):
    found = operands_of(read_line(line).commands[0].words)
    assert found is not None
    assert found.unknown is not None
