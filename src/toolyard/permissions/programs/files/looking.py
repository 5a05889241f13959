"""Programs that print files, or parts of them, or what is to be known about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import ENDLESS, RUNS, WRITES, Concern, Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


DIGITS = "-0123456789"


def shuf_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Repeating has no end, unless it is counted."""
    if given.has("r", "repeat") and not given.has("n", "head-count"):
        yield Concern(message=f"shuf {ENDLESS}", runs=False)


CHECKSUM = Options(
    flags="""
        -bctzw binary check tag untagged text zero ignore-missing quiet status strict warn debug help version
    """,
    values="-al algorithm length",
    when={"-c check": "names*"},
)
SHUF = Options(
    flags="-erz echo repeat zero-terminated help version",
    values="-in input-range head-count",
    reads="random-source",
    writes="-o output",
    when={"-ei echo input-range": "text*"},
    more=shuf_concerns,
    complete=True,
)
TAIL = Options(
    flags=f"-qvz quiet silent verbose zero-terminated retry help version {DIGITS}",
    values="-ncs lines bytes pid sleep-interval max-unchanged-stats",
    harms={"-fF follow?": ENDLESS},
)


LOOKING_GUARDS: dict[str, Guard] = {
    "ls dir vdir gls": Options(
        flags="""
            -aAbBcCdDfgGhHiklLmnNopqQrRsStuUvxXZ1F all almost-all author escape ignore-backups directory dired
            file-type full-time group-directories-first no-group human-readable si dereference-command-line
            dereference-command-line-symlink-to-dir inode kibibytes dereference numeric-uid-gid literal
            hide-control-chars show-control-chars quote-name reverse recursive size context zero help version
        """,
        values="-ITw block-size format hide indicator-style ignore quoting-style sort time time-style tabsize width",
        optional="color classify hyperlink",
        follows="-L dereference",
        default=".",
    ),
    "cat gcat": Options(
        flags="""
            -AbeEnstTuvl show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version
        """
    ),
    "head ghead": Options(
        flags=f"-qvz quiet silent verbose zero-terminated help version {DIGITS}", values="-cn bytes lines"
    ),
    "tail gtail": TAIL,
    "wc gwc": Options(
        flags="-cmlLw bytes chars lines max-line-length words help version",
        values="total",
        names="files0-from",
    ),
    "stat gstat": Options(flags="-Lft dereference file-system terse help version", values="-c format printf cached"),
    "du gdu": Options(
        flags="""
            -0abcDHhkLlmPSsx null all apparent-size bytes total dereference-args human-readable inodes dereference
            count-links no-dereference separate-dirs si summarize one-file-system help version
        """,
        values="-Bdt block-size max-depth threshold time-style exclude",
        optional="time",
        reads="-X exclude-from",
        names="files0-from",
        follows="-L dereference",
        default=".",
    ),
    "df gdf": Options(
        flags="""
            -ahHiklPTv all human-readable si inodes local no-sync portability sync total print-type help version
        """,
        values="-Btx block-size type exclude-type",
        optional="output",
        operands="text*",
    ),
    "cd pushd": Options(flags="-LPe@", default="."),
    "readlink greadlink": Options(
        flags="""
            -femnqsvz canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero help
            version
        """
    ),
    "realpath grealpath": Options(
        flags="""
            -emLPqsz canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero help
            version
        """,
        reads="relative-to relative-base",
    ),
    "diff gdiff": Options(
        flags=f"""
            -qsecnyptTlrNPiEZbwBaduHv {DIGITS} normal brief report-identical-files ed rcs side-by-side left-column
            suppress-common-lines show-c-function expand-tabs initial-tab suppress-blank-empty paginate recursive
            no-dereference new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case ignore-case
            ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines text
            strip-trailing-cr minimal speed-large-files help version binary
        """,
        values="""
            -WFLxSIDUC width show-function-line label tabsize exclude starting-file ignore-matching-lines ifdef
            old-group-format new-group-format unchanged-group-format changed-group-format line-format old-line-format
            new-line-format unchanged-line-format horizon-lines palette
        """,
        optional="context unified color",
        reads="-X exclude-from from-file to-file",
        follows="always",
    ),
    "cmp gcmp": Options(flags="-blsv print-bytes verbose quiet silent help version", values="-in ignore-initial bytes"),
    "comm gcomm": Options(
        flags="-123z check-order nocheck-order total zero-terminated help version", values="output-delimiter"
    ),
    "cut gcut": Options(
        flags="-nsz complement only-delimited zero-terminated help version",
        values="-bcdf bytes characters delimiter fields output-delimiter",
    ),
    "tr gtr": Options(flags="-cCdst complement delete squeeze-repeats truncate-set1 help version", operands="text*"),
    "sort gsort": Options(
        flags="""
            -bdfgiMhnRrVcCmsuz ignore-leading-blanks dictionary-order ignore-case general-numeric-sort
            ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort debug merge
            stable unique zero-terminated help version
        """,
        values="-kSt key buffer-size field-separator parallel batch-size sort",
        optional="check",
        reads="-T random-source temporary-directory",
        names="files0-from",
        writes="-o output",
        runs="compress-program",
        complete=True,
    ),
    "uniq guniq": Options(
        flags=f"-cdDiuz count repeated ignore-case unique zero-terminated help version {DIGITS}",
        values="-fsw skip-fields skip-chars check-chars",
        optional="all-repeated group",
        operands="read write",
        complete=True,
    ),
    "shuf gshuf": SHUF,
    "nl": Options(
        flags="-p no-renumber help version",
        values="""
            -bdfhilnsvw body-numbering section-delimiter footer-numbering header-numbering line-increment
            join-blank-lines number-format number-separator starting-line-number number-width
        """,
    ),
    "tac": Options(flags="-br before regex help version", values="-s separator"),
    "rev": Options(flags="-hV0 help version zero"),
    "fold": Options(flags=f"-bs bytes spaces help version {DIGITS}", values="-w width"),
    "fmt": Options(
        flags=f"-cstu crown-margin split-only tagged-paragraph uniform-spacing help version {DIGITS}",
        values="-pwg prefix width goal",
    ),
    "expand unexpand": Options(flags=f"-ia initial all first-only help version {DIGITS}", values="-t tabs"),
    "pr": Options(
        flags=f"""
            -acdFfJmrtTv {DIGITS} across show-control-chars double-space form-feed join-lines merge no-file-warnings
            omit-header omit-pagination show-nonprinting help version
        """,
        values="-DhlNowW date-format header length first-line-number indent width page-width columns pages",
        optional="-einsS expand-tabs output-tabs number-lines separator sep-string",
    ),
    "paste": Options(flags="-sz serial zero-terminated help version", values="-d delimiters"),
    "join": Options(
        flags="-iz ignore-case check-order nocheck-order header zero-terminated help version", values="-aejotv12"
    ),
    "column": Options(
        flags="""
            -tdeLJxhV table table-noheadings table-header-repeat keep-empty-lines json fillrows help version
            table-maxout
        """,
        values="""
            -nONlEHRTWripcosC table-name table-order table-columns table-columns-limit table-noextreme table-hide
            table-right table-truncate table-wrap table-column tree tree-id tree-parent output-width output-separator
            separator
        """,
    ),
    "od god": Options(
        flags="-aBbcDdeFfHhIiLlOosvXx output-duplicates traditional help version",
        values="-AjNtS address-radix endian skip-bytes read-bytes format",
        optional="-w strings width",
    ),
    "hexdump hd": Options(
        flags="""
            -bcCdoxvhVX one-byte-octal one-byte-char one-byte-hex canonical two-bytes-decimal two-bytes-octal
            two-bytes-hex no-squeezing help version
        """,
        values="-ens format length skip",
        reads="-f format-file",
        optional="-L color",
    ),
    "xxd": Options(
        flags="""
            a autoskip b bits C capitalize d e E EBCDIC h help i include p ps postscript plain r revert u uppercase v
            version
        """,
        values="c cols g groupsize l len n name o offset s seek skip R",
        operands="read write",
        style="first",
        complete=True,
        stops=True,
    ),
    "strings": Options(
        flags=f"-afowhvVd all data print-file-name include-all-whitespace help version {DIGITS}",
        values="-nteTsU bytes radix encoding target output-separator unicode",
        at_files=True,
    ),
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum gmd5sum gsha256sum": CHECKSUM,
    "sum": Options(flags="-rs sysv help version"),
    "base64 base32 gbase64": Options(flags="-diD decode ignore-garbage help version", values="-wb wrap"),
    "basenc": Options(
        flags="""
            -di decode ignore-garbage base64 base64url base32 base32hex base16 base2msbf base2lsbf z85 help version
        """,
        values="-w wrap",
    ),
    "tsort": Options(flags="help version"),
    "file": Options(
        flags="""
            -bcDdEhikLlnNrsSvzZ0 brief checking-printout dereference no-dereference mime mime-type mime-encoding
            extension keep-going list no-buffer no-pad print0 raw special-files uncompress
            uncompress-noreport version help apple no-sandbox debug
        """,
        values="-eFP exclude exclude-quiet separator parameter",
        reads="-m magic-file",
        names="-f files-from",
        harms={"-C compile": WRITES, "-p preserve-date": "writes the times of files"},
        complete=True,
    ),
    "bat batcat delta": Options(
        flags="-npAPufhV plain number show-all force-colorization list-themes list-languages diff no-pager version",
        values="-lrHmd language line-range highlight-line theme style color paging wrap tabs terminal-width",
        harms={"pager=": RUNS, "config-file= generate-config-file diagnostic": "reads other settings"},
        abbreviates=False,
    ),
    "iconv": Options(
        flags="-cls list silent verbose help version", values="-ft from-code to-code", writes="-o output", complete=True
    ),
    "sdiff": Options(values="-wFI", writes="-o output", runs="diff-program"),
    "diff3": Options(values="-L label", runs="diff-program"),
    "xmllint": Options(writes="-o output", harms={"shell": "runs what it reads", "push catalogs": "loads other files"}),
}
