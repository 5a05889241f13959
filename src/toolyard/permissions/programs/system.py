"""Programs that look at the system, its network and its keys, with options by which they change it, run or write."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.compilers import guard_by, guard_by_pattern
from toolyard.permissions.programs.known import names
from toolyard.permissions.programs.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


RUNS = "runs another program"
CHANGES = "changes the system"
TCPDUMP = options(
    values="-cirsBCDFGMTVWyEmjQ", writes="-w", harms={"-zZ postrotate-command relinquish-privileges": RUNS}
)
TSHARK = options(values="-cirfYTeEoaobdjJs", writes="-w", harms={"-XK": "loads other code", "-F": "writes a file"})
NMAP = re.compile(
    r"--?(?:o[NXSGA]|iL|script|datadir|resume|excludefile|servicedb|versiondb|interactive|stylesheet|proxies)"
)
FUSER = options(flags="-almMnuvw46is", harms={"-k kill": "ends processes"})
GPG = options(
    writes="-o output",
    harms={
        "photo-viewer exec-path agent-program dirmngr-program keyserver pinentry-mode gpgconf-test": RUNS,
        "homedir options keyring secret-keyring trustdb-name": "takes its settings from elsewhere",
        "import delete-key delete-keys delete-secret-key delete-secret-keys edit-key gen-key full-gen-key": CHANGES,
        "export-secret-keys export-secret-subkeys passphrase passphrase-file passphrase-fd": "gives keys away",
        "recv-keys send-keys refresh-keys search-keys fetch-keys": "goes to other machines",
    },
)
EXIFTOOL = re.compile(
    r"-(?:if|config|o|out|@|execute|stay_open|w|W|textout|tagout|overwrite_original|use|p|j\w*[+=]|csv[+=])|-[\w:#-]+[-+^]?[<=]",
    re.IGNORECASE,
)
FZF = re.compile(r"--(?:exec|preview|bind|history|listen|with-shell|walker|tmux|filter-command|become|execute|jump)")
SYSCTL = re.compile(r"-w|--write|-p|--load|-[a-z]*[wpf]|--system|[^-].*=")
SSH_KEYS = frozenset({"-l", "-L", "-lf", "-lvf", "-F", "-y"})
ENVIRONMENT_OF_PROCESSES = re.compile(r"[A-Zabcdf-z]*e[A-Za-z]*")
READS_FILES_OF_OTHERS = re.compile(r"(?:-@|.*(?:=|:=)?@)\S")
PAX = options(harms={"-rw": "writes files", "-s": "changes names"}, values="-f")
AR = re.compile(r"-?[a-zA-Z]*[dmqrsx]|--plugin|@|--output")
BROWSER = re.compile(
    r"--?(?:cmd_script|cmd_log|cfg|config|editor|exec|o$|eval|post_data|get_data|mime_header|traversal|crawl|lss|source-cache"
    r"|anonymous|download|remote|touch-files|homepage|session|auth|pauth|M$|X$)"
)
HTTPIE = options(
    writes="-o output",
    values="-saApx style auth print pretty timeout",
    harms={
        "-d download": "writes a file",
        "session session-read-only cert cert-key proxy auth -a config-dir": "sends more",
    },
)


def guard_openssl(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """What writes, signs, loads code or talks to others is more than looking at keys and sums."""
    if len(words) > 1 and words[1].value in OPENSSL_NEVER:
        yield Concern(message=f"'openssl {words[1].value}' talks to others, or keeps a store of certificates")
    for before, word in pairwise(words):
        value = word.value if word.value is not None else word.prefix
        if OPENSSL_HARMS.fullmatch(value.partition("=")[0]):
            yield Concern(message=f"'{word.text}' loads other code or goes elsewhere")
        elif OPENSSL_WRITES.fullmatch(before.value or ""):
            yield Concern(message=f"'{before.text}' writes a file", writes=word)
        elif OPENSSL_WRITES.fullmatch(value.partition("=")[0]) and "=" in value:
            yield Concern(message=f"'{word.text}' writes a file", writes=literal_word(value.partition("=")[2]))
        elif word.value is None and word.may_be_option:
            yield Concern(message=f"what '{word.text}' becomes may be an option")


OPENSSL_NEVER = names("s_client s_server s_time ca ocsp ts cms smime engine speed rehash srp cmp fipsinstall")
OPENSSL_WRITES = re.compile(
    r"--?(?:out|keyout|writerand|sess_out|keylogfile|outdir|respout|reqout|CAserial|caserial|signer|certsout|certout|xout|naccept)"
)
OPENSSL_HARMS = re.compile(
    r"--?(?:engine\w*|provider.*|config|proxy|CAcreateserial|prverify_engine|ssl_client_engine|propquery|extfile)"
)


def guard_keys(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Only looking at keys."""
    values = [word.value for word in words[1:]]
    if not values or values[0] not in SSH_KEYS or "-D" in values or "-w" in values or "-N" in values:
        yield Concern(message=f"{words[0].text} makes, changes or loads keys")


