"""The end of a plugin's life."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.kinds.python_running import Returned

if TYPE_CHECKING:
    from toolyard.plugins.authored import Author
    from toolyard.plugins.source import Plugin

__all__ = ["close_plugin"]

log = logging.getLogger("toolyard.plugins")
PATIENCE = 5.0
"""How many seconds a plugin may hold up the end of an application."""


async def close_plugin(plugin: Plugin, author: Author) -> None:
    """Let a plugin release what it holds; one that cannot is logged, for there is nobody left to tell."""
    author = replace(author, limit=min(author.limit, PATIENCE))
    for method in ("aclose", "close"):
        function = getattr(plugin.instance, method, None)
        if callable(function):
            outcome = await author.hook(function, {})
            if not isinstance(outcome, Returned):
                log.warning("%s", author.problem(outcome, f"{method} of '{plugin.id}'"))
            return
