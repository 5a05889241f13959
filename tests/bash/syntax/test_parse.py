"""A line is taken apart as bash would, and what cannot be proven is said."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolyard.bash.syntax.parse import LONGEST, read_line
from toolyard.bash.syntax.reading import Assignment, Condition, Loop, Redirection
from toolyard.bash.syntax.words import Misread, decode_ansi_c
from toolyard.core.visible_text import escaped, hidden_characters


def commands(line: str) -> list[list[str]]:
    return [
        [word.value if word.value is not None else f"<{word.kind}>" for word in command.words]
        for command in read_line(line).commands
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("cd x && git push", [["cd", "x"], ["git", "push"]]),
        ('echo "$(rm b)"', [["echo", "<dynamic>"], ["rm", "b"]]),
        ("ls 'a;b'", [["ls", "a;b"]]),
        ("ls \"\" ''", [["ls", "", ""]]),
        ("timeout -s", [["timeout", "-s"]]),
        ("nice -n", [["nice", "-n"]]),
        ("timeout -s 9 5 ls", [["ls"]]),
        ("a | b |& c", [["a"], ["b"], ["c"]]),
        ("a & b", [["a"], ["b"]]),
        ("! a", [["a"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done", [["a"], ["b"]]),
        ("for i in 1 2; do echo $i; done", [["echo", "<dynamic>"]]),
        ("case x in a) b;; *) c;; esac", [["b"], ["c"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("{ a; b; }", [["a"], ["b"]]),
        ("a <(b) | c", [["a", "<dynamic>"], ["b"], ["c"]]),
        ("a `b`", [["a", "<dynamic>"], ["b"]]),
        ("ls *.py", [["ls", "<glob>"]]),
        ("ls {a,b} x{1..3}", [["ls", "<glob>", "<glob>"]]),
        ("ls {} {a}", [["ls", "{}", "{a}"]]),
        ('ls $x "$y" ~/z', [["ls", "<dynamic>", "<dynamic>", "<dynamic>"]]),
        ("l\\s 'a'\"b\"c", [["ls", "abc"]]),
        ("echo $'a\\tb'", [["echo", "a\tb"]]),
        ("echo \"a\\\"b\" 'it'\\''s'", [["echo", 'a"b', "it's"]]),
        ('echo "line\\\nbreak"', [["echo", "linebreak"]]),
        ("ls >x -la", [["ls", "-la"]]),
        ("time -p ls", [["ls"]]),
        ("timeout -k 1 5 nice -n 3 ls -l", [["ls", "-l"]]),
        ("# only\nls # and this", [["ls"]]),
        ("[ -f x ]", [["[", "-f", "x", "]"]]),
    ],
)
def test_a_line_is_the_simple_commands_in_it(line, expected):
    assert commands(line) == expected
    assert not read_line(line).doubts


def test_wrappers_stay_to_be_seen():
    (command,) = read_line("timeout 5 nice ls -l").commands
    assert [[word.text for word in words] for words in command.wrapped] == [
        ["timeout", "5", "nice", "ls", "-l"],
        ["nice", "ls", "-l"],
    ]


def test_redirections_assignments_conditions_and_loops_are_parts():
    reading = read_line("A=1 ls 2>&1 >out; B=2; [[ -f x ]] && for f in a b; do cat <<'E'\nbody $x\nE\ndone > log")
    command = reading.commands[0]
    assert [(part.name, part.value.value) for part in command.assignments] == [("A", "1")]
    assert [(part.descriptor, part.operator, part.target.value) for part in command.redirections] == [
        ("2", ">&", "1"),
        ("", ">", "out"),
    ]
    assert [part.name for part in reading.parts if isinstance(part, Assignment)] == ["B"]
    assert [part.text for part in reading.parts if isinstance(part, Condition)] == ["[[ -f x ]]"]
    assert [part.name for part in reading.parts if isinstance(part, Loop)] == ["f"]
    assert [part.text for part in reading.parts if isinstance(part, Redirection)] == ["> log"]
    (document,) = reading.commands[1].redirections
    assert (document.body, document.is_literal) == ("body $x", True)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ls '", "syntax"),
        ("ls (", "syntax"),
        ("", "empty"),
        ("# only a comment", "empty"),
        ("ls\u200b", "hidden"),
        ("ls \x1b[2J", "hidden"),
        ("a() { ls; }", "function"),
        ("export 'A[1]=2'", "misread"),
        ("for ((;;)) do ls; done", "endless"),
        ("(( x[1] ))", "misread"),
        ("coproc ls", "keyword"),
        ("echo ${x@P}", "word"),
        ("echo ${x[y]}", "word"),
        ("echo ${x:y:1}", "word"),
        ("echo $((x[1]))", "word"),
        ("ls {fd}>x", "word"),
        ("cat <<E\n$(id)\nE", "misread"),
        ("ls a\\\nb", "misread"),
        ("ls;" * 60, "too_many"),
        ("echo " + "x" * LONGEST, "too_long"),
        ("echo " + "$(" * 130 + "ls" + ")" * 130, "too_deep"),
        ("|" * 2000, "too_long"),
        ("echo {1..99999999}", "word"),
    ],
)
def test_what_cannot_be_proven_is_a_doubt(line, code):
    assert code in [doubt.code for doubt in read_line(line).doubts]


@pytest.mark.parametrize(
    "line", ["rm x; (", "f() { rm x; }", "export A=$(rm x)", "echo ${x:-$(rm y)}", "rm ${x@P}", "rm x >&"]
)
def test_commands_inside_what_is_doubtful_are_found_even_so(line):
    assert "rm" in [command.name for command in read_line(line).commands]


CHARACTERS = [*"ls aexw$(){}[]<>|&;'\"`\\\n\t#!*?~=-1/:@%^,.", "\0", "\u202e", "é", "\ud800"]
AWKWARD = st.text(alphabet=st.sampled_from(CHARACTERS), max_size=200)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(AWKWARD, st.text(max_size=100)))
def test_no_text_makes_the_reader_raise(text):
    reading = read_line(text)
    assert reading.parts or reading.doubts
    assert escaped(text) is not None


@pytest.mark.parametrize("character", ["\U0001d231", "\U000aa5c2", "\U0010ffff", "\u9999", "\u0130"])
@pytest.mark.parametrize("form", ["a{%s", "a:{%s}", "echo {%s,b}", "echo {1..%s}", "echo ${%s}", "{%s<<%s"])
def test_characters_beyond_latin_1_do_not_break_the_grammar(character, form):
    text = form.replace("%s", character)
    reading = read_line(text)
    assert all(part.text in text for part in reading.parts)


def test_a_word_beside_braces_keeps_its_characters():
    (command,) = read_line("echo '日本 😀' ${x}y").parts
    assert command.words[1].text == "'日本 😀'"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"$'a\tb'", "a\tb"),
        (r"$'\x41\102\u0043'", "ABC"),
        (r"$'it\'s'", "it's"),
        (r"$'\\\e'", "\\\x1b"),
        (r"$'\q'", r"\q"),
    ],
)
def test_ansi_strings_are_decoded_as_bash_does(text, value):
    assert decode_ansi_c(text) == value


@pytest.mark.parametrize("text", [r"$'\0'", r"$'\xff'", r"$'\ud800'", "$'a'b'", "'a'"])
def test_ansi_strings_that_are_not_certain_are_not_read(text):
    with pytest.raises(Misread):
        decode_ansi_c(text)


def test_hidden_characters_are_spelled_out():
    assert hidden_characters("plain\ttext\nüber 日本") == []
    assert hidden_characters("a\u202eb\x1b") == ["U+202E", "U+001B"]
    assert escaped("a\u202eb\x1b[2K\r\tc\nd") == "a\\u{202e}b\\x1b[2K\\r\\tc\nd"
