"""How an entry of `plugins` that no kind knows was probably meant to be written."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING

from toolyard.core.problems import did_you_mean
from toolyard.plugins.kind import Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json
    from toolyard.plugins.kind import Kind

OBJECT = re.compile(r'\{"(\w+)": ?(\{)?')
PREFIX = re.compile(r"([a-z+]+)(:|\+)([A-Z#]+)")
WORD = re.compile(r"[a-z]+:[a-z]+")


def unknown_spelling(entry: Json, at: Place, kinds: Sequence[Kind]) -> Named:
    forms = ", ".join(form if form.startswith("{") else f'"{form}"' for kind in kinds for form in kind.spellings)
    message = f"no plugin source here loads {short(entry)}"
    return Named(problems=[at.problem("plugin_unsupported", message, nearest_form(entry, kinds) or forms)])


def crowded(entry: dict[str, Json], at: Place, kinds: Sequence[Kind]) -> Named | None:
    """An object that is everything about a plugin has nothing beside it."""
    closed = {found[1] for found in map(OBJECT.match, spellings(kinds)) if found and found[2]}
    form = next((key for key in entry if key in closed), None)
    if form is None:
        return None
    other = next(key for key in entry if key != form)
    hint = "all about it goes into that object; another plugin is another entry"
    return Named(problems=[at.problem("plugin_spec", f"'{other}' means nothing beside '{form}'", hint, other)])


def nearest_form(entry: Json, kinds: Sequence[Kind]) -> str:
    """A hint for an entry that is of no known form; empty without an idea."""
    forms = spellings(kinds)
    if isinstance(entry, dict):
        keys = dict.fromkeys(found[1] for found in map(OBJECT.match, forms) if found)
        close = difflib.get_close_matches(next(iter(entry), ""), keys, n=1, cutoff=0.7)
        return f"did you mean '{close[0]}'?" if close else ""
    words = [form for form in forms if WORD.fullmatch(form)]
    if close := difflib.get_close_matches(entry, words, n=1, cutoff=0.7):
        return f"did you mean '{close[0]}'?"
    prefixes = {found[1]: (found[2], found[3]) for found in map(PREFIX.match, forms) if found}
    scheme, colon, rest = entry.partition(":")
    if colon and (close := difflib.get_close_matches(scheme, prefixes, n=1)):
        return f"did you mean '{close[0]}{prefixes[close[0]][0]}{rest}'?"
    paths = [prefix for prefix, (_, what) in prefixes.items() if what in ("PATH", "FOLDER")]
    for kind in kinds:
        if kind.suffixes and entry.endswith(tuple(kind.suffixes)):
            own = next(found[1] for found in map(PREFIX.match, kind.spellings) if found)
            return f"did you mean '{own}:{entry}'?"
    if entry.startswith(("./", "../", "/", "~")):
        *others, last = (f"'{prefix}:{entry}'" for prefix in paths)
        return f"say what it is: {', '.join(others)} or {last}"
    return ""


def unknown_key(given: Json, form: str, known: Sequence[str], at: Place) -> Problem | None:
    """The problem of the first key in the object of a form that it does not take."""
    key = next((key for key in given if key not in known), None) if isinstance(given, dict) else None
    if key is None:
        return None
    hint = did_you_mean(key, known, f"it takes {', '.join(known)}")
    return at.problem("plugin_spec", f"'{form}' has no '{key}'", hint, key)


def spellings(kinds: Sequence[Kind]) -> list[str]:
    return [form for kind in kinds for form in kind.spellings]


def short(value: Json) -> str:
    """A value as JSON, as far as a message has room for it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
