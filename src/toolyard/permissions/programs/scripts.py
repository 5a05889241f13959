"""Programs with a language of their own, of which some words run commands, write files or read secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.awk import guard_awk
from toolyard.permissions.programs.options import Concern, options
from toolyard.permissions.programs.sed import guard_sed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


JQ = options(
    flags="""
        -nrjaceMCSsRhV null-input raw-output raw-output0 join-output ascii-output compact-output exit-status
        monochrome-output color-output sort-keys slurp raw-input tab unbuffered stream stream-errors seq help version
        args jsonargs
    """,
    values="indent",
    harms={"-f from-file": "takes its program from a file", "-L library-path": "loads other code"},
)
JQ_WORDS = re.compile(r"\b(?:env|import|include)\b|\$ENV|\$__loc__")
JQ_PAIRS = frozenset({"--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"})


def guard_jq(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The program is looked over; the pairs of names and values are taken out first."""
    rest: list[Word] = []
    at = 1
    while at < len(words):
        if words[at].value in JQ_PAIRS:
            at += 3
        else:
            rest.append(words[at])
            at += 1
    given = JQ.scan(rest)
    yield from given.concerns
    for operand in given.operands[:1]:
        if operand.value is None:
            yield Concern(message="the program of jq is not certain")
        elif JQ_WORDS.search(operand.value):
            yield Concern(message="jq reads the environment or other code")


def guard_yq(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The same for YAML, in either of the programs of that name."""
    for word in words[1:]:
        if word.value is None and word.may_be_option:
            yield Concern(message=f"what '{word.text}' becomes may be an option")
        elif re.match(r"-[a-zA-Z]*i|--in|--from|-f|-L|--split|-s", word.value or ""):
            yield Concern(message=f"'{word.text}' changes a file, or takes the program from one")
        elif re.search(r"\b(?:env|strenv|envsubst|load\w*|system|import|include)\b|\$ENV", word.value or ""):
            yield Concern(message="yq reads the environment or other files")


SCRIPT_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    "sed": guard_sed,
    "gsed": guard_sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk", "bwk", "goawk"), guard_awk),
    "jq": guard_jq,
    "gojq": guard_jq,
    "jaq": guard_jq,
    "yq": guard_yq,
}
