"""Programs that look at files or pack them, with options by which they run others or write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import RUNS, WRITES, Concern, Options, guard_always_writes, guard_by_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.file_access import WorkingFolder
    from toolyard.permissions.programs.options import Guard


UNIQ = Options(
    flags="-cdDiuz count repeated ignore-case unique zero-terminated help version -0123456789",
    values="-fsw skip-fields skip-chars check-chars",
    optional="all-repeated group",
    complete=True,
)
SHUF = Options(
    flags="-erz echo repeat zero-terminated help version",
    values="-in input-range head-count random-source",
    writes="-o output",
    complete=True,
)
TREE = Options(
    flags="""
        -adflixDFghpqstuvrcNQSACnJX dirsfirst filesfirst noreport du si inodes device prune help version gitignore
        matchdirs metafirst
    """,
    values="-LPIHT filelimit timefmt sort charset gitfile infofile",
    writes="-o output",
    harms={"-R": "writes a file into each folder"},
)
TAIL = Options(
    flags="-qvz quiet silent verbose zero-terminated retry help version -0123456789",
    values="-ncs lines bytes pid sleep-interval max-unchanged-stats",
    harms={"-fF follow": "does not end by itself"},
)
TAR = Options(
    flags="""
        -tvzjJaZhpPOnBiRGSWkUmdwlso list verbose gzip gunzip ungzip bzip2 xz zstd lzma lzip lzop compress uncompress
        auto-compress dereference utc full-time numeric-owner wildcards no-wildcards anchored no-anchored ignore-case
        no-ignore-case no-recursion recursion show-defaults show-omitted-dirs block-number ignore-zeros help version
        usage test-label diff compare null force-local no-auto-compress exclude-vcs exclude-backups exclude-caches
        to-stdout
    """,
    values="""
        -fCXKNbHVL file directory exclude exclude-from strip-components starting-file newer after-date newer-mtime
        blocking-factor record-size format label quoting-style sort transform xform warning
    """,
    writes="-g",
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
UNZIP = Options(
    flags="-lvtpZzqncaC1", values="-PxI", harms={"-duofjbDLKXVM:^T": "writes the files of the archive"}, complete=True
)
XXD_VALUE = re.compile(r"-[cglnosR]|-(?:cols|groupsize|len|name|seek)")
NO_FILES = names("/dev/null /dev/stderr /dev/stdout")
TEE_FLAGS = names("-a --append -i --ignore-interrupts -p -ai -ia")


def guard_uniq(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """The second file is written."""
    given = UNIQ.scan(words[1:])
    yield from given.concerns
    if any(operand.splits for operand in given.operands):
        yield Concern(message="what becomes several words may name a file that is written")
    for operand in given.operands[1:2]:
        yield Concern(message=f"'{operand.text}' is written", writes=operand)


def guard_xxd(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """The second file is written; behind the first there are no options any more."""
    at = 1
    while at < len(words) and (value := words[at].value) is not None and value.startswith("-") and value != "-":
        at += 2 if XXD_VALUE.fullmatch(value) else 1
    if any(word.splits for word in words[1:]) or (at < len(words) and words[at].may_be_option):
        yield Concern(message="what xxd reads and writes is not certain")
    for word in words[at + 1 : at + 2]:
        yield Concern(message=f"'{word.text}' is written", writes=word)


def guard_tee(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Every file is written, also one that is named like an option."""
    ended = False
    for word in words[1:]:
        if word.value == "--" and not ended:
            ended = True
        elif (ended or word.value not in TEE_FLAGS) and word.value not in NO_FILES:
            yield Concern(message=f"tee writes '{word.text}'", writes=word)


