"""Variables before a command: those that change nothing but how it prints."""

from __future__ import annotations

import re

from toolyard.permissions.programs import names

__all__ = ["is_harmless_assignment"]

LOCALE = re.compile(r"[A-Za-z0-9_.@-]*")
SWITCH = re.compile(r"[A-Za-z0-9_-]{0,32}")
NUMBER = re.compile(r"\d{0,6}")
ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z][A-Za-z0-9_+-]*){0,2}|")
HARMLESS = {
    **dict.fromkeys(names("LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME"), LOCALE),
    **dict.fromkeys(names("COLUMNS LINES PYTHONHASHSEED SOURCE_DATE_EPOCH"), NUMBER),
    **dict.fromkeys(names("CI CLICOLOR CLICOLOR_FORCE FORCE_COLOR NO_COLOR CARGO_TERM_COLOR PY_COLORS TERM"), SWITCH),
    **dict.fromkeys(names("NODE_ENV PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE"), SWITCH),
    "TZ": ZONE,
}


def is_harmless_assignment(name: str | None, value: str | None) -> bool:
    """Whether a program does nothing else for a variable than it would without."""
    pattern = HARMLESS.get(name or "")
    return pattern is not None and value is not None and bool(pattern.fullmatch(value))
