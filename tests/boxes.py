"""A workspace and a home for children in a sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from support import need_backend
from toolyard.process.child import Children, ChildRequest
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.policy import SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox

PATIENCE = 60.0


class Box:
    """A workspace and a home, and children that are kept in there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.workspace = folder / "home", folder / "work"
        self.home.mkdir()
        self.workspace.mkdir()
        self.env = {b"PATH": os.fsencode(os.environ["PATH"]), b"HOME": os.fsencode(self.home)}
        self.open: list[Children] = []

    def mounts(self) -> Children:
        """Children in a sandbox made of mounts."""
        return self.children(need_backend("bubblewrap", "bubblewrap-pids"))

    def children(self, backend: str, *, places: dict[str, Any] | None = None, **policy: Any) -> Children:
        need_backend(backend)
        given = {"home": str(self.home), "workspace": [str(self.workspace)], **(places or {})}
        sandbox = Sandbox(SandboxPolicy(**{"backends": (backend,), **policy}), SandboxPaths(**given))
        self.open.append(Children(sandbox))
        return self.open[-1]

    async def bash(self, children: Children, script: str, **conditions: Any) -> Any:
        request = ChildRequest(
            **{"argv": ["/bin/bash", "-c", script, "tool"], "cwd": self.workspace, "env": self.env, **conditions}
        )
        async with asyncio.timeout(PATIENCE):
            if children.sandbox:
                await children.sandbox.exchange_repositories()  # as before every call
            return await children.run(request)

    async def python(self, children: Children, source: str, *words: str, **conditions: Any) -> Any:
        argv = [sys.executable, "-I", "-S", "-c", source, *words]
        return await self.bash(children, "", argv=argv, **conditions)
