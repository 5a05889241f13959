"""Who is at fault when a service does not answer, what to do about it, and whether trying again may help."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from toolyard.core.model import ProviderFault
    from toolyard.core.tool import Json

LONGEST_QUOTE = 500
RETRIED: frozenset[ProviderFault] = frozenset({"rate_limit", "overloaded", "network", "server", "answer"})
HINTS: dict[ProviderFault, str] = {
    "setup": "check 'api_key', 'base_url' and 'model' of the provider",
    "request": "check 'options' and the tools; the service does not take what was sent",
    "too_long": "shorten the conversation, or use a model with a larger window",
    "rate_limit": "wait, or ask for a higher limit for the account",
    "overloaded": "try again later, or use another model",
    "network": "check the connection, a proxy, and 'base_url'",
    "server": "try again later",
    "answer": "try again; if it stays so, the server may not speak this API",
}
BY_STATUS: dict[int, ProviderFault] = {
    **dict.fromkeys((401, 402, 403, 404, 405, 407), "setup"),
    **dict.fromkeys((408, 504), "network"),
    **dict.fromkeys((409, 425), "server"),
    **dict.fromkeys((503, 529), "overloaded"),
    413: "too_long",
    429: "rate_limit",
}
BY_NAME: dict[str, ProviderFault] = {
    **dict.fromkeys(("insufficient_quota", "billing_error", "billing_hard_limit_reached"), "setup"),
    **dict.fromkeys(("authentication_error", "permission_error", "not_found_error", "model_not_found"), "setup"),
    **dict.fromkeys(("context_length_exceeded", "request_too_large", "exceed_context_size_error"), "too_long"),
    **dict.fromkeys(("rate_limit_error", "rate_limit_exceeded"), "rate_limit"),
    "overloaded_error": "overloaded",
    **dict.fromkeys(("api_error", "server_error", "conflict_error"), "server"),
    "timeout_error": "network",
    **dict.fromkeys(("invalid_request_error", "invalid_prompt"), "request"),
}
"""Codes and types of errors in bodies; those before come before what the status says."""
TELLING = ("insufficient_quota", "billing_error", "billing_hard_limit_reached", "context_length_exceeded",
           "request_too_large", "exceed_context_size_error", "overloaded_error")  # fmt: skip
"""Those that say more than the status that they come with."""
TOO_LONG = re.compile(
    r"prompt is too long|maximum context length|context window|context length|exceeds? the (available )?context size"
    r"|input length and `?max_tokens`? exceed|too many tokens|reduce the length",
    re.IGNORECASE,
)


class TryAgain(Exception):
    """There is no answer yet, and the same request may well get one."""

    def __init__(self, error: ProviderError, *, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after
        """How many seconds the service wants to be left alone; None when it did not say."""


def failure(fault: ProviderFault, message: str, *, status: int | None = None) -> Exception:
    """What to raise: `TryAgain` where that may help, else the error itself."""
    error = ProviderError(message, fault=fault, hint=HINTS[fault], status=status)
    return TryAgain(error) if fault in RETRIED else error


def refusal(status: int, body: bytes, headers: Mapping[str, str], *, service: str) -> Exception:
    """What to raise for an answer that is no success."""
    names, said = read_error(decoded(body))
    fault = fault_of(status, names, said)
    quoted = f": {said}" if said else ""
    raised = failure(fault, f"{service} answered {status}{quoted}", status=status)
    if isinstance(raised, TryAgain):
        raised.after = wait_of(headers)
    return raised


def reported(error: Json, *, service: str) -> Exception:
    """What to raise for an error that came in the middle of a stream."""
    names, said = read_error({"error": error})
    status = next((int(name) for name in names if re.fullmatch(r"[45]\d\d", name)), 500)
    fault = fault_of(status, names, said)
    return failure(fault, f"{service} broke its answer off{f': {said}' if said else ''}", status=None)


def fault_of(status: int, names: tuple[str, ...], said: str) -> ProviderFault:
    telling = [BY_NAME[name] for name in names if name in TELLING]
    if telling:
        return telling[0]
    if status in (400, 413, 422, 500) and TOO_LONG.search(said):
        return "too_long"
    if found := BY_STATUS.get(status):
        return found
    named = [BY_NAME[name] for name in names if name in BY_NAME]
    if named:
        return named[0]
    return "server" if status >= 500 else "request"


def decoded(body: bytes) -> Json:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")


def read_error(body: Json) -> tuple[tuple[str, ...], str]:
    """The names of an error and its text, of whatever form a service gave it."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body.get("detail", body.get("message"))) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return (), quote(error)
    names = tuple(str(error[key]) for key in ("code", "type", "status") if error.get(key) is not None)
    return names, quote(error.get("message"))


def quote(text: Json) -> str:
    """On one line, and no longer than one wants to read."""
    line = " ".join(re.sub(r"<[^>]*>", " ", str(text or "")).split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"


def wait_of(headers: Mapping[str, str]) -> float | None:
    """The seconds that a service wants to be left alone for: a number, or the time of a clock."""
    import email.utils

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(\.\d+)?", given):
            return float(given) * unit
        if given and (moment := email.utils.parsedate_tz(given)):
            return max(0.0, email.utils.mktime_tz(moment) - time.time())
    return None


def without_secret(text: str, secret: str | None) -> str:
    """A text in which a key cannot be read, for some services repeat it."""
    return text.replace(secret, "[key]") if secret and len(secret) >= 4 else text
