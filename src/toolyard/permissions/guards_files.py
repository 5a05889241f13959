"""Programs that look at files, with options by which they run others or write."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from toolyard.permissions.options import Concern, options
from toolyard.permissions.programs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.permissions.options import Given, Options
    from toolyard.permissions.places import Place
    from toolyard.shell.words import Word

__all__ = ["FILE_GUARDS", "find_commands"]

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
TAR = options(
    flags="""
        -tvzjJaZhpPOnBiRGSWkUmdwlso list verbose gzip gunzip ungzip bzip2 xz zstd lzma lzip lzop compress uncompress
        auto-compress dereference utc full-time numeric-owner wildcards no-wildcards anchored no-anchored ignore-case
        no-ignore-case no-recursion recursion show-defaults show-omitted-dirs block-number ignore-zeros help version
        usage test-label diff compare null force-local no-auto-compress exclude-vcs exclude-backups exclude-caches
        to-stdout
    """,
    values="""
        -fCXKNbHVLg file directory exclude exclude-from strip-components starting-file newer after-date newer-mtime
        blocking-factor record-size format label quoting-style sort transform xform warning
    """,
    optional="occurrence checkpoint totals one-top-level",
    harms={
        "-I use-compress-program": RUNS,
        "-T files-from": "reads names, and options among them, from a file",
        "-F info-script new-volume-script": RUNS,
        "to-command rsh-command rmt-command checkpoint-action": RUNS,
        "-x extract get": "writes the files of the archive",
        "-cruA create append update concatenate catenate delete add-file": "writes an archive",
        "index-file volno-file listed-incremental": WRITES,
        "remove-files recursive-unlink unlink-first overwrite": "removes files",
        "-M multi-volume": "may run another program",
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
UNZIP = options(
    flags="-lvtpZzqncaC1",
    values="-PxI",
    harms={"-duofjbDLKXVM:^T": "writes the files of the archive"},
    complete=True,
)
ONLY_PAGERS = options(harms={"pager": RUNS, "output": WRITES})
BAT = options(harms={"pager": RUNS, "config-file generate-config-file diagnostic": "reads other settings"})
XMLLINT = options(writes="-o output", harms={"shell": "runs what it reads", "push catalogs": "loads other files"})
SS = options(harms={"-K kill": "ends connections", "-D diag": WRITES})
DMESG = options(harms={"-cCDEn clear read-clear console-off console-on console-level": "changes the kernel's log"})
JOURNALCTL = options(
    harms={"vacuum-size vacuum-time vacuum-files rotate flush sync relinquish-var setup-keys": "changes the log"}
)
TAIL = options(
    flags="-qvz quiet silent verbose zero-terminated retry help version -0123456789",
    values="-ncs lines bytes pid sleep-interval max-unchanged-stats",
    harms={"-fF follow": "does not end by itself"},
)
ZIP = options(harms={"-TtmO test unzip-command move output-file": "runs another program, or removes files"})
INSTALL = options(harms={"-s strip strip-program": RUNS})
OPENSSL = options(
    writes="out writerand sess_out keylogfile",
    harms={"engine provider provider-path config proxy": "loads other code or goes elsewhere"},
    single_dash=True,
)
SDIFF = options(writes="-o output", harms={"diff-program": RUNS})
SYSTEMD_READS = frozenset({
    "status", "show", "cat", "list-units", "list-unit-files", "list-timers", "list-sockets", "list-dependencies",
    "list-jobs", "is-active", "is-enabled", "is-failed", "is-system-running", "get-default", "help", "show-environment",
})  # fmt: skip

XXD_VALUE = re.compile(r"-[cglnosR]|-(?:cols|groupsize|len|name|seek)")
NO_FILES = names("/dev/null /dev/stderr /dev/stdout")
TEE_FLAGS = names("-a --append -i --ignore-interrupts -p -ai -ia")
FIND_SAFE = names("""
    -H -L -P -daystart -depth -d -follow -help --help -ignore_readdir_race -noignore_readdir_race -maxdepth -mindepth
    -mount -noleaf -nowarn -warn -regextype -version --version -xautofs -xdev -amin -anewer -atime -cmin -cnewer
    -context -ctime
    -empty -executable -false -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname
    -mmin -mtime -name -newer -nogroup -nouser -path -perm -readable -regex -samefile -size -true -type -uid -used -user
    -wholename -writable -xtype -print -print0 -printf -ls -prune -quit -not -a -and -o -or
