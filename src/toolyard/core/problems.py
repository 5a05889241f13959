"""The one form of "something is wrong with what you wrote": code, where, message, hint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Position(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A place in a file; lines and columns count from one, and may be unknown."""

    file: Path
    line: int | None = None
    column: int | None = None
    via: tuple[str, ...] = ()
    """The names by which what stands there came to where it is used; many may come to one place."""

    def __str__(self) -> str:
        return ":".join(str(part) for part in self._place() if part is not None)

    def __eq__(self, other: object) -> bool:
        return self._place() == other._place() if isinstance(other, Position) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._place())

    def _place(self) -> tuple[Path, int | None, int | None]:
        return self.file, self.line, self.column


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person should mend; never raised."""

    code: str
    message: str
    hint: str = ""
    where: Position | None = None
    severity: Literal["error", "warning"] = "error"

    def at(self, where: Position | None) -> Problem:
        return msgspec.structs.replace(self, where=where)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.sentence}{hint}"

    @property
    def sentence(self) -> str:
        """The message, and through which mixins the value came."""
        via = self.where.via if self.where else ()
        return f"{self.message} (by {' → '.join(via)})" if via else self.message

    def as_mapping(self) -> dict[str, str | int | None]:
        """The form in which an application hands problems out."""
        where = self.where
        return {
            "type": self.code,
            "detail": self.message,
            "file": str(where.file) if where else None,
            "line": where.line if where else None,
            "column": where.column if where else None,
            "hint": self.hint,
            "via": " → ".join(where.via) if where else "",
            "severity": self.severity,
        }


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Errors before warnings, then by place, each problem once."""

    def key(problem: Problem) -> tuple[bool, str, int, int, str]:
        where = problem.where
        place = (str(where.file), where.line or 0, where.column or 0) if where else ("", 0, 0)
        return (problem.severity == "warning", *place, problem.message)

    return sorted(dict.fromkeys(problems), key=key)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the nearest of the known names; another one when none is near."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else otherwise
