"""Why a plugin could not be had, in words; a problem as soon as its place in the configuration is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.config.problems import ConfigProblem

if TYPE_CHECKING:
    from toolyard.config.problems import Position

__all__ = ["Refusal"]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """What was not done, and what to do about it; as a warning, what was done otherwise."""

    code: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def at(self, where: Position | None) -> ConfigProblem:
        """The same as a problem of a place."""
        return ConfigProblem(code=self.code, message=self.message, hint=self.hint, where=where, severity=self.severity)
