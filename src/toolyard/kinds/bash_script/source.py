"""A bash tool file as a source: reloaded when it changes, its last good version kept when an edit breaks it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.problems import Position, Problem
from toolyard.files.door import LARGEST_SCRIPT, FileContent, FileRefused, Stamp, stamp_of
from toolyard.kinds.bash_script.schema import BashSchemas, SchemaFault
from toolyard.kinds.bash_script.schema_reading import content_key, read_schema, schema_cache
from toolyard.kinds.bash_script.settings import BashSettings
from toolyard.kinds.bash_script.tool import BashScriptTool
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.bash_script.schema import BashSchema
    from toolyard.plugins.host import Host


class BashFileSource:
    """One tool file, followed through its changes."""

    def __init__(self, path: str, host: Host) -> None:
        self.path = path
        self.host = host
        self.problems: list[Problem] = []
        """What is wrong with the file as it is now."""
        self._tools: list[BashScriptTool] = []
        self._stamp: Stamp | None = None
        self._snapshot: Path | None = None
        self._reading: asyncio.Lock | None = None
        self._unread: FileContent | None = None
        """A content whose schema is not known yet."""

    @property
    def file(self) -> Path:
        return Path(self.path)

    @property
    def conditions(self) -> object:
        return (self.host.runner, self.host.settings(BashSettings), self.host.interpreter("bash"))

    def plugins(self) -> Sequence[Plugin]:
        """The file's tools, unless the file is gone or never was good; each is on or off by itself."""
        return [
            Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool], config_keys=tool.schema.config_keys)
            for tool in self._tools
        ]

    def is_current(self) -> bool:
        return self._stamp is not None and stamp_of(self.path) == self._stamp

    async def load(self, *, without_running: bool = False) -> bool:
        """Read the schema: known by the file's content, or else by running the file, unless somebody just did."""
        if without_running:
            if self._load_known():
                return True
            await self.host.children("look").choose_sandbox()
            self.host.children("look").start()  # it will be needed: let it start while others are read
            return False
        self._reading = self._reading or asyncio.Lock()
        async with self._reading:
            unread, self._unread = self._unread, None
            read = None if self.is_current() else unread or self._read_source()
            if read is not None:
                schema = await read_schema(self.path, read, self.host)
                if isinstance(schema, BashSchemas):
                    self._accept(read, schema)
                else:
                    self._refuse(read, schema)
        return True

    def adopt(self, newer: BashFileSource) -> None:
        """The file is the same."""

    async def aclose(self) -> None:
        """Remove the copy of a last good version, if one was made."""
        self._drop_snapshot()

    def _load_known(self) -> bool:
        """Read the file if that needs nothing to be run; True also when there is nothing to read."""
        read = self._read_source()
        if read is None:
            return True
        schema = schema_cache(self.host).get(content_key(self.path, read.data, self.host))
        if schema is None:
            self._unread = read
            return False
        self._accept(read, schema)
        return True

    def _read_source(self) -> FileContent | None:
        """The file's content; when it cannot be read there is no tool, and a problem says why."""
        try:
            return self.host.configuration.door.read(self.path, largest=LARGEST_SCRIPT)
        except FileRefused as refused:
            problem = refused.problem("bash_file_unreadable")
        except FileNotFoundError:
            problem = self._problem("bash_file_missing", "no such file", "check the path")
        except IsADirectoryError:
            hint = f'a folder of tools is loaded with "bash:{self.path}"'
            problem = self._problem("bash_file_is_directory", "this is a folder, not a file", hint)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            problem = self._problem("bash_file_unreadable", f"cannot be read: {reason}", f"chmod u+r {self.path}")
        self._tools, self._stamp, self.problems = [], None, [problem]
        return None

    def _accept(self, read: FileContent, schemas: BashSchemas) -> None:
        """These are the tools now; unless they are the ones there were."""
        self._stamp, self.problems = read.stamp, []
        if self._tools and not self._snapshot and read.data == self._tools[0].source:
            return
        self._drop_snapshot()
        self._tools = self._made(self.path, read.data, schemas.tools)

    def _refuse(self, read: FileContent, faults: Sequence[SchemaFault]) -> None:
        """The file is faulty: say how, and go on with what worked, if anything did."""
        from toolyard.kinds.bash_script.script_text import ScriptText, problem_of

        script = ScriptText(self.file, read.data.decode("utf-8", "replace"))
        self._stamp, self.problems = read.stamp, [problem_of(fault, script) for fault in faults]
        if self._tools and not self._snapshot:
            self._keep_last_good(self._tools)

    def _keep_last_good(self, good: Sequence[BashScriptTool]) -> None:
        """The file no longer is what worked, so what worked gets a place of its own, beside links to its neighbours."""
        import tempfile

        folder = self._snapshot = Path(
            tempfile.mkdtemp(prefix="toolyard-last-good-", dir=self.host.children("look").handouts)
        )
        name = os.path.basename(self.path)
        for neighbour in self.file.parent.iterdir():
            if neighbour.name != name:
                (folder / neighbour.name).symlink_to(neighbour)
        source = good[0].source
        (folder / name).write_bytes(source)
        self._tools = self._made(str(folder / name), source, [tool.schema for tool in good])

    def _made(self, path: str, source: bytes, schemas: Sequence[BashSchema]) -> list[BashScriptTool]:
        host = self.host
        settings, bash = host.settings(BashSettings), host.required("bash").path
        return [
            BashScriptTool(path=path, source=source, schema=schema, runner=host.runner, bash=bash, settings=settings)
            for schema in schemas
        ]

    def _drop_snapshot(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot:
            import shutil

            with contextlib.suppress(OSError):
                shutil.rmtree(snapshot)

    def _problem(self, code: str, message: str, hint: str) -> Problem:
        return Problem(code=code, message=message, hint=hint, where=Position(file=self.file))
