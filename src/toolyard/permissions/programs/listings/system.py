"""Programs that tell something of the machine, its packages and its processes, or print a file in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.permissions.programs.categories import each_name
from toolyard.permissions.programs.files.packing import TAR
from toolyard.permissions.programs.listings.listing import Listing, lists_with

if TYPE_CHECKING:
    from toolyard.permissions.programs.options import Given


TAR_PRINTS = replace(
    TAR,
    flags=f"{TAR.flags} -xc extract get create",
    harms={
        " ".join(each for each in names.split() if each not in ("-x", "extract", "get", "-cruA", "create")): harm
        for names, harm in TAR.harms.items()
    }
    | {"-ruA": "writes an archive"},
    follows="-h dereference",
)
"""What tar is given when it prints the files of an archive, or an archive itself."""


def only_prints(given: Given) -> bool:
    """Whether tar lists or compares, or puts what it makes or takes out on its standard output."""
    if given.has("x", "extract", "get"):
        return given.has("O", "to-stdout")
    if given.has("c", "create"):
        return given.values("f", "file") == ["-"]
    return given.has("t", "list", "d", "diff", "compare", "test-label", "help", "version", "show-defaults", "usage")


def gives_no_command(given: Given) -> bool:
    """Whether no operand of a pager is a command for it, such as `+!ls`."""
    return not any(word.prefix.startswith("+") or word.value is None for word in given.operands)


UNPACKING = "-cdfklqtvT123456789 stdout to-stdout decompress uncompress keep list quiet test verbose no-name -n"
SYSTEM: dict[str, Listing] = each_name(
    {
        "lscpu": lists_with(flags="-abcehJprxyVB all bytes online offline json physical hex caches output-all"),
        "lsblk": lists_with(
            flags="""
                -aAbdDfhiJlmnOpPrsStTVvzN all bytes nodeps discard fs ascii json list perms noheadings output-all
                paths pairs raw inverse topology tree scsi
            """,
            values="-oxeIMEw output sort exclude include dedup merge width",
            operands="text*",
            most=0,
        ),
        "lsb_release": lists_with(flags="-avidrcsh all version id description release codename short", most=0),
        "lsmod lspci lsusb lsmem lsns lslocks lsipc": lists_with(flags="-abklnpqtv", most=0),
        "vmstat": lists_with(
            flags="-adfmnstwDy active forks slabs one-header stats disk wide timestamp", values="-S unit"
        ),
        "iostat mpstat": lists_with(flags="-cdhkmptxyzNV"),
        "w who": lists_with(flags="-abdHlmpqrsTtuwhifo heading all boot count", most=0),
        "last lastb": lists_with(flags="-adFiRwx", values="-npst", most=1),
        "factor": lists_with(flags="-h exponents"),
        "cal ncal": lists_with(flags="-13hjmMwyYsnv three monday sunday julian year", values="-AB"),
        "locale": lists_with(flags="-amckv all-locales charmaps category-name keyword-name verbose"),
        "getconf": lists_with(flags="-a", operands="text read*"),
        "pgrep pidof": lists_with(
            flags="-acflLnovwxisV count list-name list-full full newest oldest inverse exact ignore-case",
            values="-dgGPstuUFr delimiter pgroup group parent session terminal euid uid ns nslist runstates",
        ),
        "lsof": lists_with(
            flags="-abCGHKlMnNoPRtUVwXQ",
            values="-cpgdsuFTr",
            optional="-iSDLe",
            operands="read*",
            lists=lambda given: not given.has("r", "D", "e"),
        ),
        "ss netstat": lists_with(
            flags="""
                -tulnpaexio46swrmbHOZzhVNWgcM tcp udp listening numeric processes all extended sctp raw unix summary
                memory info options route interfaces statistics program no-header oneline ipv4 ipv6 resolve
            """,
            values="-fA family query",
        ),
        "pstree": lists_with(flags="-acghlnNpsStTuUZ arguments show-pids show-parents long numeric-sort", most=1),
        "lsattr": lists_with(flags="-aRdlpvV", operands="read*", default="."),
        "getfacl": lists_with(flags="-acdeEsRLPtpn", operands="read*"),
        "less": lists_with(flags="-FXRSNiIeEnMmsqrwgGJ", operands="read*", lists=gives_no_command),
        "more": lists_with(flags="-dflpcsu", operands="read*", lists=gives_no_command),
        "bc": lists_with(flags="-lqsw mathlib quiet standard warn", operands="read*"),
        "ldd": lists_with(flags="-vudr verbose unused data-relocs function-relocs", operands="read*"),
        "bash sh dash": lists_with(flags="-n", operands="read", needs="n", most=1),
        "node nodejs": lists_with(flags="-c check", operands="read", needs="c check", most=1),
        "tar gtar bsdtar": Listing(options=TAR_PRINTS, lists=only_prints),
        "whereis": lists_with(flags="-bmsul"),
        "apropos whatis": lists_with(
            flags="-derwlaV exact regex wildcard and long debug verbose", values="-sLm sections section locale systems"
        ),
        "iconv": lists_with(flags="-lcs list silent verbose", values="-ft from-code to-code", operands="read*"),
        "shasum": lists_with(
            flags="-bptUqsw0 binary text portable tag UNIVERSAL 01 quiet status warn",
            values="-a algorithm",
            operands="read*",
        ),
        "sum b3sum crc32": lists_with(flags="-rs bsd sysv", operands="read*"),
        "gzip bzip2 xz zstd lzma lz4": lists_with(
            flags=UNPACKING, operands="read*", needs="c stdout to-stdout l list t test"
        ),
        "gunzip bunzip2 unxz unzstd": lists_with(
            flags=UNPACKING, operands="read*", needs="c stdout to-stdout l list t test"
        ),
        "bzcat xzcat zstdcat lzcat": lists_with(flags="-cdfkqtvn", operands="read*"),
        "xzgrep bzgrep zstdgrep zegrep zfgrep": lists_with(flags="-cEFhHilnovwx", values="-em", operands="text read*"),
        "zless zmore": lists_with(operands="read*"),
        "ldconfig": lists_with(flags="-pN print-cache", needs="p print-cache", most=0),
        "fc-list": lists_with(flags="-vqb verbose brief quiet", values="-f format"),
        "tput": lists_with(values="-T", lists=lambda given: [word.value for word in given.operands] in TPUT),
        "cloc": lists_with(
            flags="quiet by-file by-file-by-lang json yaml csv md hide-rate progress-rate skip-uniqueness vcs-files",
            values="""
                exclude-dir include-lang exclude-lang include-ext exclude-ext match-f not-match-f match-d
                not-match-d vcs
            """,
            operands="read*",
            lists=lambda given: not given.has("vcs"),
            default=".",
        ),
        "tokei scc": lists_with(
            flags="-fhCVv files hidden compact no-ignore no-cocomo no-complexity by-file no-duplicates wide ci",
            values="""
                -etoscx exclude type output sort sort-by languages exclude-dir include-ext count-as exclude-ext
                format
            """,
            operands="read*",
            lists=lambda given: not given.has("o") or set(given.values("o")) <= {"json", "yaml", "cbor"},
            default=".",
        ),
        "gron": lists_with(flags="-ujsvmckh ungron json stream values monochrome colorize no-sort", operands="read*"),
        "diffstat": lists_with(
            flags="-bcClKmqrstuvz", values="-efnNpRwD", operands="read*", lists=lambda given: not given.has("e", "D")
        ),
        "bat batcat": lists_with(
            flags="""
                -pAnfuSPr plain show-all number force-colorization unbuffered chop-long-lines diff list-languages
                list-themes
            """,
            values="""
                -rlHm line-range language highlight-line file-name tabs wrap style color decorations paging theme
                terminal-width diff-context italic-text map-syntax nonprintable-notation strip-ansi binary
                squeeze-limit
            """,
            operands="read*",
            lists=lambda given: set(given.values("paging")) <= {"never", "auto"},
        ),
        "timedatectl hostnamectl localectl": lists_with(
            flags="no-pager all -a", lists=lambda given: [word.value for word in given.operands] in SHOWS
        ),
        "nvidia-smi": lists_with(
            flags="-LqB list-gpus query",
            values="query-gpu query-compute-apps format -di display id",
            most=0,
        ),
        "pkg-config pkgconf": lists_with(
            flags="""
                modversion exists libs cflags list-all cflags-only-I libs-only-l libs-only-L print-errors static
                silence-errors short-errors print-variables print-requires validate
            """,
            values="variable atleast-version exact-version max-version",
        ),
        "ctags universal-ctags": lists_with(
            flags="-xnRu recurse sort list-languages list-kinds",
            values="languages kinds-Python fields extras exclude output-format",
            optional="-f",
            operands="read*",
            needs="x",
            lists=lambda given: set(given.values("f")) <= {"-"},
            obeys=".ctags.d ctags.d .ctags",
        ),
        "shellcheck": lists_with(
            flags="-axC external-sources check-sourced list-optional norc",
            values="-fesSiPWo format exclude shell severity include source-path wiki-link-count enable color",
            operands="read*",
            lists=lambda given: not given.has("x", "external-sources", "P", "source-path"),
        ),
        "gofmt": lists_with(flags="d l s e", values="r", operands="read*", needs="d l", single=True),
        "xmllint": lists_with(
            flags="noout format nonet recover huge compact noblanks noent pretty",
            values="xpath encode",
            operands="read*",
            lists=lambda given: not given.has("noent"),
        ),
        "yq": lists_with(
            flags="""
                -rnjPCMNeyS0c raw-output null-input tojson prettyPrint colors no-colors no-doc exit-status slurp
                sort-keys
            """,
            values="-opI output-format input-format indent",
            operands="text read*",
        ),
        "hyperlink": lists_with(most=0),
    }
)
TPUT: tuple[list[str | None], ...] = (["cols"], ["lines"], ["colors"])
SHOWS: tuple[list[str | None], ...] = ([], ["status"], ["show"], ["list-timezones"], ["list-locales"])
