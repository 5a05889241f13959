"""For people who write Node tools: what is wrong with a package, and a new package with one module."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import Document, json_of, read_document
from toolyard.config.layers import mapping
from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.problems import Problem
from toolyard.core.tool import CallContext, ToolResult
from toolyard.files.door import LARGEST_CODE, Door
from toolyard.kinds.node_module.package import PACKAGE
from toolyard.kinds.node_module.reference import SUFFIXES
from toolyard.plugins.checks.findings import warning, with_line
from toolyard.plugins.checks.samples import greeting_cases, sample_arguments
from toolyard.plugins.checks.spec import spec_findings
from toolyard.plugins.kind import Found, NewFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.node_module.source import NodeSource
    from toolyard.kinds.node_module.tool import NodeModuleTool
    from toolyard.plugins.checks.spec import SpecPart

OUTPUT_LIMIT = 65_536
WORDS: dict[str, str] = {
    "name": r"\bid\b",
    "description": r"\bdescription\b",
    "parameters": r"\b(?:parameters|inputSchema)\b",
    "required": r"\brequired\b",
}


class NodeAuthoring:
    """Node packages and modules."""

    form = "a module *.mjs"

    def entries(self, path: Path) -> Sequence[Json]:
        """A module, or a folder whose package has tools for agents."""
        if not path.is_dir():
            return [{"node_tool": {"file": str(path)}}] if path.suffix in SUFFIXES else []
        package = read_document(path / PACKAGE)
        broken = isinstance(package, Problem) and package.code != "config_unreadable"
        has_tools = isinstance(package, Document) and isinstance(package.value, dict) and "agent" in package.value
        return [{"node_tool": {"path": str(path)}}] if has_tools or broken else []

    def policy(self, timeout: float) -> JsonObject:
        """An author's packages may be installed from wherever they come."""
        return {"node_timeout_seconds": timeout, "allow_remote": True}

    async def check(self, source: NodeSource, timeout: float) -> Sequence[Problem]:  # noqa: ARG002 - the policy has it
        """What is wrong with a package, and what its tools say that will hurt; only their `preview` is tried."""
        findings = [with_line(problem, source.file) for problem in source.problems]
        for tool in source.tools():
            places = places_of(tool, source)
            findings += [*spec_findings(places, tool.spec), *await preview_findings(places, tool)]
        return findings

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:  # noqa: ARG002 - there is one way only
        package = {
            "name": name.lower().strip("_-") or "tool",
            "version": "0.1.0",
            "private": True,
            "type": "module",
            "agent": {"kinds": ["tools"], "tools": [{"id": name, "entry": "index.js"}]},
        }
        failed = {"failure": "exit_code", "output_contains": "name must not be empty"}
        return [
            NewFile.with_json(PACKAGE, package),
            NewFile(path="index.js", text=MODULE),
            NewFile.with_json(f"tests/{name}.json", greeting_cases(str, preview="greet Ada", empty_name=failed)),
        ]

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        package = mapping(json_of(folder / PACKAGE)) if PACKAGE in files else {}
        if mapping(package.get("agent")).get("tools"):
            yield Found(what="Node tools", entry=f"node:{place}")


class ModulePlaces:
    """Where a module says what, as far as its text shows it."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self._text = text

    def line_of(self, part: SpecPart) -> int:
        return self.line_matching(WORDS[part])

    def property_line(self, name: str) -> int:
        return self.line_matching(rf"""(?:^|[\s{{,"']){re.escape(name)}["']?\s*:""")

    def default_line(self, name: str, *, in_schema: bool) -> int:  # noqa: ARG002 - there is no other place
        return self.property_line(name)

    def line_matching(self, pattern: str) -> int:
        """The first line with a match; the first of all when none has one."""
        found = re.search(pattern, self._text)
        return self._text.count("\n", 0, found.end() if found else 0) + 1


def places_of(tool: NodeModuleTool, source: NodeSource) -> ModulePlaces:
    """The module as its author wrote it; of one that was built, the package."""
    file = source.own_file(tool)
    try:
        return ModulePlaces(file, Door.here().read(file, largest=LARGEST_CODE).data.decode("utf-8", "replace"))
    except OSError:
        return ModulePlaces(source.file, "")


async def preview_findings(places: ModulePlaces, tool: NodeModuleTool) -> list[Problem]:
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


MODULE = r"""// Try it: toolyard tool check .    toolyard tool test .
export default {
  description: "Greet somebody by name.",

  parameters: {
    type: "object",
    properties: {
      name: { type: "string", description: "Whom to greet." },
      loud: { type: "boolean", default: false, description: "Whether to shout." },
    },
    required: ["name"],
    additionalProperties: false,
  },

  // One line for the person who watches.
  preview({ name }) {
    return `greet ${name}`;
  },

  // The work. What is returned is what the model sees; an error is told in its own words.
  // With `async *run`, whatever is yielded is seen at once. `context` has `signal`, `cwd`, `config` and `write`.
  async run({ name, loud }, context) {
    context.signal.throwIfAborted();
    if (!name) throw new Error("name must not be empty");
    const greeting = `Hello, ${name}!`;
    return loud ? greeting.toUpperCase() : greeting;
  },
};
"""
