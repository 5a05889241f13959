"""Who runs what plugins do while they are installed and built: code of others, before anybody has used it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.process.child import Children

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.process.child import ChildOutcome, ChildRequest
    from toolyard.process.sandbox import Sandbox, SandboxPolicy
    from toolyard.process.sandbox_layout import Places

__all__ = ["Builders", "downloads"]


def downloads(cache: str) -> str:
    """In the folder of installed plugins, the one for what package managers download."""
    return os.path.join(cache, ".downloads")


class Builders(msgspec.Struct, frozen=True, kw_only=True):
    """Each run is in a sandbox of its own, which can write the folder it builds in and what installers share.

    In the sandbox of the tools it could write nothing; in one for all builds it could change plugins of others.
    """

    sandbox: tuple[SandboxPolicy, Places] | None = None
    """What it is like but for the folder; None where none is wanted."""

    async def run(self, request: ChildRequest, folder: Path) -> ChildOutcome:
        """Run a child to its end."""
        children = Children(self._sandbox(folder))
        try:
            await children.choose_sandbox()
            return await children.run(request)
        finally:
            await children.aclose()

    def _sandbox(self, folder: Path) -> Sandbox | None:
        if self.sandbox is None:
            return None
        from toolyard.process.sandbox import Sandbox

        policy, places = self.sandbox
        return Sandbox(policy, replace(places, made=(os.path.realpath(folder), *places.made)))
