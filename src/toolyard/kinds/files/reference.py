"""How a configuration names file tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from toolyard.plugins.kind import Reference

if TYPE_CHECKING:
    from toolyard.plugins.kind import Scope

READING = ("read", "glob", "grep", "list")
CHANGING = ("write", "edit", "multi_edit", "apply_patch")
MOVING = ("insert", "remove", "move")
SETS: dict[str, tuple[str, ...]] = {
    "all": (*READING, *CHANGING),
    "read": READING,
    "more": (*READING, *CHANGING, *MOVING),
}
"""The tools that each entry offers."""


class FileToolSet(Reference, frozen=True, kw_only=True):
    """A set of file tools."""

    scope: ClassVar[Scope] = "session"
    word: str

    @property
    def tools(self) -> tuple[str, ...]:
        return SETS[self.word.partition(":")[2]]
