"""What a check finds, as problems that always have a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from toolyard.core.problems import Position, Problem

if TYPE_CHECKING:
    from pathlib import Path


def error(file: Path, line: int, code: str, message: str, *, hint: str) -> Problem:
    """Something that breaks the contract."""
    return finding("error", file, line, code, message, hint)


def warning(file: Path, line: int, code: str, message: str, *, hint: str) -> Problem:
    """Something legal that will hurt."""
    return finding("warning", file, line, code, message, hint)


def finding(
    severity: Literal["error", "warning"], file: Path, line: int, code: str, message: str, hint: str
) -> Problem:
    where = Position(file=file, line=line)
    return Problem(code=code, message=message, hint=hint, where=where, severity=severity)


def with_line(problem: Problem, file: Path) -> Problem:
    """A problem that loading met with; in a file where it names none, and on its first line where it names none."""
    where = problem.where or Position(file=file)
    return replace(problem, where=Position(file=where.file, line=where.line or 1))
