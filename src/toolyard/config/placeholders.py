"""`${env:NAME}` anywhere in a string, `${file:PATH}` as a whole string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.config.document import Document, Pointer
    from toolyard.core.tool import Json

__all__ = ["Names", "expand_placeholders"]

ENV = re.compile(r"\$\{env:([^{}]*)\}")
FILE = re.compile(r"\$\{file:(.*)\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Where names are looked up, the first that has one wins."""

    config_env: Mapping[str, str]
    overrides: Mapping[str, str]
    builtin: Mapping[str, str]
    process: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """The value of a name, or None."""
        for source in (self.config_env, self.overrides, self.builtin, self.process):
            if name in source:
                return source[name]
        return None


def expand_placeholders(document: Document, names: Names) -> tuple[Json, list[ConfigProblem]]:
    """The document's value with every placeholder replaced."""
    problems: list[ConfigProblem] = []

    def expand(value: Json, pointer: Pointer) -> Json:
        match value:
            case str() if "${" in value:
                return expand_string(value, pointer)
            case dict():
                return {key: expand(item, (*pointer, key)) for key, item in value.items()}
            case list():
                return [expand(item, (*pointer, index)) for index, item in enumerate(value)]
        return value

    def expand_string(text: str, pointer: Pointer) -> str:
        text = ENV.sub(lambda match: expand_name(match[1], pointer), text)
        whole = FILE.fullmatch(text)
        return read_file(whole[1], pointer) if whole else text

    def expand_name(name: str, pointer: Pointer) -> str:
        value = names.get(name)
        if value is None:
            problems.append(
                ConfigProblem(
                    code="env_missing",
                    message=f"environment variable '{name}' is not set; it is replaced by nothing",
                    hint=f"set it: export {name}=…",
                    where=document.position(pointer),
                    severity="warning",
                )
            )
        return value or ""

    def read_file(name: str, pointer: Pointer) -> str:
        path = Path(document.folder) / name
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            problems.append(
                ConfigProblem(
                    code="file_missing",
                    message=f"file '{path}' cannot be read: {reason}",
                    hint="relative paths start at the folder of the configuration file",
                    where=document.position(pointer),
                )
            )
            return ""

    return expand(document.value, ()), problems
