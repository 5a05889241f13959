"""Programs that look at the system and its keys, with options by which they change it, run or write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import ELSEWHERE, LOADS, RUNS, WRITES, Concern, Options, guard_by_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


def date_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Without a plus before it, an operand sets the clock."""
    for operand in given.operands:
        if not operand.prefix.startswith("+"):
            yield Concern(message=f"'{operand.text}' sets the clock")


DATE = Options(
    flags="-uR utc universal rfc-email rfc-2822 debug resolution help version",
    values="-d date rfc-3339",
    reads="-r reference",
    optional="-I iso-8601",
    harms={"-s= set=": "sets the clock", "-f= file=": "reads dates from a file"},
    operands="text*",
    more=date_concerns,
    complete=True,
)


def man_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """A page named by a path is any file, with macros in it."""
    for operand in given.operands:
        if operand.value is None or "/" in operand.value:
            yield Concern(message=f"'{operand.text}' is not the name of a page")


MAN = Options(
    flags="""
        -afkwWiIuchV all whatis apropos where path location where-cat location-cat ignore-case match-case update
        catman help version usage regex wildcard names-only no-subpages no-hyphenation no-justification
    """,
    values="-sSLmeR section locale systems extension recode",
    harms={
        "-P= pager=": RUNS,
        "-H? html?": RUNS,
        "-X? gxditview?": RUNS,
        "-Z ditroff": "prints what another program reads",
        "-T? troff-device?": RUNS,
        "-t troff": RUNS,
        "-C= config-file=": "reads its settings from a file",
        "-l local-file": "formats any file",
        "-M= manpath=": "reads pages from any folder",
        "-p= preprocessor=": RUNS,
        "-D default": "reads its settings anew",
        "-E= encoding=": RUNS,
        "-K global-apropos": "searches everything",
    },
    operands="text*",
    more=man_concerns,
    complete=True,
)


def hostname_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """An operand is a new name."""
    if given.operands:
        yield Concern(message="hostname with a name sets it")


HOSTNAME = Options(
    flags="-aAdfiIsyVh alias all-fqdns domain fqdn long ip-address all-ip-addresses short yp nis version help",
    harms={"-F= file=": "sets the name from a file", "-b boot": "sets the name"},
    operands="text*",
    more=hostname_concerns,
    complete=True,
)
TAKES_A_WORD = re.compile(r"[A-Za-z]*[kNOopqtU]")
SHOWS_VARIABLES = re.compile(r"(?i)environ")
ROW_WITH_VARIABLES = re.compile(r"[A-Za-z]*e[A-Za-z]*")


def ps_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """A bare `e` among letters without a dash shows the variables of processes, with what is secret in them."""
    before = ""
    for operand in given.operands:
        value = operand.value
        is_row = value is not None and ROW_WITH_VARIABLES.fullmatch(value) and not TAKES_A_WORD.fullmatch(before)
        if value is None or is_row or SHOWS_VARIABLES.search(value):
            yield Concern(message="ps e shows the environment of processes")
        before = value or ""
    if any(SHOWS_VARIABLES.search(value or "environ") for value in given.values(*PS_FORMATS)):
        yield Concern(message="ps shows the environment of processes")


PS_FORMATS = ("o", "O", "k", "format", "sort")
PS = Options(
    flags="-AadefFjlLMmNTVyZcHwx forest deselect headers no-headers info version cumulative context",
    values="""
        -CGOgkopqstuU format Group User cols columns group lines pid ppid quick-pid rows sid sort tty user width
    """,
    optional="help",
    harms={"-E": "shows the environment of processes"},
    operands="text*",
    more=ps_concerns,
    complete=True,
    abbreviates=False,
)
SYSTEMD_READS = frozenset({
    "status", "show", "cat", "list-units", "list-unit-files", "list-timers", "list-sockets", "list-dependencies",
    "list-jobs", "is-active", "is-enabled", "is-failed", "is-system-running", "get-default", "help", "show-environment",
})  # fmt: skip
CHANGES = "changes the system"