def guard_tree(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Letters of one row each take a word of their own: the `o` of `-Lo 2 file` names the file."""
    yield from TREE.scan(words[1:]).concerns
    for word in words[1:]:
        if re.match(r"-[A-Za-z0-9]+[oR]", word.value or ""):
            yield Concern(message=f"'{word.text}' may write a file")


def guard_tail(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Following a file has no end; that a file has the name of an option is no harm here."""
    yield from TAIL.scan([word for word in words[1:] if word.value is not None]).concerns


def guard_shuf(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Repeating has no end, unless it is counted."""
    given = SHUF.scan(words[1:])
    yield from given.concerns
    if given.has("r", "repeat") and not given.has("n", "head-count"):
        yield Concern(message="shuf does not end by itself")


def guard_dd(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """`of=` names the file that is written."""
    for word in words[1:]:
        if word.value is None or word.value.startswith("of="):
            yield Concern(message=f"'{word.text}' writes a file", writes=literal_word((word.value or "")[3:]))


def guard_tar(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Listing does no harm. The first word may be a row of options without a dash."""
    rest = list(words[1:])
    if rest and rest[0].value and not rest[0].value.startswith("-"):
        given = TAR.scan([dashed(rest[0])])
        yield from given.concerns
        rest = rest[1 + sum(letter in TAR.values | TAR.writes for letter in rest[0].value) :]
    given = TAR.scan(rest)
    yield from given.concerns
    for value in (*given.values("f", "file"), *(word.value for word in words[1:])):
        if value and re.match(r"[^/]*[^/\\]:", value) and not value.startswith("-"):
            yield Concern(message=f"'{value}' may be on another machine")


def dashed(word: Word) -> Word:
    # Values of such a row stand behind it, so none is glued to a letter.
    letters = "".join(letter for letter in word.value or "" if letter not in TAR.values)
    return literal_word(f"-{letters}" if letters else "-v")


def guard_unzip(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Unless it lists, tests or prints, it writes the files of the archive."""
    given = UNZIP.scan(words[1:])
    yield from given.concerns
    if not given.has(*"lvtpZz"):
        yield Concern(message="unzip writes the files of the archive", runs=False)


FILE_GUARDS: dict[str, Guard] = {
    "uniq": guard_uniq,
    "xxd": guard_xxd,
    "tee": guard_tee,
    "sort gsort": Options(
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
    ).guard,
    "shuf": guard_shuf,
    "iconv": Options(
        flags="-cls list silent verbose help version", values="-ft from-code to-code", writes="-o output", complete=True
    ).guard,
    "fd fdfind": Options(
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
    ).guard,
    "rg ripgrep": Options(
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
    ).guard,
    "tree": guard_tree,
    "file": Options(
        flags="""
        -bcDEhikLlnNprsSvzZ0 brief checking-printout dereference no-dereference mime mime-type mime-encoding
        extension keep-going list no-buffer no-pad preserve-date print0 raw special-files uncompress
        uncompress-noreport version help
    """,
        values="-eFfmP exclude exclude-quiet separator files-from magic-file parameter",
        harms={"-C compile": WRITES},
        complete=True,
    ).guard,
    "ag ack": Options(harms={"pager": RUNS, "output": WRITES, "ackrc path-to-ignore": "reads other settings"}).guard,
    "bat batcat delta": Options(
        harms={"pager": RUNS, "config-file generate-config-file diagnostic": "reads other settings"}
    ).guard,
    "xmllint": Options(
        writes="-o output", harms={"shell": "runs what it reads", "push catalogs": "loads other files"}
    ).guard,
    "tail": guard_tail,
    "install ginstall": Options(harms={"-s strip strip-program": RUNS}).guard,
    "sdiff": Options(writes="-o output", harms={"diff-program": RUNS}).guard,
    "diff3": Options(harms={"diff-program": RUNS}).guard,
    "dd": guard_dd,
    "exiftool": guard_by_pattern(
        r"(?i)-(?:if|config|o|out|@|execute|stay_open|w|W|textout|tagout|overwrite_original|use|p|j\w*[+=]|csv[+=])|-[\w:#-]+[-+^]?[<=]",
        "runs code or writes files",
    ),
    "tar gtar bsdtar": guard_tar,
    "unzip": guard_unzip,
    "zip": Options(harms={"-TtmO test unzip-command move output-file": "runs another program, or removes files"}).guard,
    "pax": Options(harms={"-rw": "writes files", "-s": "changes names"}, values="-f").guard,
    "ar": guard_by_pattern(r"-?[a-zA-Z]*[dmqrsx]|--plugin|@|--output", "changes an archive, or takes it apart"),
    "split csplit cpio": guard_always_writes,
}
