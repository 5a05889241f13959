"""What a check finds: one thing that a tool's author should know, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.core.problems import Problem


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An error breaks the contract; a warning is legal, but will hurt."""

    file: Path
    line: int
    severity: Literal["error", "warning"]
    code: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.severity}: {self.message}"


def error(file: Path, line: int, code: str, message: str, *, hint: str) -> Finding:
    """Something that breaks the contract."""
    return Finding(file=file, line=line, severity="error", code=code, message=message, hint=hint)


def warning(file: Path, line: int, code: str, message: str, *, hint: str) -> Finding:
    """Something legal that will hurt."""
    return Finding(file=file, line=line, severity="warning", code=code, message=message, hint=hint)


def from_problem(problem: Problem, file: Path) -> Finding:
    """A problem that loading met with; its file, where it names none."""
    where = problem.where
    return Finding(
        file=where.file if where else file,
        line=(where.line if where else None) or 1,
        severity=problem.severity,
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
    )
