"""A manifest as a source: read again when it changes, its last good version kept when an edit breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.config.document import parse_document
from toolyard.core.problems import Position, Problem
from toolyard.files.door import LARGEST_CONFIGURATION, FileRefused, Stamp, stamp_of
from toolyard.kinds.manifest.entries import read_manifest
from toolyard.kinds.manifest.settings import ManifestSettings
from toolyard.kinds.manifest.tool import ManifestCommandTool
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Document
    from toolyard.kinds.manifest.reference import ManifestFile
    from toolyard.plugins.host import Host


class ManifestSource:
    """One manifest, followed through its changes; reading it runs nothing."""

    def __init__(self, reference: ManifestFile, host: Host) -> None:
        self.file = Path(reference.path)
        self._host = host
        self.problems: Sequence[Problem] = ()
        """What is wrong with the manifest as it is now."""
        self.document: Document | None = None
        """The text that is there now, if it is JSON."""
        self._tools: list[ManifestCommandTool] = []
        self._stamp: Stamp | None = None

    @property
    def conditions(self) -> object:
        return (self._host.runner, self._host.settings(ManifestSettings))

    def plugins(self) -> Sequence[Plugin]:
        """Each entry is a plugin of its own, so that one can be on while another is off."""
        return [Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool]) for tool in self._tools]

    def tools(self) -> Sequence[ManifestCommandTool]:
        """The tools of the last good version, in the manifest's order."""
        return self._tools

    def is_current(self) -> bool:
        return self._stamp is not None and stamp_of(self.file) == self._stamp

    async def load(self, *, without_running: bool = False) -> bool:  # noqa: ARG002 - nothing is ever run
        self._read()
        return True

    def adopt(self, newer: ManifestSource) -> None:
        """The file is the same."""

    async def aclose(self) -> None:
        """It holds nothing."""

    def _read(self) -> None:
        try:
            read = self._host.configuration.door.read(self.file, largest=LARGEST_CONFIGURATION)
        except FileRefused as refused:
            self._lose(refused.problem("manifest_unreadable"))
            return
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            self._lose(self._problem("manifest_unreadable", f"cannot be read: {reason}", "check the path"))
            return
        self._stamp = read.stamp
        try:
            document = parse_document(self.file, read.data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            document = self._problem("manifest_not_text", f"not UTF-8 text (byte {error.start})", "save it as UTF-8")
        if isinstance(document, Problem):
            self.document = None
            self.problems = [replace(document, code=document.code.replace("config_", "manifest_"))]
        else:
            self._take(document)

    def _take(self, document: Document) -> None:
        """Use what the manifest says now; when that is faulty, go on with what worked."""
        manifest = read_manifest(document)
        self.document, self.problems = document, manifest.problems
        entries = list(manifest.entries)
        if manifest.is_sound and entries != [tool.entry for tool in self._tools]:
            usual = self._host.settings(ManifestSettings).manifest_timeout_seconds
            self._tools = [ManifestCommandTool(entry, self._host.runner, usual) for entry in entries]

    def _lose(self, problem: Problem) -> None:
        """Without a manifest there are no tools."""
        self.problems = [problem]
        self.document, self._stamp = None, None
        if self._tools:
            self._tools = []

    def _problem(self, code: str, message: str, hint: str) -> Problem:
        return Problem(code=code, message=message, hint=hint, where=Position(file=self.file))
