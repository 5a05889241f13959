"""The thing with an id that is on or off, whatever kind it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import Tool
    from toolyard.plugins.offers import PluginOffers


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin as catalogue and enablement see it."""

    id: str
    kind: str
    tools: Sequence[Tool]
    default_enabled: bool = True
    instance: Any = None
    """What its author wrote, where that can say by itself when it is on; asked by duck typing."""
    other_name: Any = None
    """A function that gives one of its tools another name, where an earlier plugin has a tool of its name."""
    made_of: str = ""
    """Of one whose tools can have other names: what it is, whatever it is called; equal for the same server."""
    offers: PluginOffers | None = None
    """What it has beside tools."""
    services: Sequence[Tool] = ()
    """Tools that are called by name, and are in no list: they are for programs, not for models."""
    config_keys: Sequence[str] = ()
    """Keys of the configuration that it says it asks for."""
