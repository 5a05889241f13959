"""What is wrong with a manifest, and which of its programs cannot be run; nothing of it is run to find out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.manifest.program import program_fault
from toolyard.plugins.checks.findings import Finding, error, from_problem
from toolyard.plugins.checks.spec import spec_findings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.config.document import Document
    from toolyard.kinds.manifest.source import ManifestSource
    from toolyard.plugins.checks.spec import Part


FIELDS = {
    "name": ("name",),
    "description": ("description",),
    "parameters": ("schema",),
    "required": ("schema", "required"),
}


class EntryPlaces:
    """Where an entry of a manifest says what."""

    def __init__(self, document: Document, index: int) -> None:
        self._document = document
        self._index = index

    @property
    def file(self) -> Path:
        """The manifest."""
        return self._document.path

    def line_of(self, part: Part) -> int:
        """The field, or the entry where it has none."""
        return self.line(*FIELDS[part])

    def property_line(self, name: str) -> int:
        """In the entry's schema."""
        return self.line("schema", "properties", name)

    def default_line(self, name: str, *, in_schema: bool) -> int:  # noqa: ARG002 - there is no other place
        """In the entry's schema."""
        return self.line("schema", "properties", name, "default")

    def line(self, *way: str | int) -> int:
        """The line of a value of the entry."""
        return self._document.position(("tools", self._index, *way)).line or 1


def manifest_findings(source: ManifestSource) -> Iterator[Finding]:
    """All that can be said of one manifest; the programs of a faulty one wait until it is mended."""
    for problem in source.problems:
        yield from_problem(problem, source.file)
    if source.document is None:
        return
    for index, tool in enumerate(source.tools()):
        places = EntryPlaces(source.document, index)
        if fault := program_fault(tool.entry.program):
            yield error(source.file, places.line("command", 0), fault.code, fault.message, hint=fault.hint)
        yield from spec_findings(places, tool.spec)
