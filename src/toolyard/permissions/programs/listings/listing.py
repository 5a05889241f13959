"""A row of the tables: how the calls of a program look that only list or print, and what has to hold besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.options import Concern, Given, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.syntax.words import Word


LISTS_NOT = "does more than to list or to print"


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of a program, or of one of its commands, that only list or print."""

    options: Options
    """What may be given; anything else is a question."""
    needs: frozenset[str] = frozenset()
    """Options of which one has to be there, where the program does something else without."""
    lists: Callable[[Given], bool] | None = None
    """What else has to hold of what is given."""
    most: int | None = None
    """How many operands there may be."""
    obeys: tuple[str, ...] = ()
    """Files of the folder, or of one above it, by which the program may run or read something else."""
    is_git: bool = False
    """Whether it asks git about the repository of the folder."""

    def read(self, words: Sequence[Word]) -> Given:
        """What the words behind the program and its command give it; a concern for what does more than to list."""
        given = self.options.scan(words)
        is_counted = self.most is None or len(given.operands) <= self.most
        is_needed = not self.needs or given.has(*self.needs)
        if not is_counted or not is_needed or not (self.lists is None or self.lists(given)):
            given.concerns.append(Concern(message=LISTS_NOT))
        if given.unknown is not None:
            given.concerns.append(Concern(message=f"'{given.unknown.text}' is not known to list or print"))
        if self.obeys:
            given.add_path(literal_word("."), ".", "read")
        return given


def lists_with(
    *,
    flags: str = "",
    values: str = "",
    optional: str = "",
    reads: str = "",
    operands: str = "text*",
    default: str = "",
    needs: str = "",
    lists: Callable[[Given], bool] | None = None,
    most: int | None = None,
    obeys: str = "",
    is_git: bool = False,
    single: bool = False,
) -> Listing:
    """A row: what may be given, as tables of options write it down."""
    return Listing(
        options=Options(
            flags=flags,
            values=values,
            optional=optional,
            reads=reads,
            operands=operands,
            default=default,
            complete=True,
            abbreviates=False,
            style="single" if single else "gnu",
        ),
        needs=frozenset(needs.split()),
        lists=lists,
        most=most,
        obeys=tuple(obeys.split()),
        is_git=is_git,
    )
