"""The kind of file tools: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.files.reference import SETS, FileToolSet
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.kinds.files.source import FilesSource
    from toolyard.plugins.host import Host


class FileTools(Kind):
    """Tools for the files of the workspace."""

    name = "files"
    spellings = tuple(f"files:{name}" for name in SETS)

    def read(self, entry: Json, at: Place) -> Named | None:
        """One of the sets of tools, by its name."""
        match entry:
            case str() if entry in self.spellings:
                return Named(references=[FileToolSet(word=entry, at=at)])
        return None

    def source(self, reference: FileToolSet, host: Host) -> FilesSource:
        from toolyard.kinds.files.source import FilesSource

        return FilesSource(reference, host)
