"""Functions, classes and instances that a program hands over itself, as plugins."""

from __future__ import annotations

import asyncio
import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.config.document import Document, Place
from toolyard.kinds.python_function.kind import PythonFunctions
from toolyard.kinds.python_function.plugin import Adopted, adopt
from toolyard.kinds.python_function.reference import PythonReference
from toolyard.kinds.python_function.settings import PythonSettings
from toolyard.kinds.python_function.signatures.signature import written_function
from toolyard.plugins.author_code.hooks import AuthorCode, close_plugin
from toolyard.plugins.base_tools import BaseTools
from toolyard.plugins.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.host import Host
    from toolyard.plugins.plugin import Plugin


class PythonObject(PythonReference, frozen=True, kw_only=True):
    """Something that was imported already; it is itself and nothing else."""

    target: Any

    def _meant(self) -> tuple[object, ...]:
        return (type(self), id(self.target))


class PythonObjects(PythonFunctions):
    """The kind of what is handed over; its sources need not find or import anything."""

    def source(self, reference: PythonObject, host: Host) -> ObjectSource:  # type: ignore[override]  # its own references
        return ObjectSource(reference.target, host)


class ObjectSource:
    """The plugins of one object; it never changes."""

    def __init__(self, target: Any, host: Host) -> None:
        self._target = target
        self._host = host
        self.file = source_file(target)
        self._code = AuthorCode(
            roots=(str(self.file.parent),),
            limit=host.settings(PythonSettings).python_import_timeout_seconds,
            file=self.file,
        )
        self._bases = BaseTools(host)
        self._made_for: JsonObject | None = None
        self._adopted = Adopted()
        self._loading = asyncio.Lock()

    @property
    def conditions(self) -> object:
        return self._host.settings(PythonSettings)

    @property
    def problems(self) -> Sequence[Problem]:
        return self._adopted.problems

    def plugins(self) -> Sequence[Plugin]:
        return self._adopted.plugins

    def is_current(self) -> bool:
        """Whether they were made for the values that the agent has."""
        return self._made_for is not None and self._made_for == self._host.config

    async def load(self, *, without_running: bool = False) -> bool:
        if without_running:
            return False
        async with self._loading:
            if not self.is_current():
                config, before = self._host.config, self._adopted
                timeout = self._host.settings(PythonSettings).python_timeout_seconds
                entry = name_of(self._target)
                self._adopted = await adopt(
                    entry, self._target, self._code, config=config, timeout=timeout, bases=self._bases
                )
                self._made_for = config
                await self._close(before)
        return True

    def adopt(self, newer: ObjectSource) -> None:
        """The agent's values may be others now."""
        self._host = newer._host
        self._bases.follow(newer._host)

    async def end_session(self, session: str) -> None:
        await self._bases.end_session(session)

    async def aclose(self) -> None:
        await self._close(self._adopted)
        await self._bases.aclose()

    async def _close(self, adopted: Adopted) -> None:
        """An object that was handed over is its owner's to close; only what was made of it is ours."""
        for plugin in adopted.plugins:
            if plugin.instance is not self._target:
                await close_plugin(plugin, self._code)


def object_entries(targets: Iterable[Any]) -> list[Entry]:
    """Entries for objects, as if a configuration had named them."""
    kind = PythonObjects()
    at = Place(Document(Path("tools"), "{}", {}), ("tools",))
    return [Entry(reference=PythonObject(target=target, at=at), kind=kind) for target in targets]


def name_of(target: Any) -> str:
    """Its own name; a partial has that of its function, an object that of its class."""
    named = written_function(target) if isinstance(target, functools.partial) else target
    return str(getattr(named, "__name__", type(named).__name__))


def source_file(target: Any) -> Path:
    """The file that something is written in, where it is written in one."""
    try:
        return Path(inspect.getsourcefile(target if hasattr(target, "__name__") else type(target)) or ".")
    except TypeError:
        return Path(".")
