"""File tools as a source: they come from no file, and share what each conversation has read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.kinds.files.git_excludes import GitExcludes
from toolyard.kinds.files.seen_files import SeenFiles
from toolyard.kinds.files.tool import FileTool
from toolyard.kinds.files.workers import FileWorkers
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.problems import Problem
    from toolyard.kinds.files.reference import FileToolSet
    from toolyard.plugins.host import Host


class FilesSource:
    """A set of file tools; each is a plugin of its own, so that each can be turned off."""

    problems: Sequence[Problem] = ()

    def __init__(self, reference: FileToolSet, host: Host) -> None:
        self.file = Path(reference.word)
        self._host = host
        self._workers = FileWorkers(host.runner)
        self._seen = host.caches.shared(SeenFiles)
        excludes = GitExcludes(host.configuration.door)
        tools = [FileTool(name, self._workers, self._seen, self._ripgrep, excludes.rules) for name in reference.tools]
        self._plugins = [Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool]) for tool in tools]

    @property
    def conditions(self) -> object:
        return self._host.runner

    def plugins(self) -> Sequence[Plugin]:
        return self._plugins

    def is_current(self) -> bool:
        return True

    async def load(self, *, without_running: bool = False) -> bool:  # noqa: ARG002 - nothing is ever run
        return True

    def adopt(self, newer: FilesSource) -> None:
        """What was read stays known."""

    async def end_session(self, session: str) -> None:
        self._seen.forget(session)

    async def aclose(self) -> None:
        await self._workers.aclose()

    def _ripgrep(self) -> str | None:
        found = self._host.interpreter("rg")
        return found.path if found else None