def guard_ps(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """A bare `e` shows the variables of other processes, with what is secret in them."""
    if len(words) > 1 and ENVIRONMENT_OF_PROCESSES.fullmatch(words[1].value or ""):
        yield Concern(message="ps e shows the environment of processes")


def guard_ldd(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """It may start what it looks at."""
    for word in words[1:]:
        if word.value is None or (not word.value.startswith("-") and place.contains(word.value)):
            yield Concern(message=f"ldd may run '{word.text}'")


def guard_dd(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """`of=` names the file that is written."""
    for word in words[1:]:
        if word.value is None or word.value.startswith("of="):
            yield Concern(message=f"'{word.text}' writes a file", writes=literal_word((word.value or "")[3:]))


def guard_browser(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """Printing a page, and nothing that a person would have to do."""
    yield from guard_by_pattern(BROWSER, "runs, writes or sends more than a page needs")(words, place)
    if not any((word.value or "").lstrip("-") in ("dump", "source", "dump_source", "listonly") for word in words):
        yield Concern(message=f"{words[0].text} waits for a person")
    for word in words[1:]:
        if word.value is None:
            yield Concern(message=f"what '{word.text}' becomes goes to another machine")


def guard_httpie(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """What is sent is spelled out, and nothing of it comes from a file."""
    given = HTTPIE.scan(words[1:])
    yield from given.concerns
    for word in words[1:]:
        if word.value is None or READS_FILES_OF_OTHERS.match(word.value):
            yield Concern(message=f"'{word.text}' may send a file")


def guard_downloads(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """What it fetches becomes a file."""
    if [word.value for word in words[1:]] not in (["--help"], ["--version"]):
        yield Concern(message=f"{words[0].text} writes files")


SYSTEM_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    "openssl": guard_openssl,
    "tcpdump": guard_by(TCPDUMP),
    **dict.fromkeys(names("tshark dumpcap"), guard_by(TSHARK)),
    "nmap": guard_by_pattern(NMAP, "runs scripts, or reads and writes files"),
    "fuser": guard_by(FUSER),
    **dict.fromkeys(names("gpg gpg2"), guard_by(GPG)),
    "exiftool": guard_by_pattern(EXIFTOOL, "runs code or writes files"),
    **dict.fromkeys(names("fzf sk peco"), guard_by_pattern(FZF, RUNS)),
    "sysctl": guard_by_pattern(SYSCTL, CHANGES),
    **dict.fromkeys(names("ssh-keygen ssh-add"), guard_keys),
    "ps": guard_ps,
    "ldd": guard_ldd,
    "dd": guard_dd,
    "pax": guard_by(PAX),
    "ar": guard_by_pattern(AR, "changes an archive, or takes it apart"),
    **dict.fromkeys(names("lynx w3m links links2 elinks"), guard_browser),
    **dict.fromkeys(names("http https xh xhs httpie"), guard_httpie),
    **dict.fromkeys(names("aria2c axel yt-dlp youtube-dl gallery-dl"), guard_downloads),
}
