"""Toolyard gives AI agents their tools."""

# Nothing is imported here: Python may still look for modules where tools can write, and even `__future__` is one.
# Besides, `typing` takes time, and the process keeper starts with this file too.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolyard.app import AgentApplication
    from toolyard.bash.session.session import BashSession
    from toolyard.core.content import AudioPart, FilePart, ImagePart, LinkPart, TextPart
    from toolyard.core.events import (
        CallFinished,
        CallStarted,
        Event,
        OutputChunk,
        PermissionAsked,
        PermissionDecided,
        PreviewReady,
    )
    from toolyard.core.tool import ToolCall, ToolResult, ToolSpec
    from toolyard.permissions.verdict import Answer, Approver, PermissionRequest
    from toolyard.plugins.contract import tool

__version__ = "0.1.0"

PLACES = {
    "toolyard.app": ("AgentApplication",),
    "toolyard.bash.session.session": ("BashSession",),
    "toolyard.core.content": ("AudioPart", "FilePart", "ImagePart", "LinkPart", "TextPart"),
    "toolyard.core.events": (
        *("CallFinished", "CallStarted", "Event", "OutputChunk"),
        *("PermissionAsked", "PermissionDecided", "PreviewReady"),
    ),
    "toolyard.core.tool": ("ToolCall", "ToolResult", "ToolSpec"),
    "toolyard.permissions.verdict": ("Answer", "Approver", "PermissionRequest"),
    "toolyard.plugins.contract": ("tool",),
}
__all__ = [
    "AgentApplication",
    "Answer",
    "Approver",
    "AudioPart",
    "BashSession",
    "CallFinished",
    "CallStarted",
    "Event",
    "FilePart",
    "ImagePart",
    "LinkPart",
    "OutputChunk",
    "PermissionAsked",
    "PermissionDecided",
    "PermissionRequest",
    "PreviewReady",
    "TextPart",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "__version__",
    "tool",
]


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used: importing the package does no work."""
    for module, names in PLACES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'toolyard' has no attribute '{name}'")
