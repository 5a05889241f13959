"""Python plugins as a source: found, imported into a space of their own, followed through changes."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.files.door import LARGEST_CODE, FileRefused
from toolyard.files.walk import scan
from toolyard.kinds.python_function.entries import import_entries, module_file
from toolyard.kinds.python_function.install import NOT_ACCEPTED
from toolyard.kinds.python_function.locate import Located, locate
from toolyard.kinds.python_function.plugin import adopt
from toolyard.kinds.python_function.reference import PythonName, PythonProject
from toolyard.kinds.python_function.settings import PythonSettings
from toolyard.plugins.acquire.git_reference import GitReference
from toolyard.plugins.author_code.hooks import AuthorCode, close_plugin
from toolyard.plugins.author_code.import_space import ImportSpace
from toolyard.plugins.author_code.module_cache import Imported, ModuleCache
from toolyard.plugins.base_tools import BaseTools

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.files.door import Door
    from toolyard.files.walk import Tree
    from toolyard.plugins.host import Host
    from toolyard.plugins.plugin import Plugin

MOST_FILES = 2000
"""Trees beyond that are followed in part: the first files, folder by folder."""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins of a version for a configuration."""

    code: Imported
    config: JsonObject
    plugins: Sequence[Plugin]


class PythonSource:
    """One reference to Python plugins."""

    def __init__(self, reference: PythonName | PythonProject, host: Host) -> None:
        self.reference = reference
        self._host = host
        self._settings = host.settings(PythonSettings)
        self.problems: list[Problem] = []
        self._now: Registered | None = None
        self._file: Path | None = None
        self._followed: tuple[str, ...] = ()
        self._seen: tuple[list[Tree], JsonObject] | None = None
        """The state of the files, and the configuration, when they were last looked at; None to look again."""
        self._bases = BaseTools(host)
        self._loading = asyncio.Lock()

    @property
    def conditions(self) -> object:
        """What the plugins are fetched, installed and imported with; they run in the application, not in children."""
        host = self._host
        return (host.children("outside"), host.processes.build, host.policy, host.plugin_cache.root, host.in_place)

    @property
    def file(self) -> Path:
        match self.reference:
            case PythonName(name=name):
                return self._now.code.author.file if self._now else Path(name)
            case PythonProject(origin=GitReference(shown=shown)):
                return self._file or Path(shown)
            case PythonProject(origin=path):
                return self._file or Path(str(path))

    def adopt(self, newer: PythonSource) -> None:
        """The agent's values may be others now, and a local repository may have moved on."""
        self.reference, self._host, self._seen = newer.reference, newer._host, None
        self._bases.follow(newer._host)

    def plugins(self) -> Sequence[Plugin]:
        """The plugins of the last version that could be loaded."""
        return self._now.plugins if self._now else ()

    def is_current(self) -> bool:
        """Whether nothing has changed that the plugins are made of."""
        return self._seen is not None and self._seen == self._state()

    async def load(self, *, without_running: bool = False) -> bool:
        """Find and import the plugins; what worked before stays when that fails."""
        if without_running:
            return False  # importing runs code, so nothing is known before
        async with self._loading:
            if not self.is_current():
                located = await locate(self.reference, self._host)
                if isinstance(located, list):
                    self._followed = self._followed or self._own_path()
                    self._fail(located)
                else:
                    self._followed, self._file = located.followed, located.file
                    await self._take(located)
                # What a person has yet to accept is looked at again each time.
                self._seen = None if any(one.code == NOT_ACCEPTED for one in self.problems) else self._state()
        return True

    async def aclose(self) -> None:
        """Let the plugins release what they hold, and forget their modules."""
        now, self._now = self._now, None
        if now:
            await release(now, self._host.caches.modules)
        await self._bases.aclose()

    async def end_session(self, session: str) -> None:
        await self._bases.end_session(session)

    async def _take(self, located: Located) -> None:
        """Use what was found: as it is if it is what we have, else imported or registered anew."""
        if refused := self._not_accepted(located.door):
            self._fail(refused)
            return
        entries = tuple(entry for entry, _ in located.entries)
        stamp = trees_hash(located.followed) if located.in_place else None
        version = (located.roots, entries, stamp, self._settings.python_import_timeout_seconds)
        before = self._now
        if before and before.code.version == version and before.config == self._host.config:
            self.problems = [*located.notes, *self._shown(before.code.problems, located)]
            return
        code = await self._host.caches.modules.acquire(version, lambda: self._import(located, version))
        after, problems = await self._register(code, located)
        problems = self._shown([*code.problems, *problems], located)
        if before and not after.plugins:
            self._fail(problems)
            await release(after, self._host.caches.modules)
            return
        self._now, self.problems = after, [*located.notes, *problems]
        if before:
            await release(before, self._host.caches.modules)

    async def _import(self, located: Located, version: Hashable) -> Imported:
        names = [entry for entry, _ in located.entries]
        space = await asyncio.to_thread(ImportSpace, located.roots, names, located.door) if located.roots else None
        roots = (*located.roots, *located.originals)
        limit = self._settings.python_import_timeout_seconds
        author = AuthorCode(roots=roots, limit=limit, file=self.file)
        targets, problems = await import_entries(located.entries, space, author)
        if not space and targets and (file := module_file(targets[0][1])):
            author = replace(author, file=file, roots=(str(file.parent),))
        return Imported(version=version, space=space, author=author, targets=targets, problems=problems)

    async def _register(self, code: Imported, located: Located) -> tuple[Registered, list[Problem]]:
        plugins: list[Plugin] = []
        problems: list[Problem] = []
        timeout = self._settings.python_timeout_seconds
        places = dict(located.entries)
        for entry, target in code.targets:
            adopted = await adopt(
                entry,
                target,
                code.author,
                config=self._host.config,
                timeout=timeout,
                kinds=located.kinds,
                bases=self._bases,
            )
            plugins += adopted.plugins
            problems += adopted.problems if code.space else at_its_entry(adopted.problems, places[entry])
        return Registered(code=code, config=self._host.config, plugins=plugins), problems

    def _fail(self, problems: Sequence[Problem]) -> None:
        """Say what is wrong; a version that worked stays in use, and that is said too."""
        last = "; the last good version stays in use" if self._now else ""
        self.problems = [replace(problem, message=problem.message + last) for problem in problems]

    def _not_accepted(self, door: Door) -> list[Problem]:
        """A file that tools may have written is not run until a person accepts it."""
        problems: list[Problem] = []
        for path in self.reference.roots:
            try:
                door.read_accepted(path, largest=LARGEST_CODE)
            except FileRefused as refused:
                if refused.errno == errno.EACCES:
                    problems.append(refused.problem(NOT_ACCEPTED))
            except OSError:  # a folder, whose files are read one by one when they are imported
                continue
        return problems

    def _state(self) -> tuple[list[Tree], JsonObject]:
        return [scan(path, most=MOST_FILES) for path in self._followed], self._host.config

    def _own_path(self) -> tuple[str, ...]:
        match self.reference:
            case PythonProject(origin=str(path)):
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


def trees_hash(paths: Sequence[str]) -> int:
    """A number that changes when a file below the paths is written, added or removed."""
    return hash(tuple((path, *sorted(scan(path, most=MOST_FILES).items(), key=str)) for path in paths))


async def release(registered: Registered, modules: ModuleCache) -> None:
    """End plugins, and let their modules go; what the code itself made stays for others who use it."""
    code = registered.code
    is_last = modules.release(code)
    shared = {id(target) for _, target in code.targets}
    for plugin in registered.plugins:
        if is_last or id(plugin.instance) not in shared:
            await close_plugin(plugin, code.author)
