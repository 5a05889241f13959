"""Programs that search: for files by their names and properties, and for text in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.programs.files.looking import DIGITS
from toolyard.permissions.programs.options import RUNS, WRITES, Options

if TYPE_CHECKING:
    from toolyard.permissions.programs.options import Guard


GREP = Options(
    flags=f"""
        -EFGPiyuwxzsvVbnHhoqaIrRLlcTZUX {DIGITS} extended-regexp fixed-strings basic-regexp perl-regexp ignore-case
        no-ignore-case word-regexp line-regexp null-data no-messages invert-match version help byte-offset line-number
        line-buffered with-filename no-filename only-matching quiet silent text recursive dereference-recursive
        files-without-match files-with-matches count initial-tab null no-group-separator binary unix-byte-offsets
    """,
    values="""
        -emdDBAC regexp max-count label binary-files directories devices include exclude exclude-dir before-context
        after-context context group-separator
    """,
    optional="color colour",
    reads="-f file exclude-from",
    operands="text read*",
    when={"-ef regexp file": "read*"},
    follows="-R dereference-recursive",
    default=".",
)
RG_SWITCHES = """
    auto-hybrid-regex binary block-buffered byte-offset column crlf fixed-strings follow glob-case-insensitive heading
    hidden ignore ignore-dot ignore-exclude ignore-files ignore-file-case-insensitive ignore-global ignore-messages
    ignore-parent ignore-vcs include-zero invert-match json line-buffered line-number max-columns-preview messages mmap
    multiline multiline-dotall one-file-system pcre2 pcre2-unicode require-git stats text trim unicode
"""
RG = Options(
    flags=f"""
        -0FHIKLNPSUVabchilnopqsuvwx. {RG_SWITCHES} {" ".join(f"no-{name}" for name in RG_SWITCHES.split())}
        case-sensitive count count-matches debug trace files files-with-matches files-without-match help ignore-case
        line-regexp no-config no-filename no-encoding no-context-separator null null-data only-matching passthru
        passthrough pcre2-version pretty quiet smart-case sort-files type-list unrestricted version vimgrep
        with-filename word-regexp no-pre no-hostname-bin stop-on-nonmatch no-search-zip no-sort-files
    """,
    values="""
        -ABCEMTdegjmrt after-context before-context context glob iglob type type-not type-clear max-count max-depth
        maxdepth max-columns max-filesize regexp replace sort sortr threads encoding color colors context-separator
        engine type-add pre-glob dfa-size-limit regex-size-limit field-context-separator field-match-separator
        path-separator hyperlink-format generate
    """,
    reads="-f file ignore-file",
    runs="pre hostname-bin",
    harms={"-z search-zip": RUNS},
    operands="text read*",
    when={"-ef regexp file": "read*", "files type-list": "read*"},
    follows="-L follow",
    default=".",
    abbreviates=False,
)
FD = Options(
    flags="""
        -HIuasilpLgF01qVh hidden no-ignore no-ignore-vcs no-ignore-parent no-global-ignore-file unrestricted
        absolute-path case-sensitive ignore-case fixed-strings follow full-path glob list-details print0 quiet prune
        help version regex literal show-errors strip-cwd-prefix one-file-system mount xdev relative-path max-one-result
        no-follow no-hidden ignore ignore-vcs no-require-git require-git hyperlink
    """,
    values="""
        -detESojc max-depth maxdepth min-depth exact-depth extension type exclude size changed-within changed-before
        change-newer-than change-older-than newer older owner threads color max-results path-separator format
        batch-size max-buffer-time and gen-completions
    """,
    reads="-C base-directory search-path ignore-file",
    runs="-xX exec exec-batch",
    follows="-L follow",
    operands="text read*",
    default=".",
    abbreviates=False,
)
TREE = Options(
    flags="""
        -adflixDFghpqstuvrcNQSACnJXUZ dirsfirst filesfirst noreport du si inodes device prune help version gitignore
        matchdirs metafirst ignore-case nolinks fflinks hyperlink opt-toggle compress
    """,
    values="-LPIHT filelimit timefmt sort charset scheme authority",
    reads="gitfile infofile hintro houtro",
    writes="-o output",
    harms={"-R": "writes a file into each folder", "fromfile fromtabfile filesfrom": "names files from elsewhere"},
    follows="-l",
    default=".",
    abbreviates=False,
    glues=False,
)
SEARCHING_GUARDS: dict[str, Guard] = {
    "grep egrep fgrep ggrep zgrep zegrep zfgrep": GREP,
    "rg ripgrep": RG,
    "fd fdfind": FD,
    "tree": TREE,
    "ag ack": Options(
        flags="""
            -0123456789acDFfHhiLlmnoQRrSsUuvwXz all-types case-sensitive column color nocolor count files-with-matches
            files-without-matches fixed-strings follow group nogroup heading noheading hidden ignore-case invert-match
            line-numbers nonumbers literal null numbers one-device parallel print-all-files print0 search-files
            search-binary search-zip silent skip-vcs-ignores smart-case stats unrestricted version vimgrep word-regexp
            list-file-types help perl python js cpp cc java html css go rust ruby sql yaml json markdown md
        """,
        values="-ABCGWgm after before context depth file-search-regex ignore ignore-dir max-count width workers type",
        reads="-p path-to-ignore",
        runs="pager",
        harms={"output=": WRITES, "ackrc=": "reads other settings"},
        operands="text read*",
        when={"-g": "read*"},
        follows="-f follow",
        default=".",
        abbreviates=False,
    ),
}
