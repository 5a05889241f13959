"""Which variables a child may see."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


CREDENTIAL_WORDS = frozenset({
    "APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS", "DSN", "JWT",
    "KEY", "KEYS", "MNEMONIC", "PASS", "PASSCODE", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PRIVATE",
    "PWD", "SECRET", "SECRETS", "SSHPASS", "TOKEN", "TOKENS", "WEBHOOK",
})  # fmt: skip
CREDENTIAL_ENDINGS = (
    *("APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SIGNINGKEY", "ENCRYPTIONKEY", "MASTERKEY", "DBPASS"),
    *("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIALS"),
)
"""What ends a word that is written without a break, as in PGPASSWORD."""
LAST_WORDS = frozenset({"PW", "PASSWRD", "PSW", "PSWD"})
"""Words that mean a credential at the end of a name only: `PW_TEST` is a test runner's."""
PERHAPS = frozenset({"SEED", "SESSION", "SESS", "SID", "NONCE", "SALT", "PIN", "OTP", "TOTP", "LICENSE", "LICENCE"})
"""Words at the end of a name that mean a credential if the value looks like one."""
LOOKS_RANDOM = late_pattern(r"(?=.*\d)(?=.*[A-Za-z])[\w.+=:~-]{8,}|(?:[a-z]{3,8} ){11,23}[a-z]{3,8}", re.ASCII)
"""Letters and digits of a length that nobody types, or the words that a wallet is made again from."""
NOT_CREDENTIALS = frozenset({"COREPACK_INTEGRITY_KEYS", "OLDPWD", "PWD"})
COUNTED_TOKENS = late_pattern(
    r"\b(?:MAX|MIN|NUM|TOTAL)(?: (?:COMPLETION|CONTEXT|INPUT|NEW|OUTPUT|PROMPT|THINKING))? TOKENS\b"
    r"|\bTOKENS? (?:BUDGET|COUNT|LIMIT|PER)\b"
)
"""Tokens that a model counts, such as MAX_TOKENS, not ones that are credentials."""
SECRET_VALUE = late_pattern(
    r"""(?<![\w-])(?:sk-|xai-|pplx-|tvly-|nvapi-|glpat-|xapp-|xox[abeprs]-|pypi-|[rs]k_(?:live|test)_|gh[oprsu]_|github_pat_
        |dckr_pat_|dop_v1_|gsk_|hf_|npm_|r8_|shp(?:at|ca|pa|ss)_|whsec_|AIza|ATATT3|SG\.|ya29\.)[\w.-]{16}
      | (?<![\w-])A[KS]IA[A-Z0-9]{16}(?![\w-])
      | (?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.
      | ^\s*(?i:bearer|basic)\s+[\w.~+/=-]{8,}\s*$
      | (?:PRIVATE\ KEY(?:\ BLOCK)?-----|AGE-SECRET-KEY-1)
      | (?<!\w)(?i:[a-z][a-z0-9+.-]{0,30}://[^/\s:@]*:[^/\s@]+@)
      | (?:^|[;\s])(?i:password|passwd|pwd|accountkey|sharedaccess(?:key|signature))\s*=\s*[^;\s]""",
    re.VERBOSE,
)
"""Values that are secrets under any name: keys with well-known prefixes, passwords in URLs and connection strings."""
CHANGES_BASH = frozenset({
    "BASHOPTS", "BASH_COMPAT", "BASH_ENV", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "CDPATH", "ENV", "EXECIGNORE",
    "FUNCNEST", "GLOBIGNORE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "TIMEFORMAT", "TMOUT",
})  # fmt: skip
"""Variables by which bash runs or does something else than the script says."""
NON_INTERACTIVE = {
    "DEBIAN_FRONTEND": "noninteractive",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "",
    "TERM": "dumb",
}
"""Variables by which the usual programs do not page, prompt or open an editor."""
OURS_TO_SET = frozenset({"AGENT_TOOL_PYTHON", "AGENT_TOOL_TIMED_OUT", "AGENT_TOOL_TIMEOUT_SECONDS"})
SHORTEST_SECRET = 8
"""Shorter values are words that occur everywhere; hiding them would only garble output."""


