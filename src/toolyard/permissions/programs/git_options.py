"""The options of git and of its commands, as far as these only look or are given for everyday work."""

from __future__ import annotations

from functools import cache

from toolyard.permissions.programs.categories import each_name, names
from toolyard.permissions.programs.options import RUNS, WAITS, WRITES, Options

GLOBALS = Options(
    flags="""
        -pPvh paginate no-pager no-replace-objects literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs
        no-optional-locks no-lazy-fetch no-advice bare html-path man-path info-path version help
    """,
    values="-c namespace config-env super-prefix attr-source list-cmds",
    optional="exec-path",
    reads="-C git-dir work-tree",
    operands="text*",
    abbreviates=False,
    stops=True,
)
"""What stands before the command."""
DIGITS = "-0123456789"
DIFF_FLAGS = f"""
    -pusabwWzRrtcmDq {DIGITS} patch no-patch raw patch-with-raw patch-with-stat minimal patience histogram
    indent-heuristic no-indent-heuristic numstat shortstat summary compact-summary name-only name-status cumulative
    no-color no-color-moved no-color-moved-ws no-renames rename-empty no-rename-empty check full-index binary
    find-copies-harder irreversible-delete pickaxe-all pickaxe-regex text ignore-cr-at-eol ignore-space-at-eol
    ignore-space-change ignore-all-space ignore-blank-lines function-context exit-code quiet no-ext-diff no-textconv
    ita-invisible-in-index ita-visible-in-index no-prefix default-prefix cached staged merge-base ours theirs base
    no-relative no-abbrev no-stat
"""
DIFF_OPTIONAL = """
    -MCBX stat dirstat dirstat-by-file color color-moved color-words word-diff abbrev break-rewrites find-renames
    find-copies submodule ignore-submodules relative
"""
DIFF_VALUES = """
    -SGlUI unified inter-hunk-context ws-error-highlight diff-filter skip-to rotate-to src-prefix dst-prefix line-prefix
    output-indicator-new output-indicator-old output-indicator-context anchored diff-algorithm find-object
    word-diff-regex color-moved-ws stat-width stat-name-width stat-count stat-graph-width ignore-matching-lines
    max-depth
"""
DIFF_HARMS = {
    "output=": WRITES,
    "ext-diff": RUNS,
    "textconv": RUNS,
    "filters": RUNS,
    "no-index contents=": "reads any file",
}
LOG_FLAGS = """
    -giEFPvd oneline graph all follow no-decorate source use-mailmap mailmap no-use-mailmap no-mailmap full-diff
    log-size clear-decorations merges no-merges first-parent do-walk boundary left-right left-only right-only
    cherry-mark cherry-pick cherry reverse walk-reflogs reflog simplify-merges simplify-by-decoration dense sparse
    full-history show-pulls topo-order date-order author-date-order parents children timestamp encode-email-headers
    no-encode-email-headers abbrev-commit no-abbrev-commit relative-date no-expand-tabs no-notes standard-notes
    no-standard-notes cc combined-all-paths no-diff-merges remerge-diff remove-empty bisect stdin alternate-refs
    single-worktree ignore-missing not exclude-first-parent-only count use-bitmap-index regexp-ignore-case
    basic-regexp extended-regexp fixed-strings perl-regexp all-match invert-grep merge no-min-parents no-max-parents
    no-commit-id dd in-commit-order objects objects-edge unpacked indexed-objects no-object-names object-names header
    no-commit-header commit-header root always pretty-patch no-graph bisect-vars bisect-all maximal-only
"""
LOG_OPTIONAL = """
    decorate no-walk ancestry-path show-linear-break expand-tabs notes show-notes branches tags remotes disk-usage
    pretty
"""
LOG_VALUES = """
    -nL max-count skip since until after before since-as-filter max-age min-age author committer grep-reflog grep
    min-parents max-parents glob exclude exclude-hidden date format encoding decorate-refs decorate-refs-exclude filter
    missing progress diff-merges creation-factor
"""
LOG = Options(
    flags=DIFF_FLAGS + LOG_FLAGS,
    values=DIFF_VALUES + LOG_VALUES,
    optional=DIFF_OPTIONAL + LOG_OPTIONAL,
    reads="-O",
    harms={**DIFF_HARMS, "show-signature": RUNS},
)
REFS = """
    count contains no-contains points-at format sort exclude
"""
TABLES = each_name(
    {
        "log show whatchanged diff-tree diff-index diff-files range-diff reflog rev-list cherry show-branch": LOG,
        "stash": Options(
            flags=DIFF_FLAGS + LOG_FLAGS + "-k include-untracked only-untracked keep-index no-keep-index index",
            values=DIFF_VALUES + LOG_VALUES + "message",
            optional=DIFF_OPTIONAL + LOG_OPTIONAL,
            reads="-O",
            names="pathspec-from-file",
            harms={**DIFF_HARMS, "show-signature": RUNS},
            operands="text read*",
        ),
        "diff": Options(
            flags=DIFF_FLAGS + "cc merge-base combined-all-paths root",
            values=DIFF_VALUES + "diff-merges",
            optional=DIFF_OPTIONAL,
            reads="-O",
            harms=DIFF_HARMS,
        ),
        "shortlog": Options(
            flags="-cnseh committer numbered summary email " + LOG_FLAGS.replace("-giEFPvd", ""),
            values="group " + LOG_VALUES.replace("-nL", ""),
            optional="-w " + LOG_OPTIONAL,
            harms={"output=": WRITES},
        ),
        "blame annotate": Options(
            flags=f"""
                -bfnpctlsewh {DIGITS} incremental root show-stats progress no-progress score-debug show-name show-number
                porcelain line-porcelain show-email color-lines color-by-age minimal first-parent reverse
            """,
            values="-L ignore-rev date since until after before diff-algorithm encoding",
            optional="-CM abbrev",
            reads="-S ignore-revs-file",
            harms=DIFF_HARMS,
        ),
        "grep": Options(
            flags=f"""
                -viwaIrEGFPnhHlLzocpWq {DIGITS} cached untracked exclude-standard no-exclude-standard recurse-submodules
                no-recurse-submodules invert-match ignore-case word-regexp text recursive no-recursive
                extended-regexp basic-regexp fixed-strings perl-regexp line-number column full-name files-with-matches
                name-only files-without-match null only-matching count break heading show-function function-context and
                or not quiet all-match no-textconv no-color
            """,
            values="-eABCm max-depth threads max-count after-context before-context context",
            optional="color",
            reads="-f",
            harms={"no-index": "reads any file", "-O? open-files-in-pager?": RUNS, "ext-grep": RUNS, "textconv": RUNS},
            operands="text read*",
            when={"-ef": "read*"},
        ),
        "status": Options(
            flags="""
                -vsbzh verbose short branch show-stash ahead-behind no-ahead-behind long null renames no-renames
                no-column
            """,
            optional="-uM porcelain untracked-files ignored ignore-submodules column find-renames",
        ),
        "ls-files": Options(
            flags="""
                -ztvfcdmoisku cached deleted modified others ignored stage killed directory no-empty-directory eol
                empty-directory unmerged resolve-undo exclude-standard full-name recurse-submodules error-unmatch debug
                deduplicate sparse
            """,
            values="-x exclude with-tree format",
            optional="abbrev",
            reads="-X exclude-from exclude-per-directory",
        ),
        "ls-tree": Options(
            flags="-drtzl long name-only name-status object-only full-name full-tree",
            values="format",
            optional="abbrev",
        ),
        "rev-parse": Options(
            flags="""
                -q show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree
                is-inside-git-dir is-bare-repository is-shallow-repository show-superproject-working-tree verify quiet
                symbolic symbolic-full-name all not sq sq-quote revs-only no-revs flags no-flags local-env-vars
                shared-index-path keep-dashdash stop-at-non-option stuck-long
            """,
            values="default prefix path-format since until after before glob exclude",
            optional="abbrev-ref short branches tags remotes disambiguate show-object-format show-ref-format",
            reads="resolve-git-dir git-path",
            harms={"parseopt": "reads a description of options"},
            operands="text*",
        ),
        "describe": Options(
            flags="contains debug all tags long first-parent exact-match always",
            values="candidates match exclude",
            optional="abbrev dirty broken",
            operands="text*",
        ),
        "cat-file": Options(
            flags="-eptsz allow-unknown-type use-mailmap mailmap batch-all-objects buffer follow-symlinks unordered",
            values="path filter",
            optional="batch batch-check batch-command",
            harms={"textconv": RUNS, "filters": RUNS},
            operands="text*",
        ),
        "show-ref": Options(
            flags="-dqs tags heads branches verify head dereference quiet exists",
            optional="hash abbrev exclude-existing",
            operands="text*",
        ),
        "merge-base": Options(flags="-a all octopus independent is-ancestor fork-point", operands="text*"),
        "for-each-ref": Options(
            flags="-sp shell perl python tcl ignore-case stdin omit-empty include-root-refs",
            values=REFS,
            optional="color merged no-merged",
            operands="text*",
        ),
        "name-rev": Options(
            flags="tags all stdin annotate-stdin name-only no-undefined always", values="refs exclude", operands="text*"
        ),
        "var": Options(flags="-l", operands="text*"),
        "count-objects": Options(flags="-vH verbose human-readable", operands="text*"),
        "check-ignore": Options(flags="-qvzn quiet verbose non-matching no-index"),
        "check-attr": Options(flags="-az all cached", values="source", operands="text*"),
        "worktree": Options(flags="-vz porcelain verbose", values="expire", operands="text*"),
        "remote": Options(flags="-vn verbose push all", operands="text*"),
        "branch": Options(
            flags="""
                -arvlqtidDmMcCf all remotes verbose list show-current no-color no-column ignore-case delete move copy
                force edit-description unset-upstream create-reflog quiet no-abbrev
            """,
            values="-u set-upstream-to contains no-contains points-at format sort",
            optional="column color abbrev track merged no-merged",
            operands="text*",
        ),
        "tag": Options(
            flags="-lasvfdie list annotate sign verify force delete create-reflog no-column ignore-case edit",
            values="-mu message local-user contains no-contains points-at format sort cleanup",
            optional="-n column color merged no-merged",
            reads="-F file",
            operands="text*",
        ),
        "config": Options(
            flags="""
                -lz global system local worktree get get-all get-regexp get-urlmatch list fixed-value get-color
                get-colorbool bool int bool-or-int bool-or-str path expiry-date null name-only includes no-includes
                show-origin show-scope no-type all show-names
            """,
            values="-t blob type default regexp value url",
            reads="-f file",
            harms={"-e edit add replace-all unset unset-all rename-section remove-section": "sets what git runs later"},
            operands="text*",
        ),
        "add": Options(
            flags="""
                -nvfuNA dry-run verbose force update renormalize intent-to-add all no-all ignore-removal
                no-ignore-removal refresh ignore-errors ignore-missing sparse no-warn-embedded-repo pathspec-file-nul
            """,
            values="chmod",
            names="pathspec-from-file",
            harms={"-eip edit interactive patch": WAITS},
        ),
    }
)
REMOTE = {"upload-pack= receive-pack= exec=": RUNS}
MERGES = "names a program to merge with"
CLONE = {**REMOTE, "-u= -c= config= template=": "sets what git runs", "separate-git-dir=": WRITES}
HARMS: dict[str, dict[str, str]] = {
    "format-patch": {**DIFF_HARMS, "-o= output-directory=": WRITES},
    **dict.fromkeys(names("fetch push ls-remote fetch-pack send-pack"), REMOTE),
    "pull": {**REMOTE, "-s= strategy=": MERGES},
    "clone": CLONE,
    "submodule": {"template=": "sets what git runs"},
    "init": {"template=": "sets what git runs", "separate-git-dir=": WRITES},
    "archive": {"-o= output=": WRITES, "exec= remote=": RUNS},
    "rebase": {"-x= -i exec= interactive edit-todo": RUNS, "-s= strategy=": MERGES},
    "merge": {"-s= strategy=": MERGES},
    "cherry-pick": {"strategy=": MERGES},
    "revert": {"strategy=": MERGES},
    "apply": {"unsafe-paths": "writes outside of the workspace", "directory=": WRITES},
    "am": {"directory=": WRITES, "interactive": RUNS},
    "fast-export": {"export-marks=": WRITES},
    "interpret-trailers": {"in-place": WRITES},
    "replace": {"edit": RUNS},
}
"""Options that matter, of commands whose other options do not."""
VALUES = {
    "commit": "-mFcCt message file author date reuse-message reedit-message template cleanup fixup squash trailer",
    "clone": "-boj branch origin depth reference jobs filter shallow-since shallow-exclude",
    "fetch": "-jo depth deepen shallow-since jobs refmap negotiation-tip server-option",
    "push": "-o push-option repo",
    "rebase": "-XC onto strategy-option",
    "merge": "-mFX message file strategy-option",
    "pull": "-jX depth jobs strategy-option",
    "cherry-pick": "-mX mainline strategy-option",
    "revert": "-mX mainline strategy-option",
}


@cache
def table_of(command: str) -> Options:
    """The options of one command of git, as far as they are known."""
    if command in TABLES:
        return TABLES[command]
    return Options(
        flags="oneline stat name-only name-status cached staged patch numstat shortstat summary graph all follow quiet",
        values=VALUES.get(command, ""),
        harms=HARMS.get(command, {}),
    )
