"""Programs that talk to other machines: what they send must be certain, and what they get must not become a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import (
    RUNS,
    Concern,
    Options,
    guard_always_writes,
    guard_by_pattern,
    sent_uncertain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Guard


CURL = Options(
    flags="""
        -01246BGILMNSVZfgijklqsv# anyauth basic cert-status compressed crlf digest disable fail fail-early
        fail-with-body get globoff head http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only
        ignore-content-length include insecure ipv4 ipv6 junk-session-cookies list-only location manual no-alpn
        no-buffer no-keepalive no-progress-meter no-sessionid parallel parallel-immediate path-as-is post301 post302
        post303 progress-bar raw retry-all-errors retry-connrefused show-error silent ssl ssl-reqd tcp-fastopen
        tcp-nodelay tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-time verbose version next styled-output
    """,
    values="""
        -ACHXYdehmrwyz user-agent continue-at header request speed-limit data referer help max-time range write-out
        speed-time time-cond ciphers connect-timeout curves data-ascii data-binary data-raw data-urlencode json url
        url-query expect100-timeout keepalive-time limit-rate local-port max-filesize max-redirs parallel-max proto
        proto-default proto-redir rate request-target retry retry-delay retry-max-time tls-max tls13-ciphers
        happy-eyeballs-timeout-ms form-string interface noproxy
    """,
    writes="-ocD output cookie-jar dump-header trace trace-ascii stderr libcurl etag-save hsts alt-svc",
    harms={
        "-OJR remote-name remote-name-all remote-header-name remote-time output-dir create-dirs xattr": "writes a file",
        "-K config": "reads its options from a file",
        "-aTF upload-file form append": "sends files",
        "-n netrc netrc-file netrc-optional": "sends stored passwords",
        "-Eu cert key user pass pubkey oauth2-bearer aws-sigv4 negotiate ntlm delegation": "sends credentials",
        "-b cookie": "may send a file",
        "-pxU proxy preproxy socks4 socks4a socks5 socks5-hostname proxy1.0 proxy-user proxytunnel": "goes another way",
        "unix-socket abstract-unix-socket connect-to resolve dns-servers doh-url": "goes somewhere else than it says",
        "-QPt quote ftp-port telnet-option mail-from mail-rcpt": "is not about the web",
        "engine egd-file random-file cacert capath crlfile": "loads other code or trust",
        "location-trusted": "sends credentials elsewhere",
    },
    dash_is_output=True,
    complete=True,
)
CURL_DATA = names("d H data data-ascii data-binary data-urlencode json header url-query w write-out")
CURL_NAMED = names("data-urlencode url-query")
WEB = re.compile(r"https?://[^@\s]*|[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][^@\s]*)?", re.IGNORECASE)
PLAIN_ADDRESS = re.compile(r"https?://[\w.-]+(?::\d+)?/[\w./?=%,+-]*", re.ASCII)
WGET = Options(
    flags="""
        -qvdSc46E quiet verbose no-verbose debug server-response spider no-check-certificate no-cache no-cookies
        no-proxy inet4-only inet6-only https-only help version no-config no-hsts content-on-error
    """,
    values="""
        -tTwUO tries timeout wait user-agent output-document dns-timeout connect-timeout read-timeout header referer
        max-redirect waitretry secure-protocol
    """,
    harms={"-eioaPrmpkKNxnbBFHLIXDARlQ execute": "does more than to fetch a page"},
    complete=True,
)
PING = Options(flags="-46ADLOUVabdfhnqrv", values="-ciIlmMpQsStTwWF", complete=True)
DIG = Options(values="-bcpqtxyk", flags="-46hivmru", harms={"-f": "reads names from a file"}, complete=True)
BROWSER_OPTIONS = guard_by_pattern(
    r"--?(?:cmd_script|cmd_log|cfg|config|editor|exec|o$|eval|post_data|get_data|mime_header|traversal|crawl|lss|source-cache"
    r"|anonymous|download|remote|touch-files|homepage|session|auth|pauth|M$|X$)",
    "runs, writes or sends more than a page needs",
)
HTTPIE = Options(
    writes="-o output",
    values="-saApx style auth print pretty timeout",
    harms={
        "-d download": "writes a file",
        "session session-read-only cert cert-key proxy auth -a config-dir": "sends more",
    },
)
READS_FILES_OF_OTHERS = re.compile(r"(?:-@|.*(?:=|:=)?@)\S")


def guard_curl(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """Fetches pages: what it sends is spelled out, and nothing of it comes from a file."""
    words = [as_address(word) for word in words]
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)
    given = CURL.scan(words[1:])
    yield from given.concerns
    for name, text in given.options:
        if name in CURL_DATA and text and (text.startswith("@") or (name in CURL_NAMED and "@" in text)):
            yield Concern(message=f"'{text}' sends a file")
        if name in ("w", "write-out") and text and "output{" in text:
            yield Concern(message=f"'{text}' writes a file")
        if name.startswith("proto") and text and not re.fullmatch(r"[=,+-]*(?:https?[=,+-]*)+", text):
            yield Concern(message="is not about the web")
    for address in (*(word.value for word in given.operands), *given.values("url")):
        if address is None or not WEB.fullmatch(address):
            yield Concern(message=f"'{address}' is no plain address of the web")


def as_address(word: Word) -> Word:
    """An address with a question mark is a pattern to bash, of names that nobody has; all would be on that server."""
    is_address = word.kind == "glob" and PLAIN_ADDRESS.fullmatch(word.text)
    return literal_word(word.text, word.start, word.end) if is_address else word


def guard_wget(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """Writes a file, unless it prints or only looks."""
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)
    given = WGET.scan(words[1:])
    yield from given.concerns
    targets = given.values("O", "output-document")
    if not given.has("spider") and (not targets or any(target != "-" for target in targets)):
        yield Concern(message="wget writes a file")
    for operand in given.operands:
        if not WEB.fullmatch(operand.value or " "):
            yield Concern(message=f"'{operand.text}' is no plain address of the web")


def guard_ping(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """Without a count it does not end."""
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)
    given = PING.scan(words[1:])
    yield from given.concerns
    if not given.has("c", "w"):
        yield Concern(message="ping does not end by itself")


def guard_dig(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """Names that are spelled out."""
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)
    yield from DIG.scan([word for word in words[1:] if not word.prefix.startswith("+")]).concerns


def guard_certain(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """What goes out must be certain."""
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)


def guard_browser(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """Printing a page, and nothing that a person would have to do."""
    yield from BROWSER_OPTIONS(words, folder)
    if not any((word.value or "").lstrip("-") in ("dump", "source", "dump_source", "listonly") for word in words):
        yield Concern(message=f"{words[0].text} waits for a person")
    yield from (sent_uncertain(word) for word in words[1:] if word.value is None)


def guard_httpie(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """What is sent is spelled out, and nothing of it comes from a file."""
    given = HTTPIE.scan(words[1:])
    yield from given.concerns
    for word in words[1:]:
        if word.value is None or READS_FILES_OF_OTHERS.match(word.value):
            yield Concern(message=f"'{word.text}' may send a file")


NETWORK_GUARDS: dict[str, Guard] = {
    "curl": guard_curl,
    "wget": guard_wget,
    "ping ping6": guard_ping,
    "dig delv": guard_dig,
    "nslookup host whois traceroute tracepath mtr drill getent resolvectl": guard_certain,
    "lynx w3m links links2 elinks": guard_browser,
    "http https xh xhs httpie": guard_httpie,
    "aria2c axel yt-dlp youtube-dl gallery-dl": guard_always_writes,
    "tcpdump": Options(
        values="-cirsBCDFGMTVWyEmjQ", writes="-w", harms={"-zZ postrotate-command relinquish-privileges": RUNS}
    ),
    "tshark dumpcap": Options(
        values="-cirfYTeEoaobdjJs", writes="-w", harms={"-XK": "loads other code", "-F": "writes a file"}
    ),
    "nmap": guard_by_pattern(
        r"--?(?:o[NXSGA]|iL|script|datadir|resume|excludefile|servicedb|versiondb|interactive|stylesheet|proxies)",
        "runs scripts, or reads and writes files",
    ),
}
NETWORK_TABLES = {"curl": CURL, "wget": WGET}
