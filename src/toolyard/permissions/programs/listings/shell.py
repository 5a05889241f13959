"""Builtins of bash that tell or change its state: which of their calls only tell, or touch only what the line owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.expansion.variable_names import is_own_variable
from toolyard.permissions.programs.categories import each_name, names
from toolyard.permissions.programs.listings.listing import Listing, lists_with
from toolyard.permissions.programs.options import Given, Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.words import Word


SWITCHES = names("""
    -e +e -u +u -x +x -o +o -eu -ex -ux -eux -euo -exo -euxo -uo -eo +ux +ex -f +f errexit nounset pipefail xtrace
    noglob -v +v verbose
""")
"""Options of the shell by which it stops earlier or shows what it does."""


def sets_own(given: Given) -> bool:
    """Whether every variable is one that only the line itself looks at."""
    words = [word.value or word.prefix for word in given.operands]
    return all(is_own_variable(word.partition("=")[0]) for word in words)


def names_nothing(given: Given) -> bool:
    return not given.operands


def only_switches(given: Given) -> bool:
    """Whether `set` is given nothing but options by which the shell stops earlier or shows what it does."""
    values = [word.value for word in given.operands]
    return bool(values) and all(value in SWITCHES for value in values)


class Switches(Options):
    """`set` has a syntax of its own: its words are taken as they are."""

    def scan(self, words: Sequence[Word]) -> Given:
        return Given(operands=list(words))


SHELL: dict[str, Listing] = each_name(
    {
        "set": Listing(options=Switches(operands="text*"), lists=only_switches),
        "umask": lists_with(flags="-pS", most=0),
        "ulimit": lists_with(flags="-SHabcdefiklmnpqrstuvxPRT", most=0),
        "jobs": lists_with(flags="-lnprs"),
        "history": lists_with(lists=lambda given: all((word.value or "").isdigit() for word in given.operands), most=1),
        "hash": lists_with(
            flags="-lt", lists=lambda given: all("/" not in (word.value or "/") for word in given.operands)
        ),
        "dirs": lists_with(flags="-lpv", most=0),
        "popd": lists_with(most=0),
        "pushd": lists_with(operands="read", most=1),
        "shopt": lists_with(flags="-pqo"),
        "alias": lists_with(flags="-p", most=0),
        "times": lists_with(most=0),
        "shift": lists_with(lists=lambda given: all((word.value or "").isdigit() for word in given.operands), most=1),
        "return": lists_with(
            lists=lambda given: all((word.value or "").isdigit() or word.is_number for word in given.operands), most=1
        ),
        "declare typeset": lists_with(
            flags="-aArpfFxg", lists=lambda given: sets_own(given) and not (given.has("x") and given.operands)
        ),
        "local readonly": lists_with(flags="-aArp", lists=sets_own),
        "mapfile readarray": lists_with(flags="-t", values="-dnOsu", lists=sets_own, most=1),
        "unset": lists_with(flags="-v", lists=sets_own),
        "caller": lists_with(most=0),
        "compgen": lists_with(flags="-abckv", most=0),
    }
)
