"""Python plugins as a source: found, imported into a space of their own, followed through changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.config.document import Place
from toolyard.files.tree_stamp import tree_stamp
from toolyard.kinds.python_function.entries import import_entries, module_file
from toolyard.kinds.python_function.locate import Located, locate
from toolyard.kinds.python_function.plugin import adopt
from toolyard.plugins.acquire.git_reference import GitReference
from toolyard.plugins.author_code.hooks import Author, close_plugin
from toolyard.plugins.author_code.import_space import ImportSpace
from toolyard.plugins.author_code.module_cache import CodeShelf, Imported
from toolyard.plugins.repository_spec import PythonClass, PythonRepository

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.kinds.python_function.workshop import PythonWorkshop
    from toolyard.plugins.source import Plugin


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins of a version for a configuration."""

    code: Imported
    config: JsonObject
    plugins: Sequence[Plugin]


class PythonSource:
    """One reference to Python plugins."""

    def __init__(self, spec: PythonClass | PythonRepository, shop: PythonWorkshop) -> None:
        self.key = spec
        self.shop = shop
        self.problems: list[Problem] = []
        self._now: Registered | None = None
        self._file: Path | None = None
        self._followed: tuple[str, ...] = ()
        self._seen: tuple[int, JsonObject] | None = None
        """The state of the files, and the configuration, when they were last looked at; None to look again."""
        self._loading = asyncio.Lock()

    @property
    def conditions(self) -> PythonWorkshop:
        """Where the plugins come from and run."""
        return self.shop

    @property
    def file(self) -> Path:
        """What to name as the origin."""
        match self.key:
            case PythonClass(name=name):
                return self._now.code.author.file if self._now else Path(name)
            case PythonRepository(origin=GitReference(shown=shown)):
                return self._file or Path(shown)
            case PythonRepository(origin=path):
                return self._file or Path(str(path))

    def again(self, newer: PythonSource) -> PythonSource:
        """This source, in the place of the one that was made for a configuration that was read again."""
        self.key, self.shop, self._seen = newer.key, newer.shop, None
        return self

    def plugins(self) -> Sequence[Plugin]:
        """The plugins of the last version that could be loaded."""
        return self._now.plugins if self._now else ()

    def is_current(self) -> bool:
        """Whether nothing has changed that the plugins are made of."""
        return self._seen is not None and self._seen == (tree_stamp(self._followed), self.shop.config)

    def load_known(self) -> bool:
        """Importing runs code, so nothing is known before."""
        return False

    async def refresh(self) -> bool:
        """Load again if something has changed; tell whether the plugins did."""
        if self.is_current():
            return False
        before = self._now
        await self.load()
        return self._now is not before

    async def load(self) -> None:
        """Find and import the plugins; what worked before stays when that fails."""
        async with self._loading:
            if self.is_current():
                return
            where = Place(self.shop.document, self.key.pointer)
            located = await locate(self.key, self.shop, self.shop.document.folder, where)
            if isinstance(located, list):
                self._followed = self._followed or self._own_path()
                self._fail(located)
            else:
                self._followed, self._file = located.followed, located.file
                await self._take(located)
            self._seen = (tree_stamp(self._followed), self.shop.config)

    async def aclose(self) -> None:
        """Let the plugins release what they hold, and forget their modules."""
        now, self._now = self._now, None
        if now:
            await release(now, self.shop.code)

    async def _take(self, located: Located) -> None:
        """Use what was found: as it is if it is what we have, else imported or registered anew."""
        entries = tuple(entry for entry, _ in located.entries)
        stamp = tree_stamp(located.followed) if located.in_place else None
        version = (located.roots, entries, stamp, self.shop.policy.python_import_timeout_seconds)
        before = self._now
        if before and before.code.version == version and before.config == self.shop.config:
            self.problems = [*located.notes, *self._shown(before.code.problems, located)]
            return
        code = await self.shop.code.take(version, lambda: self._import(located, version))
        after, problems = await self._register(code, located)
        problems = self._shown([*code.problems, *problems], located)
        if before and not after.plugins:
            self._fail(problems)
            await release(after, self.shop.code)
            return
        self._now, self.problems = after, [*located.notes, *problems]
        if before:
            await release(before, self.shop.code)

    async def _import(self, located: Located, version: Hashable) -> Imported:
        names = [entry for entry, _ in located.entries]
        space = await asyncio.to_thread(ImportSpace, located.roots, names) if located.roots else None
        roots = (*located.roots, *located.originals)
        limit = self.shop.policy.python_import_timeout_seconds
        author = Author(roots=roots, limit=limit, file=self.file)
        targets, problems = await import_entries(located.entries, space, author)
        if not space and targets and (file := module_file(targets[0][1])):
            author = replace(author, file=file, roots=(str(file.parent),))
        return Imported(version=version, space=space, author=author, targets=targets, problems=problems)

    async def _register(self, code: Imported, located: Located) -> tuple[Registered, list[Problem]]:
        plugins: list[Plugin] = []
        problems: list[Problem] = []
        timeout = self.shop.policy.python_timeout_seconds
        places = dict(located.entries)
        for entry, target in code.targets:
            adopted = await adopt(
                entry, target, code.author, config=self.shop.config, timeout=timeout, kinds=located.kinds
            )
            plugins += adopted.plugins
            problems += adopted.problems if code.space else at_its_entry(adopted.problems, places[entry])
        return Registered(code=code, config=self.shop.config, plugins=plugins), problems

    def _fail(self, problems: Sequence[Problem]) -> None:
        """Say what is wrong; a version that worked stays in use, and that is said too."""
        last = "; the last good version stays in use" if self._now else ""
        self.problems = [replace(problem, message=problem.message + last) for problem in problems]

    def _own_path(self) -> tuple[str, ...]:
        match self.key:
            case PythonRepository(origin=str(path)):
                return (path,)
        return ()

    def _shown(self, problems: Sequence[Problem], located: Located) -> list[Problem]:
        """The same problems in the author's own files, not in our copies of them."""
        return [replace(problem, where=problem.where and originally(problem.where, located)) for problem in problems]


def at_its_entry(problems: Sequence[Problem], where: Place) -> list[Problem]:
    """What Python found by itself may be anybody's file; that it is no plugin is said where it is named."""
    return [
        replace(problem, where=where.position()) if problem.code == "plugin_entry" else problem for problem in problems
    ]


def originally(where: Any, located: Located) -> Any:
    for root in located.roots:
        inside = os.path.relpath(where.file, root)
        if not inside.startswith(".."):
            originals = (os.path.join(original, inside) for original in located.originals)
            return replace(where, file=Path(next(filter(os.path.exists, originals), where.file)))
    return where


async def release(registered: Registered, shelf: CodeShelf) -> None:
    """End plugins, and put their code back; what the code itself made stays for others who use it."""
    code = registered.code
    is_last = shelf.put_back(code)
    shared = {id(target) for _, target in code.targets}
    for plugin in registered.plugins:
        if is_last or id(plugin.instance) not in shared:
            await close_plugin(plugin, code.author)
