"""Archives: looking into one does no harm, making one or taking it apart writes files, and options run programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


RUNS = "runs another program"
WRITES = "writes a file"
TAR = options(
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
UNZIP = options(
    flags="-lvtpZzqncaC1",
    values="-PxI",
    harms={"-duofjbDLKXVM:^T": "writes the files of the archive"},
    complete=True,
)
ZIP = options(harms={"-TtmO test unzip-command move output-file": "runs another program, or removes files"})


def guard_tar(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Listing does no harm. The first word may be a row of options without a dash."""
    rest = list(words[1:])
    if rest and rest[0].value and not rest[0].value.startswith("-"):
        given = TAR.scan([dashed(rest[0])])
        yield from given.concerns
        rest = rest[1 + sum(letter in TAR.values | TAR.writes for letter in rest[0].value) :]
    given = TAR.scan(rest)
    yield from given.concerns
    for value in (*given.values("f", "file"), *(word.value for word in words[1:])):
        text = value if isinstance(value, str) else value.value if value else None
        if text and re.match(r"[^/]*[^/\\]:", text) and not text.startswith("-"):
            yield Concern(message=f"'{text}' may be on another machine")


def dashed(word: Word) -> Word:
    # Values of such a row stand behind it, so none is glued to a letter.
    letters = "".join(letter for letter in word.value or "" if letter not in TAR.values)
    return literal_word(f"-{letters}" if letters else "-v")


def guard_unzip(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Unless it lists, tests or prints, it writes the files of the archive."""
    given = UNZIP.scan(words[1:])
    yield from given.concerns
    if not given.has(*"lvtpZz"):
        yield Concern(message="unzip writes the files of the archive", runs=False)


def guard_pieces(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The names of what it writes are not in its arguments."""
    if [word.value for word in words[1:]] not in (["--help"], ["--version"]):
        yield Concern(message=f"{words[0].text} writes files")


def guard_zip(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Its own test runs a program that can be named."""
    yield from ZIP.scan(words[1:]).concerns


ARCHIVE_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), guard_tar),
    "unzip": guard_unzip,
    "zip": guard_zip,
    **dict.fromkeys(("split", "csplit", "cpio"), guard_pieces),
}
