"""What the catalogue knows of where tools come from: sources, and the plugins they register."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Tool


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin as catalogue and enablement see it: the thing with an id that is on or off."""

    id: str
    kind: str
    tools: Sequence[Tool]
    default_enabled: bool = True
    instance: Any = None
    """What its author wrote, where that can say by itself when it is on; asked by duck typing."""
    config_keys: Sequence[str] = ()
    """Keys of the configuration that it says it asks for."""


class Source(Protocol):
    """One reference of the configuration, followed through the changes of what it names.

    To make one is cheap and holds nothing: after a reload it may be dropped for the one that was there before.
    """

    @property
    def key(self) -> Hashable:
        """Equal for the same source after a reload."""

    @property
    def conditions(self) -> object:
        """What its tools run under; a source is kept over a reload only if that is equal too."""

    @property
    def file(self) -> Path:
        """What to name as its origin."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with it now."""

    def plugins(self) -> Sequence[Plugin]:
        """The plugins there are now."""

    def is_current(self) -> bool:
        """Whether it is still what was read."""

    def load_known(self) -> bool:
        """Read it if that needs nothing to be run; tell whether it did."""

    async def load(self) -> None:
        """Read it."""

    async def refresh(self) -> bool:
        """Read it again if it has changed; tell whether its plugins did."""

    async def aclose(self) -> None:
        """Release what it holds."""
