"""Bash tools of a git repository: fetched by policy, then the same sources as those of a folder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.problems import Problem
from toolyard.kinds.bash_script.reference import bash_files
from toolyard.kinds.bash_script.source import BashFileSource
from toolyard.plugins.loader import load_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.bash_script.reference import BashRepository
    from toolyard.plugins.host import Host
    from toolyard.plugins.plugin import Plugin


class BashRepositorySource:
    """One repository; its files in the cache do not change, so that it is looked at again only on a reload."""

    def __init__(self, reference: BashRepository, host: Host) -> None:
        self.reference = reference
        self.file = Path(reference.git.shown)
        self._host = host
        self._own_problems: list[Problem] = []
        self._files: dict[str, BashFileSource] = {}
        self._look_again = True
        self._loading = asyncio.Lock()

    @property
    def conditions(self) -> object:
        host = self._host
        return (host.runner, host.policy, host.plugin_cache.root, host.interpreter("bash"))

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the repository or with any of its files."""
        return [*self._own_problems, *(problem for source in self._files.values() for problem in source.problems)]

    def adopt(self, newer: BashRepositorySource) -> None:
        """A local repository is looked at again after each reload."""
        self.reference, self._host, self._look_again = newer.reference, newer._host, True

    def plugins(self) -> Sequence[Plugin]:
        return [plugin for source in self._files.values() for plugin in source.plugins()]

    def is_current(self) -> bool:
        return not self._look_again

    async def load(self, *, without_running: bool = False) -> bool:
        """Fetch the repository and read its tools; what worked before stays when that fails."""
        if without_running:
            return False  # only git can tell
        async with self._loading:
            if self._look_again:
                self._look_again = False
                files, self._own_problems = await self._fetch()
                if files is not None:
                    await self._follow(files)
        return True

    async def aclose(self) -> None:
        for source in self._files.values():
            await source.aclose()

    async def _fetch(self) -> tuple[list[Path] | None, list[Problem]]:
        """The tool files of the repository; None when it could not be had."""
        where = self.reference.at.position()
        fetched = await self._host.fetcher.fetch_folder(self.reference.git, self.reference.subdirectory)
        if isinstance(fetched, Problem):
            return None, [fetched.at(where)]
        files, problems = bash_files(fetched.folder, self._host.configuration.door)
        return files, [*problems, *(note.at(where) for note in fetched.notes)]

    async def _follow(self, files: Sequence[Path]) -> None:
        before = self._files
        self._files = {str(file): before.get(str(file)) or BashFileSource(str(file), self._host) for file in files}
        failures = await load_all(list(self._files.values()))
        self._own_problems += failures.values()
        for name, source in before.items():
            if name not in self._files:
                await source.aclose()
