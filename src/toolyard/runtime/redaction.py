"""Takes known secrets out of texts, streams and configurations, and puts their names in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolyard.config.placeholders import ENV
from toolyard.core.content import AudioPart, FilePart, ImagePart, LinkPart, TextPart, left_out
from toolyard.core.regexes import late_pattern
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolyard.config.configuration import Configuration
    from toolyard.core.content import Part
    from toolyard.core.tool import Json, ToolResult


LEAST_LEFT = 4
"""Fewer characters of a secret give nothing away, and would be found in any text."""
CUT = late_pattern(r"\n\[\.\.\. \d+ bytes, \d+ lines? left out(?:; [^\n]*)? \.\.\.\]\n")
"""The line that stands in the place of what was left out of a text."""
CUTS = late_pattern(
    r"(\n)\[\.\.\. \d+ bytes, \d+ lines? left out(?:; [^\n]*)? \.\.\.\](?=\n)"
    r"|(\\n)\[\.\.\. \d+ bytes, \d+ lines? left out(?:; [^\n\\]*)? \.\.\.\](?=\\n)"  # the same inside of JSON
    r"| \[\d+ characters more\]|…(?=\n|\Z)"
)
"""Every kind of cut; the end of a line that tells of one is left to what may be the next such line."""
AFTER_A_CUT_TEXT = "\"'}] \n"
"""What may stand behind the end of a text that was cut before it became part of another."""
AFTER_SCHEME = late_pattern(r"(?i:Authorization:\s*)?[A-Za-z][A-Za-z0-9_-]{1,30}:?[ \t]+(\S+)")
"""A credential as HTTP has it, behind the name of its kind."""
LONG_LINE = late_pattern(r"\S{24,}")
PLACEHOLDER = late_pattern(r"\$\{(env|file):[^}]*\}+")


class Redactor:
    """Replaces the values of known secrets by their names."""

    def __init__(self, secrets: Mapping[str, str], *further: tuple[str, str]) -> None:
        """Take secrets by their names, and further ones, of which several may have the same name."""
        self._find: Callable[[], Iterable[tuple[str, str]]] = lambda: (*secrets.items(), *further)

    @classmethod
    def late(cls, find: Callable[[], Iterable[tuple[str, str]]]) -> Redactor:
        """One whose secrets are looked for when the first text comes: whoever only lists tools need not wait for it."""
        redactor = cls({})
        redactor._find = find
        return redactor

    @cached_property
    def _names(self) -> dict[str, str]:
        return {spelling: name for name, value in self._find() if value for spelling in spellings(value)}

    @cached_property
    def _values(self) -> list[str]:
        """The longest first, so that a secret that contains another is replaced whole."""
        return sorted(self._names, key=len, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(re.escape, self._values))) if self._values else None

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret to look for."""
        return self._pattern is not None

    def redact(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: mark(self._names[found[0]]), text)

    def redact_in_host(self, text: str) -> str:
        """Of what names a host: there a secret may have lost the difference between small and capital letters."""
        names = {value.lower(): name for value, name in self._names.items()}
        any_case = re.compile("|".join(map(re.escape, self._values)), re.IGNORECASE)
        return any_case.sub(lambda found: mark(names[found[0].lower()]), text) if names else text

    def redact_result(self, result: ToolResult) -> ToolResult:
        """A result without secrets: in its text, and in the data beside it."""
        text = self.redact_cut(result.text, at_end=result.truncated is not None)
        attachments = tuple(map(self.redact_part, result.attachments))
        # Bytes in it cannot be redacted, so that it goes where something of that was found.
        original = result.original if attachments == result.attachments else None
        return replace(
            result,
            text=text,
            data=result.data and self.redact_all(result.data, self.redact_cut),
            attachments=attachments,
            original=original and self.redact_all(original, self.redact_cut),
        )

    def redact_part(self, part: Part) -> Part:
        """A part without secrets; of bytes that have one in them, only their name is left, since they cannot be cut."""
        match part:
            case TextPart():
                return replace(part, text=self.redact_cut(part.text))
            case LinkPart():
                return replace(part, uri=self.redact(part.uri), name=self.redact(part.name))
            case ImagePart() | AudioPart() | FilePart():
                found = self._in_bytes().search(part.data)
                why = f"it has {self._mark_of(found).decode()} in it" if found else ""
                if found:
                    return TextPart(text=self.redact(left_out(part, why)))
                return replace(part, name=self.redact(part.name)) if isinstance(part, FilePart) else part

    def redact_all(self, value: Json, redact: Callable[[str], str] | None = None) -> Json:
        """Redact a JSON value, however deep the secrets are in it."""
        redact = redact or self.redact
        match value:
            case str():
                return redact(value)
            case Mapping():
                return {redact(str(name)): self.redact_all(item, redact) for name, item in value.items()}
            case list() | tuple():
                return [self.redact_all(item, redact) for item in value]
        return value

    def redact_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """What is written of a call, whose names are ours; of all that stands behind them nothing is."""
        return {name: self.redact_all(value) for name, value in record.items()} if self.knows_any else record

    def redact_cut(self, text: str, *, at_end: bool = False) -> str:
        """Redact a text of which something may be left out: also what is left of a secret at a cut.

        A text that was cut `at_end` need not say so.
        """
        if self._pattern is None:
            return text
        if not at_end and not may_have_cuts(text):
            return self.redact(text)
        parts: list[str] = []
        done, is_after_cut = 0, False
        for cut in CUTS.finditer(text):
            line_end = cut[cut.lastindex] if cut.lastindex else ""
            end = cut.end() + len(line_end)
            parts.append(self._redact_between(text[done : cut.start()], start=is_after_cut, end=True))
            parts.append(self.redact(text[max(done, cut.start()) : end]))
            done, is_after_cut = end, bool(line_end)
        if at_end and not done:
            bare = text.rstrip(AFTER_A_CUT_TEXT)
            return self._redact_between(bare, end=True) + text[len(bare) :]
        return "".join((*parts, self._redact_between(text[done:], start=is_after_cut)))

    def _redact_between(self, text: str, *, start: bool = False, end: bool = False) -> str:
        """Redact what stands between two cuts; all that belongs to any secret goes, also where they overlap."""
        if self._pattern is None or not (start or end):
            return self.redact(text)
        spans = [(*found.span(), found[0]) for found in self._pattern.finditer(text)]
        spans += self._rest_at_start(text) if start else ()
        spans += self._beginning_at_end(text) if end else ()
        parts: list[str] = []
        done = 0
        for first, last, value in sorted(spans):
            if last > done:
                parts += (text[done:first], mark(self._names[value]))
                done = last
        return "".join((*parts, text[done:]))

    def _beginning_at_end(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The longest end of a text that is the beginning of a secret."""
        found = next(self._beginnings(text), None)
        if found and len(text) - found[0] >= LEAST_LEFT:
            yield found[0], len(text), found[1]

    def _rest_at_start(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The longest start of a text that is the end of a secret."""
        longest = (0, "")
        for value in self._values:
            sizes = range(min(len(value) - 1, len(text)), max(longest[0], LEAST_LEFT - 1), -1)
            longest = next(((size, value) for size in sizes if text.startswith(value[-size:])), longest)
        if longest[0]:
            yield 0, *longest

    @cached_property
    def longest(self) -> int:
        """How many bytes the longest secret has."""
        return max((len(as_bytes(value)) for value in self._values), default=0)

    def redact_window(self, before: str, text: str, after: str) -> str:
        """A part of a text, without what in it belongs to a secret, also to one that begins before or ends after it."""
        if self._pattern is None:
            return text
        start, end = len(before), len(before) + len(text)
        parts: list[str] = []
        done = start
        for found in self._pattern.finditer(whole := before + text + after):
            if found.end() > start and found.start() < end:
                parts += (whole[done : max(start, found.start())], mark(self._names[found[0]]))
                done = min(end, found.end())
        return "".join((*parts, whole[done:end]))

    def _in_bytes(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(re.escape(as_bytes(value)) for value in self._values))

    def _mark_of(self, found: re.Match[bytes]) -> bytes:
        return mark(self._names[found[0].decode("utf-8", "surrogateescape")]).encode()

    def stream(self, emit: Callable[[str], None]) -> StreamRedactor:
        """Redact a text that comes in pieces."""
        return StreamRedactor(self, emit)

    def settled(self, text: str) -> tuple[str, str]:
        """What of a text is sure, whatever comes after it, without secrets; and its end, of which that is not sure.

        A whole secret is settled before its end is taken for the beginning of another, or of itself once more.
        """
        if self._pattern is None:
            return text, ""
        beginnings = self._beginnings(text)
        open_from = next(beginnings, (len(text), ""))[0]
        parts: list[str] = []
        done = 0
        for found in self._pattern.finditer(text):
            if found.start() >= open_from:  # a longer one may begin before it, or where it does
                break
            parts += (text[done : found.start()], mark(self._names[found[0]]))
            done = found.end()
            while open_from < done:
                open_from = next(beginnings, (len(text), ""))[0]
        parts.append(text[done:open_from])
        return "".join(parts), text[open_from:]

    @cached_property
    def _by_first(self) -> dict[str, list[str]]:
        """The secrets by their first characters, the only places where one can begin."""
        found: dict[str, list[str]] = {}
        for value in self._values:
            found.setdefault(value[0], []).append(value)
        return found

    @cached_property
    def _firsts(self) -> re.Pattern[str]:
        return re.compile("[" + "".join(map(re.escape, self._by_first)) + "]")

    def _beginnings(self, text: str) -> Iterator[tuple[int, str]]:
        """From where on the rest of a text is the beginning of a secret, but not all of it; first places first."""
        for first in self._firsts.finditer(text, max(0, len(text) - len(self._values[0]) + 1)):
            rest = text[first.start() :]
            for value in self._by_first[first[0]]:
                if len(value) > len(rest) and value.startswith(rest):
                    yield first.start(), value
                    break


def may_have_cuts(text: str) -> bool:
    """Most texts have none, and to look for these signs takes far less time than for the pattern."""
    return "…" in text or ("[" in text and ("[... " in text or " characters more]" in text))


def as_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def mark(name: str) -> str:
    """What stands in the place of a secret."""
    return f"[redacted {name}]"


def spellings(value: str) -> set[str]:
    """A value and its parts that are secret by themselves, each as it is and as JSON escapes it."""
    return {
        spelling
        for part in secret_parts(value)
        for spelling in (part, *(json.dumps(part, ensure_ascii=ascii)[1:-1] for ascii in (True, False)))
    }


def secret_parts(value: str) -> Iterator[str]:
    """What is left of a secret without the blanks around it, as of a file's last line, and behind `Bearer`."""
    bare = value.strip()
    yield bare or value
    if (found := AFTER_SCHEME.fullmatch(bare)) and len(found[1]) >= SHORTEST_SECRET:
        yield found[1]
    lines = bare.splitlines()
    if len(lines) > 1:  # such as those of a key file, which may be printed without the others
        yield from (line.strip() for line in lines if LONG_LINE.fullmatch(line.strip()))


class StreamRedactor:
    """Passes pieces on at once, but for an end that may be the beginning of a secret."""

    def __init__(self, redactor: Redactor, emit: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._emit = emit
        self._rest = ""

    @property
    def holds_back(self) -> bool:
        """Whether there is an end that was not passed on."""
        return bool(self._rest)

    def feed(self, text: str) -> None:
        ready, self._rest = self._redactor.settled(self._rest + text)
        self._pass(ready)

    def finish(self) -> None:
        """Nothing more comes: what was held back is all that there is."""
        rest, self._rest = self._rest, ""
        self._pass(self._redactor.redact(rest))

    def _pass(self, text: str) -> None:
        if text:
            self._emit(text)


def masked(configuration: Configuration, value_of: Callable[[str], str | None]) -> Configuration:
    """The same configuration without secrets; `value_of` gives what a name in a placeholder stands for."""
    value = masked_value(configuration.value, configuration.document.value, value_of)
    written = configuration.written
    if written is not None:
        written = replace(written, value=masked_value(written.value, written.value, lambda _: None))
    return replace(configuration, value=value, written=written)


def masked_value(
    value: Json, written: Json, value_of: Callable[[str], str | None], name: str = "", *, secret: bool = False
) -> Json:
    """Mask a value; how it was written tells which variables were put into it."""
    match value, written:
        case dict(), dict():
            return {
                key: masked_value(
                    part, written.get(key), value_of, key, secret=secret or holds_secret(key, inside=name)
                )
                for key, part in value.items()
            }
        case list(), list():
            return [
                masked_value(part, other, value_of, name, secret=secret)
                for part, other in zip(value, written, strict=True)
            ]
        case str(), _ if value and not (value == written and PLACEHOLDER.fullmatch(value)):
            if secret or looks_like_credential("", value):
                return mark(name)
            return without_variables(value, written if isinstance(written, str) else "", value_of)
        case int() | float(), _ if secret and not isinstance(value, bool):
            return mark(name)
    return value


def holds_secret(key: str, *, inside: str) -> bool:
    """Whether what stands under a key is a secret by the key's name; of `plugin_policy` nothing is."""
    return "plugin_policy" not in (key, inside) and looks_like_credential(key)


def without_variables(text: str, written: str, value_of: Callable[[str], str | None]) -> str:
    """A text less the values that variables with secret names put into it."""
    for name in ENV.findall(written):
        if looks_like_credential(name) and (secret := value_of(name)):
            text = text.replace(secret, mark(name))
    return text
