"""Whether a line is one command with its words, and nothing that bash makes more of."""

from __future__ import annotations

import pytest

from toolyard.bash.syntax.operators import first_operator


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        ("ls -la", None),
        ("  ls  \n", None),
        ("ls *.py ~/x {a,b}", None),
        ("ls | wc", "|"),
        ("ls|wc", "|"),
        ("ls || wc", "||"),
        ("ls && wc", "&&"),
        ("ls;wc", ";"),
        ("ls & wc", "&"),
        ("ls\nwc", "\n"),
        ("ls > x", ">"),
        ("ls >> x", ">>"),
        ("cat < x", "<"),
        ("cat <<< x", "<<<"),
        ("cat <(id)", "<"),
        ("(ls)", "("),
        ("echo $HOME", "$HOME"),
        ("echo a${HOME}b c", "${HOME}b"),
        ("echo $(id) x", "$(id)"),
        ("echo `id` x", "`id`"),
        ("echo $'a'", "$'"),
        ('echo "$HOME"', "$HOME"),
        ('echo "a`id`"', "`id`"),
        ('echo "$(id)"', "$(id)"),
        ("echo \"it's\" | cat 'b'", "|"),
        ("echo \"'$(id)'\"", "$(id)'"),
        ("echo 'a' \\' ; b '", ";"),
        ("echo 'a | b; $c `d`'", None),
        ('echo "a | b; (c) > d"', None),
        ("echo a\\;b \\$c \\`", None),
        ('echo "a\\$b \\` \\" |"', None),
        ("grep '^a$' f", None),
        ('grep "a$" f', None),
        ("echo $ a$", None),
    ],
)
def test_the_first_operator_or_expansion_that_bash_would_obey(line, operator):
    assert first_operator(line) == operator