class ParentEnvironment:
    """The application's variables less those that no child may see, looked through again only when they change."""

    def __init__(self, *, passed: Collection[str] = ()) -> None:
        self._passed = frozenset(passed)
        self._seen: dict[bytes, bytes] | None = None
        self._kept: dict[bytes, bytes] = {}

    def current(self) -> dict[bytes, bytes]:
        """What may pass of the parent's variables: the same object until they change, and never changed itself."""
        now = raw_environment()
        if now != self._seen:
            self._seen = dict(now)
            self._kept = encoded(child_environment(passed=self._passed))
        return self._kept

    def with_extra(self, extra: Mapping[str, str]) -> dict[bytes, bytes]:
        return self.current() | {as_bytes(name): as_bytes(value) for name, value in extra.items()}


def child_environment(parent: Mapping[str, str] | None = None, *, passed: Collection[str] = ()) -> dict[str, str]:
    """The parent's variables less credentials and less what would change bash."""
    source = os.environ if parent is None else parent
    return {name: value for name, value in source.items() if name in passed or may_pass(name, value)}


class ExactEnvironment(dict[bytes, bytes]):
    """Variables that a child gets as they are, with nothing that others get in a sandbox to know their way."""


def exact_environment(names: Iterable[str]) -> ExactEnvironment:
    """The parent's variables of these names, where they are set, and nothing else."""
    parent = raw_environment()
    return ExactEnvironment((name, parent[name]) for name in map(as_bytes, names) if name in parent)


def raw_environment() -> dict[bytes, bytes]:
    """The environment as Python holds it: comparing that costs a microsecond, decoding it sixty."""
    raw: dict[bytes, bytes] | None = getattr(os.environ, "_data", None)
    return encoded(os.environ) if raw is None else raw


def as_bytes(text: str) -> bytes:
    """Text for a child, which is UTF-8 whatever the locale; bytes that were no text come out as they went in."""
    return text.encode("utf-8", "surrogateescape")


def encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def may_pass(name: str, value: str) -> bool:
    """Whether a variable may reach a tool without being named by policy."""
    return passes_by_name(name) and not is_secret_value(name, value)


def looks_like_credential(name: str, value: str = "") -> bool:
    return credential_name(name) or is_secret_value(name, value)


def is_secret_value(name: str, value: str) -> bool:
    """Whether a value is a secret: by itself, or under a name that a secret may have."""
    if SECRET_VALUE.search(value) is not None:
        return True
    return LOOKS_RANDOM.fullmatch(value.strip()) is not None and words_of(name)[-1] in PERHAPS


def process_secrets(parent: Mapping[str, str] | None = None) -> dict[str, str]:
    """The secret values this process knows, by the names of their variables."""
    source = os.environ if parent is None else parent
    return {
        name: value
        for name, value in source.items()
        if len(value) >= SHORTEST_SECRET and looks_like_credential(name, value)
    }


@lru_cache(maxsize=4096)
def passes_by_name(name: str) -> bool:
    if name in CHANGES_BASH or name in OURS_TO_SET or name.startswith(("BASH_FUNC_", "AGENT_TOOL_CONFIG_")):
        return False
    return not credential_name(name)


@lru_cache(maxsize=4096)
def credential_name(name: str) -> bool:
    if name in NOT_CREDENTIALS:
        return False
    words = COUNTED_TOKENS.sub("", " ".join(words_of(name))).split()
    if words and words[-1] in LAST_WORDS:
        return True
    return not CREDENTIAL_WORDS.isdisjoint(words) or any(word.endswith(CREDENTIAL_ENDINGS) for word in words)


def words_of(name: str) -> list[str]:
    """The words of a name, divided by signs or by capitals, less the numbers at their ends."""
    divided = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    words = re.split(r"[^A-Z0-9]+", divided.upper())
    return [word if word == "AUTH0" else word.rstrip("0123456789") for word in words]
