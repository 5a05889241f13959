"""Toolyard gives AI agents their tools."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes time to import, and the process keeper starts with this file too
if TYPE_CHECKING:
    from typing import Any

    from toolyard.app import AgentApplication
    from toolyard.core.tool import ToolCall, ToolResult, ToolSpec

__version__ = "0.1.0"
__all__ = ["AgentApplication", "ToolCall", "ToolResult", "ToolSpec", "__version__"]

PLACES = {
    "AgentApplication": "toolyard.app",
    "ToolCall": "toolyard.core.tool",
    "ToolResult": "toolyard.core.tool",
    "ToolSpec": "toolyard.core.tool",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing the package does no work."""
    if name not in PLACES:
        raise AttributeError(f"module 'toolyard' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(PLACES[name]), name)