""")
FIND_NEWER = re.compile(r"-newer[aBcm][aBcmt]|-O[0-3]|-D|-[0-9].*|[-+][0-9].*")
FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
FIND_WRITES = ("-fprint", "-fprint0", "-fprintf", "-fls")
FIND_HARMFUL = (*FIND_RUNS, *FIND_WRITES, "-delete", "-files0-from")


def guard_find(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Every test and action has to be known; what `-exec` runs is judged as a command of its own."""
    inside = False
    takes_mode = False
    for word in words[1:]:
        value = word.value
        if inside:
            inside = value not in (";", "+")
        elif value is None:
            if could_be(word, FIND_HARMFUL):
                yield Concern(message=f"what '{word.text}' becomes may be an action")
        elif value in ("-exec", "-ok"):
            inside = True
        elif value in FIND_HARMFUL:
            what = "removes files" if value == "-delete" else RUNS if value in FIND_RUNS else WRITES
            yield Concern(message=f"'{value}' {what}")
        elif value.startswith("-") and not takes_mode and value not in FIND_SAFE and not FIND_NEWER.fullmatch(value):
            yield Concern(message=f"'{value}' of find is not known")
        takes_mode = value in ("-perm", "-name", "-iname", "-path", "-regex", "-printf", "-size")
    if inside:
        yield Concern(message="-exec without an end")


def find_commands(words: Sequence[Word]) -> list[tuple[Word, ...]]:
    """The commands behind the actions of find that run some, with what find puts in as words that are not certain."""
    found: list[tuple[Word, ...]] = []
    at = 1
    while at < len(words):
        if words[at].value in FIND_RUNS:
            end = next((i for i in range(at + 1, len(words)) if words[i].value in (";", "+")), len(words))
            found.append(tuple(uncertain(word) if "{}" in (word.value or "") else word for word in words[at + 1 : end]))
            at = end
        at += 1
    return found


def uncertain(word: Word) -> Word:
    from dataclasses import replace

    return replace(word, value=None, kind="dynamic", prefix=(word.value or "").partition("{}")[0])


def could_be(word: Word, values: Sequence[str]) -> bool:
    """Whether a word may become one of these."""
    if not word.may_be_option:
        return False
    if word.kind == "glob" and not re.search(r"[{\\'\"]", word.text):
        return any(fnmatch.fnmatchcase(value, word.text) for value in values)
    return True


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


def guard_tar(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Listing does no harm. The first word may be a row of options without a dash."""
    rest = list(words[1:])
    if rest and rest[0].value and not rest[0].value.startswith("-"):
        given = TAR.scan([dashed(rest[0])])
        yield from given.concerns
        rest = rest[1 + sum(letter in TAR.values for letter in rest[0].value) :]
    given = TAR.scan(rest)
    yield from given.concerns
    for value in (*given.values("f", "file"), *(word.value for word in words[1:])):
        text = value if isinstance(value, str) else value.value if value else None
        if text and re.match(r"[^/]*[^/\\]:", text) and not text.startswith("-"):
            yield Concern(message=f"'{text}' may be on another machine")


def dashed(word: Word) -> Word:
    from toolyard.shell.words import literal_word

    # Values of such a row stand behind it, so none is glued to a letter.
    letters = "".join(letter for letter in word.value or "" if letter not in TAR.values)
    return literal_word(f"-{letters}" if letters else "-v")


def guard_tail(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Following a file has no end; that a file has the name of an option is no harm here."""
    yield from TAIL.scan([word for word in words[1:] if word.value is not None]).concerns


def guard_unzip(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Unless it lists, tests or prints, it writes the files of the archive."""
    given = UNZIP.scan(words[1:])
    yield from given.concerns
    if not given.has(*"lvtpZz"):
        yield Concern(message="unzip writes the files of the archive")


def guard_pieces(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The names of what it writes are not in its arguments."""
    if [word.value for word in words[1:]] not in (["--help"], ["--version"]):
        yield Concern(message=f"{words[0].text} writes files")


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
    "find": guard_find,
    "gfind": guard_find,
    "uniq": guard_uniq,
    "xxd": guard_xxd,
    "tee": guard_tee,
    "date": guard_date,
    "man": guard_man,
    "tar": guard_tar,
    "gtar": guard_tar,
    "bsdtar": guard_tar,
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
    "tree": guard_by(TREE),
    "file": guard_by(FILE),
    "unzip": guard_unzip,
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
    "split": guard_pieces,
    "csplit": guard_pieces,
    "cpio": guard_pieces,
    "zip": guard_by(ZIP),
    "install": guard_by(INSTALL),
    "ginstall": guard_by(INSTALL),
    "openssl": guard_by(OPENSSL),
    "sdiff": guard_by(SDIFF),
}
