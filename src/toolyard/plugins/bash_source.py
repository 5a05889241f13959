"""A bash tool file as a source: reloaded when it changes, its last good version kept when an edit breaks it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem, Position
from toolyard.kinds.bash_file import Bash, read_schema
from toolyard.kinds.bash_schema import BashSchema, line_of
from toolyard.kinds.bash_script import BashConditions, BashScriptTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import Tool
    from toolyard.kinds.bash_schema_cache import SchemaCache
    from toolyard.process.child import Children

__all__ = ["BashToolSource", "BashWorkshop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BashWorkshop:
    """What every bash source of an application shares."""

    bash: Bash
    children: Children
    conditions: BashConditions
    cache: SchemaCache


class BashToolSource:
    """One tool file, followed through its changes."""

    def __init__(self, file: Path, workshop: BashWorkshop) -> None:
        self.file = file
        self.problems: list[ConfigProblem] = []
        """What is wrong with the file as it is now."""
        self.workshop = workshop
        self._tool: BashScriptTool | None = None
        self._stamp: tuple[int, int, int] | None = None
        self._snapshot: Path | None = None
        self._reading = asyncio.Lock()

    def tools(self) -> Sequence[Tool]:
        """The file's tool, unless the file is gone or never was good."""
        return [self._tool] if self._tool else []

    async def refresh(self) -> bool:
        """Read the file again if it has changed; tell whether the tool did."""
        if self._stamp is not None and stamp_of(self.file) == self._stamp:
            return False
        async with self._reading:
            return await self._read()

    async def aclose(self) -> None:
        """Remove the copy of a last good version, if one was made."""
        self._drop_snapshot()

    async def _read(self) -> bool:
        stamp = stamp_of(self.file)
        if stamp is not None and stamp == self._stamp:
            return False
        before = self._tool
        source = self._read_source()
        self._stamp = stamp
        if source is None:
            self._tool = None
        elif before is None or source != before.source or self._snapshot:
            await self._load(source)
        return self._tool is not before

    def _read_source(self) -> bytes | None:
        """The file's content; None, with a problem, when it cannot be read."""
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            self.problems = [file_problem(self.file, "bash_file_missing", "no such file", "check the path")]
        except IsADirectoryError:
            hint = f'a folder of tools is loaded with "bash:{self.file}"'
            self.problems = [file_problem(self.file, "bash_file_is_directory", "this is a folder, not a file", hint)]
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            self.problems = [file_problem(self.file, "bash_file_unreadable", message, f"chmod u+r {self.file}")]
        return None

    async def _load(self, source: bytes) -> None:
        shop = self.workshop
        schema = await read_schema(
            self.file, source, bash=shop.bash, children=shop.children, conditions=shop.conditions, cache=shop.cache
        )
        if isinstance(schema, BashSchema):
            self._drop_snapshot()
            self.problems = []
            self._tool = self._make(source, schema)
            return
        text = source.decode("utf-8", "replace")
        self.problems = [
            ConfigProblem(
                code=fault.code,
                message=fault.message,
                hint=fault.hint.replace("FILE", str(self.file)),
                where=Position(file=self.file, line=line_of(fault, text)),
            )
            for fault in schema
        ]
        if self._tool and not self._snapshot:
            self._keep_last_good(self._tool)

    def _keep_last_good(self, good: BashScriptTool) -> None:
        """The file no longer is what worked, so what worked gets a place of its own, beside links to its neighbours."""
        folder = Path(tempfile.mkdtemp(prefix="toolyard-last-good-"))
        for neighbour in self.file.parent.iterdir():
            if neighbour.name != self.file.name:
                (folder / neighbour.name).symlink_to(neighbour)
        self._snapshot = folder
        (folder / self.file.name).write_bytes(good.source)
        self._tool = self._make(good.source, good.schema, run_file=folder / self.file.name)

    def _drop_snapshot(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot:
            with contextlib.suppress(OSError):
                shutil.rmtree(snapshot)

    def _make(self, source: bytes, schema: BashSchema, run_file: Path | None = None) -> BashScriptTool:
        return BashScriptTool(
            bash=self.workshop.bash.path,
            file=self.file,
            source=source,
            schema=schema,
            children=self.workshop.children,
            conditions=self.workshop.conditions,
            run_file=run_file,
        )


def stamp_of(file: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written or replaced; None when there is no file."""
    try:
        stat = os.stat(file)  # half the time of Path.stat, and asked at every call
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def file_problem(file: Path, code: str, message: str, hint: str) -> ConfigProblem:
    return ConfigProblem(code=code, message=message, hint=hint, where=Position(file=file))