def systemctl_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Only what looks."""
    for verb in given.operands[:1]:
        if verb.value not in SYSTEMD_READS:
            yield Concern(message=f"systemctl {verb.text} changes services")


SYSTEMCTL = Options(
    flags="""
        -alqrh all full quiet recursive reverse after before no-pager no-legend no-ask-password plain value show-types
        user system global failed with-dependencies legend version help
    """,
    values="-tpnosP type property lines output state signal kill-who job-mode timestamp",
    harms={"-H= -M= host= machine= root= image=": "is about another system"},
    operands="text*",
    more=systemctl_concerns,
)
OPENSSL_NEVER = names("s_client s_server s_time ca ocsp ts cms smime engine speed rehash srp cmp fipsinstall")


def openssl_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """What talks to others is more than looking at keys and sums."""
    for command in given.operands[:1]:
        if command.value in OPENSSL_NEVER:
            yield Concern(message=f"'openssl {command.value}' talks to others, or keeps a store of certificates")


OPENSSL = Options(
    values="inform outform passin passout subj days set_serial salt iter checkhost checkip purpose name",
    reads="in inkey key CAfile CApath CAstore cert certs rand untrusted",
    writes="""
        out keyout writerand sess_out keylogfile outdir respout reqout CAserial caserial signer certsout certout xout
        naccept
    """,
    harms={
        "engine= engine_impl= keyform_engine= provider= provider-path= provparam= propquery=": LOADS,
        "prverify_engine= ssl_client_engine= config= proxy= CAcreateserial extfile=": ELSEWHERE,
    },
    more=openssl_concerns,
    style="single",
)


def key_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Only looking at keys."""
    if not given.has("l", "L", "F", "y") or given.operands:
        yield Concern(message="it makes, changes or loads keys")


KEYS = Options(flags="-lLvqyH", values="-EF", reads="-f", more=key_concerns, complete=True)


def guard_ldd(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """It may start what it looks at."""
    for word in words[1:]:
        if word.value is None or (not word.value.startswith("-") and folder.contains(word.value)):
            yield Concern(message=f"ldd may run '{word.text}'")


SYSTEM_GUARDS: dict[str, Guard] = {
    "openssl": OPENSSL,
    "fuser": Options(flags="-almMnuvw46is", harms={"-k kill": "ends processes"}),
    "gpg gpg2": Options(
        writes="-o output",
        harms={
            "photo-viewer exec-path agent-program dirmngr-program keyserver pinentry-mode gpgconf-test": RUNS,
            "homedir options keyring secret-keyring trustdb-name": "takes its settings from elsewhere",
            "import delete-key delete-keys delete-secret-key delete-secret-keys edit-key gen-key full-gen-key": CHANGES,
            "export-secret-keys export-secret-subkeys passphrase passphrase-file passphrase-fd": "gives keys away",
            "recv-keys send-keys refresh-keys search-keys fetch-keys": "goes to other machines",
        },
    ),
    "fzf sk peco": guard_by_pattern(
        r"--(?:exec|preview|bind|history|listen|with-shell|walker|tmux|filter-command|become|execute|jump)", RUNS
    ),
    "sysctl": guard_by_pattern(r"-w|--write|-p|--load|-[a-z]*[wpf]|--system|[^-].*=", CHANGES),
    "ssh-keygen ssh-add": KEYS,
    "ps": PS,
    "ldd": guard_ldd,
    "date gdate": DATE,
    "man": MAN,
    "hostname": HOSTNAME,
    "systemctl": SYSTEMCTL,
    "ss": Options(harms={"-K kill": "ends connections", "-D diag": WRITES}),
    "dmesg": Options(
        harms={
            "-cCDEn clear read-clear console-off console-on console-level": "changes the kernel's log",
            "-wW follow follow-new": "does not end by itself",
        }
    ),
    "journalctl": Options(
        values="-nuptSUDcgo lines unit priority identifier since until directory cursor grep output boot",
        optional="-b",
        harms={
            "vacuum-size vacuum-time vacuum-files rotate flush sync relinquish-var setup-keys": "changes the log",
            "-f follow": "does not end by itself",
        },
    ),
}
