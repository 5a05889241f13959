"""Programs that look at files, with options by which they run others or write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.known import names
from toolyard.permissions.programs.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place
    from toolyard.permissions.programs.options import Given, Options


RUNS = "runs another program"
WRITES = "writes a file"

SORT = options(
    flags="""
        -bdfgiMhnRrVcCmsuz ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting
        month-sort human-numeric-sort numeric-sort random-sort reverse version-sort debug merge stable unique
        zero-terminated help version
    """,
    values="""
        -kStT key buffer-size field-separator parallel batch-size sort random-source files0-from temporary-directory
    """,
    optional="check",
    writes="-o output",
    harms={"compress-program": RUNS},
    complete=True,
)
UNIQ = options(
    flags="-cdDiuz count repeated ignore-case unique zero-terminated help version -0123456789",
    values="-fsw skip-fields skip-chars check-chars",
    optional="all-repeated group",
    complete=True,
)
SHUF = options(
    flags="-erz echo repeat zero-terminated help version",
    values="-in input-range head-count random-source",
    writes="-o output",
    complete=True,
)
ICONV = options(
    flags="-cls list silent verbose help version",
    values="-ft from-code to-code",
    writes="-o output",
    complete=True,
)
DATE = options(
    flags="-uR utc universal rfc-email rfc-2822 debug resolution help version",
    values="-dr date reference rfc-3339",
    optional="-I iso-8601",
    harms={"-s set": "sets the clock", "-f file": "reads dates from a file"},
    complete=True,
)
FD = options(
    flags="""
        -HIuasilpLgF01q hidden no-ignore unrestricted absolute-path case-sensitive ignore-case fixed-strings follow
        full-path glob list-details print0 quiet prune help version regex and no-ignore-vcs strip-cwd-prefix
        one-file-system
    """,
    values="""
        -detESojc max-depth min-depth exact-depth extension type exclude size changed-within changed-before owner
        threads color max-results base-directory path-separator search-path ignore-file format batch-size
    """,
    harms={"-xX exec exec-batch": RUNS},
)
RG = options(
    flags="""
        -0FHIKLNPSUVabchilnopqsuvwx files line-number files-with-matches hidden no-ignore ignore-case smart-case
        fixed-strings word-regexp pretty json count count-matches stats multiline trim vimgrep heading no-heading
        column pcre2
    """,
    values="""
        -ABCEMTdefgjmrt after-context before-context context glob iglob type type-not max-count max-depth max-columns
        regexp file replace sort sortr threads encoding color colors context-separator engine ignore-file type-add
    """,
    harms={"pre hostname-bin": RUNS, "-z search-zip": RUNS},
)
TREE = options(
    flags="""
        -adflixDFghpqstuvrcNQSACnJX dirsfirst filesfirst noreport du si inodes device prune help version gitignore
        matchdirs metafirst
    """,
    values="-LPIHT filelimit timefmt sort charset gitfile infofile",
    writes="-o output",
    harms={"-R": "writes a file into each folder"},
)
MAN = options(
    flags="""
        -afkwWiIuchV all whatis apropos where path location where-cat location-cat ignore-case match-case update
        catman help version usage regex wildcard names-only no-subpages no-hyphenation no-justification
    """,
    values="-sSLmeR section locale systems extension recode",
    harms={
        "-P pager": RUNS,
        "-H html": RUNS,
        "-X gxditview": RUNS,
        "-Z ditroff": "prints what another program reads",
        "-T troff-device": RUNS,
        "-t troff": RUNS,
        "-C config-file": "reads its settings from a file",
        "-l local-file": "formats any file",
        "-M manpath": "reads pages from any folder",
        "-p preprocessor": RUNS,
        "-D default": "reads its settings anew",
        "-E encoding": RUNS,
        "-K global-apropos": "searches everything",
    },
    complete=True,
)
FILE = options(
    flags="""
        -bcDEhikLlnNprsSvzZ0 brief checking-printout dereference no-dereference mime mime-type mime-encoding
        extension keep-going list no-buffer no-pad preserve-date print0 raw special-files uncompress
        uncompress-noreport version help
    """,
    values="-eFfmP exclude exclude-quiet separator files-from magic-file parameter",
    harms={"-C compile": WRITES},
    complete=True,
)
ONLY_PAGERS = options(harms={"pager": RUNS, "output": WRITES, "ackrc path-to-ignore": "reads other settings"})
BAT = options(harms={"pager": RUNS, "config-file generate-config-file diagnostic": "reads other settings"})
XMLLINT = options(writes="-o output", harms={"shell": "runs what it reads", "push catalogs": "loads other files"})
SS = options(harms={"-K kill": "ends connections", "-D diag": WRITES})
DMESG = options(
    harms={
        "-cCDEn clear read-clear console-off console-on console-level": "changes the kernel's log",
        "-wW follow follow-new": "does not end by itself",
    }
)
JOURNALCTL = options(
    values="-nuptSUDcgo lines unit priority identifier since until directory cursor grep output boot",
    optional="-b",
    harms={
        "vacuum-size vacuum-time vacuum-files rotate flush sync relinquish-var setup-keys": "changes the log",
        "-f follow": "does not end by itself",
    },
)
TAIL = options(
    flags="-qvz quiet silent verbose zero-terminated retry help version -0123456789",
    values="-ncs lines bytes pid sleep-interval max-unchanged-stats",
    harms={"-fF follow": "does not end by itself"},
)
INSTALL = options(harms={"-s strip strip-program": RUNS})
SDIFF = options(writes="-o output", harms={"diff-program": RUNS})
DIFF3 = options(harms={"diff-program": RUNS})
SYSTEMD_READS = frozenset({
    "status", "show", "cat", "list-units", "list-unit-files", "list-timers", "list-sockets", "list-dependencies",
    "list-jobs", "is-active", "is-enabled", "is-failed", "is-system-running", "get-default", "help", "show-environment",
})  # fmt: skip

XXD_VALUE = re.compile(r"-[cglnosR]|-(?:cols|groupsize|len|name|seek)")
NO_FILES = names("/dev/null /dev/stderr /dev/stdout")
TEE_FLAGS = names("-a --append -i --ignore-interrupts -p -ai -ia")


def guard_uniq(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The second file is written."""
    given = UNIQ.scan(words[1:])
    yield from given.concerns
    yield from second_is_written(given)


