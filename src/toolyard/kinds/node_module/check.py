"""What is wrong with a Node package, and what its tools say that will hurt; only their `preview` is tried."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.tool import CallContext, ToolResult
from toolyard.plugins.checks.findings import Finding, from_problem, warning
from toolyard.plugins.checks.samples import sample_arguments
from toolyard.plugins.checks.spec import spec_findings

if TYPE_CHECKING:
    from toolyard.kinds.node_module.source import NodeSource
    from toolyard.kinds.node_module.tool import NodeModuleTool
    from toolyard.plugins.checks.spec import Part


OUTPUT_LIMIT = 65_536
WORDS: dict[str, str] = {
    "name": r"\bid\b",
    "description": r"\bdescription\b",
    "parameters": r"\b(?:parameters|inputSchema)\b",
    "required": r"\brequired\b",
}


class ModulePlaces:
    """Where a module says what, as far as its text shows it."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self._text = text

    def line_of(self, part: Part) -> int:
        """Where the word stands first."""
        return self.line_matching(WORDS[part])

    def property_line(self, name: str) -> int:
        """Where something of that name is defined."""
        return self.line_matching(rf"""(?:^|[\s{{,"']){re.escape(name)}["']?\s*:""")

    def default_line(self, name: str, *, in_schema: bool) -> int:  # noqa: ARG002 - there is no other place
        """Where its property is."""
        return self.property_line(name)

    def line_matching(self, pattern: str) -> int:
        """The first line with a match; the first of all when none has one."""
        found = re.search(pattern, self._text)
        return self._text.count("\n", 0, found.end() if found else 0) + 1


async def node_findings(source: NodeSource) -> list[Finding]:
    """All that can be said of a package or a module."""
    findings = [from_problem(problem, source.file) for problem in source.problems]
    for tool in source.tools():
        places = places_of(tool, source)
        findings += [*spec_findings(places, tool.spec), *await preview_findings(places, tool)]
    return findings


def places_of(tool: NodeModuleTool, source: NodeSource) -> ModulePlaces:
    """The module as its author wrote it; of one that was built, the package."""
    file = source.own_file(tool)
    try:
        return ModulePlaces(file, file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ModulePlaces(source.file, "")


async def preview_findings(places: ModulePlaces, tool: NodeModuleTool) -> list[Finding]:
    """A preview of its own says something of any call that fits the schema."""
    schema = tool.listed.parameters
    arguments = ArgumentDecoder(schema).decode(sample_arguments(schema))
    if not tool.listed.preview or isinstance(arguments, BadArguments):
        return []
    with tempfile.TemporaryDirectory(prefix="toolyard-check-") as folder:
        context = CallContext(call_id="check", cwd=Path(folder), config={}, output_limit=OUTPUT_LIMIT)
        plan = tool.plan(arguments, context)
        if isinstance(plan, ToolResult) or await tool.preview(plan, context):
            return []
    message = "`preview` fails or gives nothing, so nobody sees what a call is about to do"
    hint = f"it was tried with {json.dumps(arguments, ensure_ascii=False)}"
    return [warning(places.file, places.line_matching(r"\bpreview\b"), "preview_empty", message, hint=hint)]
