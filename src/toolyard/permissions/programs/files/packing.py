"""Programs that pack files: listing does no harm, whatever else they do writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import WRITES, Concern, Options, guard_by_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


ANOTHER_MACHINE = re.compile(r"[^/]*[^/\\]:")


def gzip_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Unless it lists, tests or prints, it replaces files."""
    looks = given.has("l", "list", "t", "test", "c", "stdout", "to-stdout", "h", "help", "V", "version", "L", "license")
    if given.operands and not looks:
        yield Concern(message="it replaces files", runs=False)


def tar_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """A colon in the name of an archive means another machine."""
    if given.has("force-local"):
        return
    for value in (*given.values("f", "file"), *(word.value for word in given.operands)):
        if value and ANOTHER_MACHINE.match(value) and not value.startswith("-"):
            yield Concern(message=f"'{value}' may be on another machine")


def unzip_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Unless it lists, tests or prints, it writes the files of the archive."""
    if not given.has(*"lvtpZz"):
        yield Concern(message="unzip writes the files of the archive", runs=False)


TAR = Options(
    flags="""
        -tvzjJaZhpPOnBiRGSWkUmdwlso list verbose gzip gunzip ungzip bzip2 xz zstd lzma lzip lzop compress uncompress
        auto-compress dereference utc full-time numeric-owner wildcards no-wildcards anchored no-anchored ignore-case
        no-ignore-case no-recursion recursion show-defaults show-omitted-dirs block-number ignore-zeros help version
        usage test-label diff compare null force-local no-auto-compress exclude-vcs exclude-backups exclude-caches
        to-stdout show-stored-names show-transformed-names wildcards-match-slash no-wildcards-match-slash
        read-full-records
    """,
    values="""
        -KNbHVL exclude strip-components starting-file newer after-date newer-mtime blocking-factor record-size format
        label quoting-style sort transform xform warning tape-length
    """,
    optional="occurrence checkpoint totals one-top-level",
    reads="-fCX file directory exclude-from",
    writes="-g listed-incremental",
    runs="-IF use-compress-program info-script new-volume-script to-command rsh-command rmt-command checkpoint-action",
    harms={
        "-T= files-from=": "reads names, and options among them, from a file",
        "-x extract get": "writes the files of the archive",
        "-cruA create append update concatenate catenate delete add-file=": "writes an archive",
        "index-file= volno-file=": WRITES,
        "remove-files recursive-unlink unlink-first overwrite": "removes files",
        "-M multi-volume": "may run another program",
    },
    operands="text*",
    when={"-crudA create append update diff compare": "read*"},
    more=tar_concerns,
    old_style=True,
    complete=True,
)
UNZIP = Options(
    flags="-lvtpZzqncaC1hsm2x",
    values="-PI",
    harms={"-duofjbDLKXVM:^T": "writes the files of the archive"},
    operands="read text*",
    more=unzip_concerns,
    complete=True,
)
GZIP = Options(
    flags="""
        -acdfhklLnNqrtvV123456789 ascii stdout to-stdout decompress uncompress force help keep list license no-name name
        quiet recursive rsyncable test verbose version fast best synchronous
    """,
    values="-Sb suffix bits",
    more=gzip_concerns,
    complete=True,
)
ZCAT = Options(
    flags="-cdfhklLnNqrtvV ascii stdout decompress force help list license no-name name quiet recursive test verbose",
    values="-S suffix",
    complete=True,
)


PACKING_GUARDS: dict[str, Guard] = {
    "tar gtar bsdtar": TAR,
    "unzip": UNZIP,
    "zipinfo": Options(flags="-12smlvhMtTzZ", values="-xP", operands="read text*"),
    "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd": GZIP,
    "zcat bzcat xzcat zstdcat lzcat gzcat": ZCAT,
    "zip": Options(
        harms={"-TtmO test unzip-command= move output-file=": "runs another program, or removes files"},
        operands="write read*",
        is_for_writing=True,
    ),
    "pax": Options(harms={"-rw": "writes files", "-s": "changes names"}, reads="-f"),
    "ar": guard_by_pattern(r"-?[a-zA-Z]*[dmqrsx]|--plugin|@|--output", "changes an archive, or takes it apart"),
}
