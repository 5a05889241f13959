"""What a plugin has beside tools for programs that speak MCP: resources to read, and prompts to get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import JsonObject


class PluginOffers(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions in the form of MCP, and the tools by which a call reaches what they define."""

    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    completes: bool = False
    """Whether arguments of its prompts and templates can be completed."""
    reader: str = ""
    """The tool that reads a resource, by `uri`."""
    prompter: str = ""
    """The tool that gets a prompt, by `name` and `arguments`."""
    completer: str = ""
    """The tool that completes an argument, by `ref`, `argument` and `context`."""
