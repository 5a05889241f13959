"""`read_line`: a command line becomes a `Reading`; this is the entrance to the package."""

from __future__ import annotations

import re
from functools import lru_cache

from toolyard.bash.syntax.reading import Doubt, Reading, SimpleCommand
from toolyard.bash.syntax.words import literal_word
from toolyard.bash.syntax.wrappers import unwrapped
from toolyard.core.visible_text import hidden_characters

LONGEST = 10_000
"""Characters; no person would look through more."""
MOST_SPECIAL = 1_500
"""Characters with a meaning in bash: with many of them, a broken line would keep tree-sitter busy for seconds."""
SPECIAL = re.compile(r"[|&;<>(){}\[\]$`\"'\\=]")
PLAIN = re.compile(r"[ \t]*[A-Za-z0-9_.:@+,/][\w.:@%+,/=^-]*(?:[ \t]+[\w.:@%+,/=^-]+)*[ \t]*", re.ASCII)
"""Words of characters that mean nothing to bash, wherever they stand."""
WORD = re.compile(r"[^ \t]+")
NOT_A_NAME = frozenset({
    "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
    "function", "time", "coproc", "export", "declare", "typeset", "local", "readonly", "unset", "let",
})  # fmt: skip
"""First words that are no command, or one with a grammar of its own."""


@lru_cache(maxsize=1024)
def read_line(text: str) -> Reading:
    """Read a line. This never raises, and takes bounded time, whatever the line is."""
    if hidden := hidden_characters(text):
        doubt = Doubt(code="hidden", message=f"it holds characters that cannot be seen: {', '.join(hidden[:8])}")
        return read_by_grammar(text, doubt)
    if PLAIN.fullmatch(text) and len(text) <= LONGEST:
        words = tuple(literal_word(match[0], *match.span()) for match in WORD.finditer(text))
        if words[0].text not in NOT_A_NAME and "=" not in words[0].text:
            command = unwrapped(SimpleCommand(words=words, text=text.strip(), start=words[0].start))
            return Reading(text=text, parts=(command,), plain=True)
    return read_by_grammar(text)


def read_by_grammar(text: str, *doubts: Doubt) -> Reading:
    """What tree-sitter sees in the line, with the doubts that there are already."""
    if len(text) > LONGEST:
        doubt = Doubt(code="too_long", message=f"{len(text)} characters are more than can be looked over")
        return Reading(text=text, doubts=(*doubts, doubt))
    if sum(1 for _ in SPECIAL.finditer(text)) > MOST_SPECIAL:
        return Reading(text=text, doubts=(*doubts, Doubt(code="too_long", message="it is too involved to be read")))
    try:
        from toolyard.bash.syntax.tree import TreeReader

        reader = TreeReader(text)
        reader.read()
        parts = tuple(unwrapped(part) if isinstance(part, SimpleCommand) else part for part in reader.parts)
        return Reading(
            text=text,
            parts=parts,
            doubts=(*doubts, *reader.doubts),
            pipes=tuple(reader.pipes),
            defines=tuple(reader.defines),
            functions=tuple(reader.functions),
        )
    except Exception as error:  # a parser that fails, or is not installed, has proven nothing
        doubt = Doubt(code="unreadable", message=f"it cannot be read: {type(error).__name__}")
        return Reading(text=text, doubts=(*doubts, doubt))
