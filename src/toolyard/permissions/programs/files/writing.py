"""Programs that make, change or remove files."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import RUNS, Concern, Operand, Options, guard_by_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


RECURSIVE = ("r", "R", "a", "recursive", "archive")


class PutsFiles(Options):
    """A program that puts files somewhere: into a folder under their own names, or under a new name."""

    def scan(self, words: Sequence[Word]) -> Given:
        given = super().scan(words)
        sources = [path for path in given.paths if path.role == "read"]
        for target in [path for path in given.paths if path.role == "write"]:
            if target.word.kind == "glob" and len(sources) and target.word in given.operands:
                why = f"which file of '{target.word.text}' is written depends on their names"
                given.concerns.append(Concern(message=why, runs=False))
            for source in sources:
                given.paths += put_into(target, source, is_whole=given.has("parents"))
        return given


def put_into(target: Operand, source: Operand, *, is_whole: bool) -> Iterator[Operand]:
    """What a source becomes inside a folder; when it is not certain, as a word that is not."""
    for text in source.word.texts or (source.text,):
        name = text if is_whole else os.path.basename(text.rstrip("/"))
        is_certain = source.word.value is not None or source.word.texts
        if name:
            yield Operand(target.word if is_certain else source.word, f"{target.text}/{name}", "write")


def copy_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """All that is in a folder is put over what is in another, and which names that has is not to be seen."""
    if any("/" in (suffix or "/") for suffix in given.values("S", "suffix")):
        yield Concern(message="where it keeps what it overwrites is not to be seen", runs=False)
    if not given.has(*RECURSIVE):
        return
    for operand in given.operands:
        if (operand.value or "").endswith(("/.", "/..")) or (
            operand.value in (".", "..") and operand is given.operands[0]
        ):
            yield Concern(message=f"which files of '{operand.text}' are written is not to be seen", runs=False)
    if given.has("T", "no-target-directory"):
        yield Concern(message="which files are written is not to be seen", runs=False)


def split_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """It writes files whose names are not in its arguments."""
    if not given.has("help", "version"):
        yield Concern(message="it writes files whose names are not to be seen", runs=False)


BACKUP = "backup context preserve reflink update interactive preserve-root"
WRITING_GUARDS: dict[str, Guard] = {
    "tee gtee": Options(
        flags="-aip append ignore-interrupts help version", optional="output-error", operands="write*", complete=True
    ),
    "cp gcp": PutsFiles(
        flags="""
            -abdfiHlLnPpRrsTuvxZ archive attributes-only copy-contents force link dereference no-clobber
            no-dereference parents recursive remove-destination strip-trailing-slashes symbolic-link
            no-target-directory verbose one-file-system debug keep-directory-symlink help version
        """,
        values="-S no-preserve sparse suffix",
        optional=BACKUP,
        writes="-t target-directory",
        operands="read* write",
        when={"-t target-directory": "read*"},
        follows="-LHrRa dereference recursive archive",
        more=copy_concerns,
        is_for_writing=True,
    ),
    "mv gmv": PutsFiles(
        flags="""
            -bfinTuvZ force interactive no-clobber strip-trailing-slashes no-target-directory verbose exchange no-copy
            debug help version
        """,
        values="-S suffix",
        optional=BACKUP,
        writes="-t target-directory",
        operands="write* write",
        when={"-t target-directory": "write*"},
        is_for_writing=True,
    ),
    "ln gln": PutsFiles(
        flags="""
            -bdFfiLnPrsTv directory force interactive logical no-dereference physical relative symbolic
            no-target-directory verbose help version
        """,
        values="-S suffix",
        optional="backup",
        writes="-t target-directory",
        operands="read* write",
        when={"-t target-directory": "read*"},
        is_for_writing=True,
    ),
    "install ginstall": PutsFiles(
        flags="""
            -bcCdDpTvZ compare directory preserve-timestamps no-target-directory verbose preserve-context debug help
            version
        """,
        values="-gmoS group mode owner suffix",
        optional="backup context",
        writes="-t target-directory",
        runs="strip-program",
        harms={"-s strip": RUNS},
        operands="read* write",
        when={"-t target-directory": "read*", "-d directory": "write*"},
        is_for_writing=True,
    ),
    "mkdir gmkdir": Options(
        flags="-pvZ parents verbose help version",
        values="-m mode",
        optional="context",
        operands="write*",
        is_for_writing=True,
    ),
    "touch gtouch": Options(
        flags="-acfhm no-create no-dereference help version",
        values="-dt date time",
        reads="-r reference",
        operands="write*",
        is_for_writing=True,
    ),
    "rm grm": Options(
        flags="-fiIrRdvP force one-file-system no-preserve-root recursive dir verbose help version",
        optional="interactive preserve-root",
        operands="write*",
        is_for_writing=True,
    ),
    "rmdir unlink": Options(
        flags="-pv ignore-fail-on-non-empty parents verbose help version", operands="write*", is_for_writing=True
    ),
    "truncate": Options(
        flags="-co no-create io-blocks help version",
        values="-s size",
        reads="-r reference",
        operands="write*",
        is_for_writing=True,
    ),
    "chmod gchmod": Options(
        flags="""
            -cfvRh changes silent quiet verbose no-preserve-root preserve-root recursive dereference no-dereference help
            version
        """,
        optional="-rwxXstugoa",
        reads="reference",
        operands="text write*",
        when={"reference -rwxXstugoa": "write*"},
        is_for_writing=True,
    ),
    "chown chgrp": Options(
        flags="""
            -cfvhRHLP changes silent quiet verbose dereference no-dereference no-preserve-root preserve-root recursive
            help version
        """,
        values="from",
        reads="reference",
        operands="text write*",
        when={"reference": "write*"},
        is_for_writing=True,
    ),
    "dd": Options(
        values="bs cbs conv count ibs iflag obs oflag oseek iseek seek skip status",
        reads="if",
        writes="of",
        operands="text*",
        style="assign",
        complete=True,
    ),
    "split gsplit": Options(
        flags="-dxeu elide-empty-files unbuffered verbose help version -0123456789",
        values="-abClnt suffix-length additional-suffix bytes line-bytes lines number separator",
        optional="numeric-suffixes hex-suffixes",
        runs="filter",
        operands="read write",
        more=split_concerns,
        is_for_writing=True,
        complete=True,
    ),
    "csplit gcsplit": Options(
        flags="-ksqz keep-files suppress-matched quiet silent elide-empty-files help version",
        values="-bn suffix-format digits",
        writes="-f prefix",
        operands="read text*",
        more=split_concerns,
        is_for_writing=True,
        complete=True,
    ),
    "cpio": Options(more=split_concerns),
    "exiftool": guard_by_pattern(
        r"(?i)-(?:if|config|o|out|@|execute|stay_open|w|W|textout|tagout|overwrite_original|use|p|j\w*[+=]|csv[+=])|-[\w:#-]+[-+^]?[<=]",
        "runs code or writes files",
    ),
}