def second_is_written(given: Given) -> Iterator[Concern]:
    if any(operand.splits for operand in given.operands):
        yield Concern(message="what becomes several words may name a file that is written")
    for operand in given.operands[1:2]:
        yield Concern(message=f"'{operand.text}' is written", writes=operand)


def guard_xxd(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The second file is written; behind the first there are no options any more."""
    at = 1
    while at < len(words) and (value := words[at].value) is not None and value.startswith("-") and value != "-":
        at += 2 if XXD_VALUE.fullmatch(value) else 1
    if any(word.splits for word in words[1:]) or (at < len(words) and words[at].may_be_option):
        yield Concern(message="what xxd reads and writes is not certain")
    for word in words[at + 1 : at + 2]:
        yield Concern(message=f"'{word.text}' is written", writes=word)


def guard_tee(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Every file is written, also one that is named like an option."""
    ended = False
    for word in words[1:]:
        if word.value == "--" and not ended:
            ended = True
        elif (ended or word.value not in TEE_FLAGS) and word.value not in NO_FILES:
            yield Concern(message=f"tee writes '{word.text}'", writes=word)


def guard_date(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Without a plus before it, an operand sets the clock."""
    given = DATE.scan(words[1:])
    yield from given.concerns
    for operand in given.operands:
        if not operand.prefix.startswith("+"):
            yield Concern(message=f"'{operand.text}' sets the clock")


def guard_man(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """A page named by a path is any file, with macros in it."""
    given = MAN.scan(words[1:])
    yield from given.concerns
    for operand in given.operands:
        if operand.value is None or "/" in operand.value:
            yield Concern(message=f"'{operand.text}' is not the name of a page")


def guard_tree(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Letters of one row each take a word of their own: the `o` of `-Lo 2 file` names the file."""
    yield from TREE.scan(words[1:]).concerns
    for word in words[1:]:
        if re.match(r"-[A-Za-z0-9]+[oR]", word.value or ""):
            yield Concern(message=f"'{word.text}' may write a file")


def guard_tail(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Following a file has no end; that a file has the name of an option is no harm here."""
    yield from TAIL.scan([word for word in words[1:] if word.value is not None]).concerns


def guard_shuf(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Repeating has no end, unless it is counted."""
    given = SHUF.scan(words[1:])
    yield from given.concerns
    if given.has("r", "repeat") and not given.has("n", "head-count"):
        yield Concern(message="shuf does not end by itself")


def guard_hostname(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """An operand is a new name."""
    for word in words[1:]:
        if word.value is None or not word.value.startswith("-") or word.value.startswith(("-F", "-b", "--f", "--b")):
            yield Concern(message="hostname with a name sets it")
            return


def guard_systemctl(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Only what looks."""
    verbs = [word for word in words[1:] if not (word.value or "").startswith("-")]
    if verbs and verbs[0].value not in SYSTEMD_READS:
        yield Concern(message=f"systemctl {verbs[0].text} changes services")
    for word in words[1:]:
        if word.value is None or re.match(r"-H|--host|-M|--machine|--root|--image", word.value):
            yield Concern(message=f"'{word.text}' is about another system")


def guard_by(table: Options) -> Callable[[Sequence[Word], Place], Iterator[Concern]]:
    """A guard that needs no more than the table of options."""

    def guard(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
        yield from table.scan(words[1:]).concerns

    return guard


FILE_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    "uniq": guard_uniq,
    "xxd": guard_xxd,
    "tee": guard_tee,
    "date": guard_date,
    "man": guard_man,
    "hostname": guard_hostname,
    "systemctl": guard_systemctl,
    "sort": guard_by(SORT),
    "gsort": guard_by(SORT),
    "shuf": guard_shuf,
    "iconv": guard_by(ICONV),
    "fd": guard_by(FD),
    "fdfind": guard_by(FD),
    "rg": guard_by(RG),
    "ripgrep": guard_by(RG),
    "tree": guard_tree,
    "file": guard_by(FILE),
    "ag": guard_by(ONLY_PAGERS),
    "ack": guard_by(ONLY_PAGERS),
    "bat": guard_by(BAT),
    "batcat": guard_by(BAT),
    "delta": guard_by(BAT),
    "xmllint": guard_by(XMLLINT),
    "ss": guard_by(SS),
    "dmesg": guard_by(DMESG),
    "journalctl": guard_by(JOURNALCTL),
    "tail": guard_tail,
    "install": guard_by(INSTALL),
    "ginstall": guard_by(INSTALL),
    "sdiff": guard_by(SDIFF),
    "diff3": guard_by(DIFF3),
}
