"""How an entry of `plugins` was probably meant to be written."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.core.tool import Json


OBJECTS = ("bash_tool", "node_tool", "manifest", "shell_session", "shell_command")
"""The keys of entries that are objects with everything about a plugin in one key."""
SCHEMES = ("path", "bash", "node", "manifest", "bash+git", "node+git")
SHELLS = ("shell:session", "shell:command")


def nearest_form(value: str | dict[str, Json]) -> str:
    """A hint for an entry that is of no known form; empty without an idea."""
    if isinstance(value, dict):
        close = difflib.get_close_matches(next(iter(value), ""), [*OBJECTS, "path", "git"], n=1, cutoff=0.7)
        return f"did you mean '{close[0]}'?" if close else ""
    if close := difflib.get_close_matches(value, SHELLS, n=1, cutoff=0.7):
        return f"did you mean '{close[0]}'?"
    scheme, colon, rest = value.partition(":")
    if colon and (close := difflib.get_close_matches(scheme, SCHEMES, n=1)):
        return f"did you mean '{close[0]}:{rest}'?"
    if value.endswith((".bash", ".sh")):
        return f"did you mean 'bash:{value}'?"
    if value.startswith(("./", "../", "/", "~")):
        return f"say what it is: 'path:{value}', 'bash:{value}', 'node:{value}' or 'manifest:{value}'"
    return ""


def nearest_of(key: str, known: Iterable[str]) -> str:
    """A hint for a key that there is not."""
    known = list(known)
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"it takes {', '.join(known)}"
