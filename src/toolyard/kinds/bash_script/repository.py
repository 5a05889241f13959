"""Bash tools of a git repository: fetched by policy, then the same sources as those of a folder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.problems import Problem
from toolyard.files.file_tree import inner_folder
from toolyard.kinds.bash_script.source import BashToolSource
from toolyard.plugins.descriptors import bash_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.bash_script.workshop import BashWorkshop
    from toolyard.kinds.python_function.workshop import PythonWorkshop
    from toolyard.plugins.repository_spec import BashRepository
    from toolyard.plugins.source import Plugin


class FetchedBashSource:
    """One repository; its files in the cache do not change, so that it is looked at again only on a reload."""

    def __init__(self, spec: BashRepository, workshop: BashWorkshop, shop: PythonWorkshop) -> None:
        self.key = spec
        self.file = Path(spec.git.shown)
        self._workshop = workshop
        self._shop = shop
        self._own_problems: list[Problem] = []
        self._files: dict[str, BashToolSource] = {}
        self._look_again = True
        self._loading = asyncio.Lock()

    @property
    def conditions(self) -> object:
        """Where the tools come from and run."""
        return (self._workshop, self._shop)

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the repository or with any of its files."""
        return [*self._own_problems, *(problem for source in self._files.values() for problem in source.problems)]

    def again(self, newer: FetchedBashSource) -> FetchedBashSource:
        """This source, in the place of the one that was made for a configuration that was read again."""
        self.key, self._shop, self._look_again = newer.key, newer._shop, True
        return self

    def plugins(self) -> Sequence[Plugin]:
        """The tools of all files."""
        return [plugin for source in self._files.values() for plugin in source.plugins()]

    def is_current(self) -> bool:
        """Whether it was fetched."""
        return not self._look_again

    def load_known(self) -> bool:
        """Only git can tell."""
        return False

    async def refresh(self) -> bool:
        """Fetch it if it was not looked at since the last reload; tell whether the tools changed."""
        if self.is_current():
            return False
        before = self.plugins()
        await self.load()
        return self.plugins() != before

    async def load(self) -> None:
        """Fetch the repository and read its tools; what worked before stays when that fails."""
        async with self._loading:
            if not self._look_again:
                return
            self._look_again = False
            files, self._own_problems = await self._fetch()
            if files is not None:
                await self._follow(files)

    async def aclose(self) -> None:
        """Close every file."""
        for source in self._files.values():
            await source.aclose()

    async def _fetch(self) -> tuple[list[Path] | None, list[Problem]]:
        """The tool files of the repository; None when it could not be had."""
        where = self._shop.document.position(self.key.pointer)
        fetched = await self._shop.acquirer.fetch(self.key.git)
        if isinstance(fetched, Problem):
            return None, [fetched.at(where)]
        folder = inner_folder(fetched.folder, self.key.subdirectory)
        if isinstance(folder, Problem):
            return None, [folder.at(where)]
        files, problems = bash_files(Path(folder))
        return files, [*problems, *(note.at(where) for note in fetched.notes)]

    async def _follow(self, files: Sequence[Path]) -> None:
        before = self._files
        self._files = {str(file): before.get(str(file)) or BashToolSource(str(file), self._workshop) for file in files}
        for source in self._files.values():
            if not source.is_current() and not source.load_known():
                await source.load()
        for name, source in before.items():
            if name not in self._files:
                await source.aclose()
