"""Runs what plugins do while they are installed and built: code of others, before anybody has used it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.process.child import Children

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.process.child import ChildOutcome, ChildRequest
    from toolyard.process.sandbox.layout import SandboxPaths
    from toolyard.process.sandbox.policy import SandboxPolicy
    from toolyard.process.sandbox.sandbox import Sandbox


class BuildRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Each run is in a sandbox of its own, which can write the folder it builds in and what its installer downloads.

    In the sandbox of the tools it could write nothing; in one for all builds it could change plugins of others. Nor can
    it write what other installers keep: what one of them left there would run in a plugin of another kind, and so
    perhaps in the application.
    """

    sandbox: tuple[SandboxPolicy, SandboxPaths] | None = None
    """What it is like but for the folder; None where none is wanted."""

    async def run(self, request: ChildRequest, folder: Path, *, downloads: str | Path) -> ChildOutcome:
        """Run a child to its end, in a folder and with what its installer has downloaded."""
        children = Children(self._sandbox(folder, downloads))
        try:
            await children.choose_sandbox()
            return await children.run(request)
        finally:
            await children.aclose()

    def _sandbox(self, *made: str | Path) -> Sandbox | None:
        if self.sandbox is None:
            return None
        from toolyard.process.sandbox.sandbox import Sandbox

        policy, places = self.sandbox
        return Sandbox(policy, replace(places, made=tuple(os.path.realpath(folder) for folder in made)))
