"""`${env:NAME}` anywhere in a string, `${file:PATH}` as a whole string."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.core.problems import Problem
from toolyard.core.regexes import late_pattern
from toolyard.files.door import LARGEST_TEXT, FileRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.config.document import Document
    from toolyard.core.tool import Json


ENV = late_pattern(r"\$\{env:([^{}]*)\}")
FILE = late_pattern(r"\$\{file:((?:(?!\$\{file:).)*)\}", re.DOTALL)


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Where names are looked up, the first that has one wins."""

    config_env: Mapping[str, str]
    overrides: Mapping[str, str]
    builtin: Mapping[str, str]
    process: Mapping[str, str]

    def get(self, name: str) -> str | None:
        for source in (self.config_env, self.overrides, self.builtin, self.process):
            if name in source:
                return source[name]
        return None


class Expanded(msgspec.Struct, frozen=True, kw_only=True):
    """A value without placeholders, what was wrong with them, and the files that were read for it."""

    value: Json
    problems: list[Problem] = msgspec.field(default_factory=list)
    files: list[str] = msgspec.field(default_factory=list)


def expand_placeholders(document: Document, names: Names) -> Expanded:
    """Replace every placeholder in the document's value."""
    # A text without either has none: `\\u` may spell one.
    if "${" not in document.text and "\\u" not in document.text:
        return Expanded(value=document.value)
    replacer = Replacer(document, names)
    value = replacer.expand(document.value)
    return Expanded(value=value, problems=replacer.problems, files=replacer.files)


def expand_variables(document: Document, names: Names) -> Json:
    """The same without any file being read, for those who must know before which may be."""
    if "${" not in document.text and "\\u" not in document.text:
        return document.value
    return Replacer(document, names, reads_files=False).expand(document.value)


class Replacer:
    """Goes through a document once; a part that many share through a mixin is replaced once and stays shared."""

    def __init__(self, document: Document, names: Names, *, reads_files: bool = True) -> None:
        self._reads_files = reads_files
        self.problems: list[Problem] = []
        self.files: list[str] = []
        self._document = document
        self._names = names
        self._pointer: list[str | int] = []
        self._done: dict[int, Json] = {}
        """By the identity of what the document holds, which therefore lives as long as this."""

    def expand(self, value: Json) -> Json:
        match value:
            case str():
                return self._expand_string(value) if "${" in value else value
            case dict() | list():
                if id(value) not in self._done:
                    self._done[id(value)] = self._expand_parts(value)
                return self._done[id(value)]
        return value

    def _expand_parts(self, value: dict[str, Json] | list[Json]) -> Json:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        expanded: list[tuple[Any, Json]] = []
        for step, part in parts:
            self._pointer.append(step)
            expanded.append((step, self.expand(part)))
            self._pointer.pop()
        return dict(expanded) if isinstance(value, dict) else [part for _, part in expanded]

    def _expand_string(self, text: str) -> str:
        # What is written decides: a variable's value is never itself taken for a placeholder.
        if whole := FILE.fullmatch(text):
            return self._read_file(self._with_variables(whole[1])) if self._reads_files else ""
        if "${file:" in text:
            hint = "make it the whole string, or put the rest of the string into the file"
            self._report("file_not_whole", "'${file:…}' is not replaced inside a longer string", hint, "warning")
        return self._with_variables(text)

    def _with_variables(self, text: str) -> str:
        return ENV.sub(lambda match: self._value_of(match[1]), text)

    def _value_of(self, name: str) -> str:
        value = self._names.get(name)
        if value is None:
            message = f"environment variable '{name}' is not set; it is replaced by nothing"
            hint = f"set it: export {name}=…" if name.strip() else "name a variable: ${env:NAME}"
            self._report("env_missing", message, hint, "warning")
        return value or ""

    def _read_file(self, name: str) -> str:
        path = Path(self._document.folder) / name
        try:
            text = self._document.door.read_accepted(path, largest=LARGEST_TEXT).text()
            self.files.append(str(path))
            return text
        except FileRefused as refused:
            self._report("file_refused", f"file '{path}' is not read: {refused.strerror}", refused.hint, "error")
            return ""
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            hint = "relative paths start at the folder of the configuration file"
            self._report("file_missing", f"file '{path}' cannot be read: {reason}", hint, "error")
            return ""

    def _report(self, code: str, message: str, hint: str, severity: Literal["error", "warning"]) -> None:
        where = self._document.position(tuple(self._pointer))
        self.problems.append(Problem(code=code, message=message, hint=hint, where=where, severity=severity))
