"""What is kept of a workspace before a call that can change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolyard.core.tool import Plan, ToolCall, ToolSpec


class Checkpointer(Protocol):
    """Keeps states of a workspace."""

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan) -> str | None:
        """Keep the state before a call; the id of what was kept, or None when nothing was."""


class NoCheckpoints:
    """Keeps nothing: no workspace is configured to be kept."""

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan) -> str | None:  # noqa: ARG002 - the interface
        """Nothing is kept."""
        return None
