"""For people who write manifests: what is wrong with one, and a new one with a small program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolyard.config.document import json_of
from toolyard.config.layers import mapping
from toolyard.kinds.manifest.program import program_problem
from toolyard.kinds.manifest.reference import MANIFEST
from toolyard.plugins.checks.findings import with_line
from toolyard.plugins.checks.samples import greeting_cases
from toolyard.plugins.checks.spec import spec_findings
from toolyard.plugins.kind import DESCRIPTOR, Found, NewFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.config.document import Document
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.manifest.source import ManifestSource
    from toolyard.plugins.checks.spec import SpecPart

FIELDS = {
    "name": ("name",),
    "description": ("description",),
    "parameters": ("schema",),
    "required": ("schema", "required"),
}


class ManifestAuthoring:
    """Manifests and their programs."""

    form = "a manifest *.json"

    def entries(self, path: Path) -> Sequence[Json]:
        file = path / MANIFEST if path.is_dir() else path
        is_one = file.suffix == ".json" and file.name != DESCRIPTOR and file.exists()
        return [{"manifest": {"path": str(file)}}] if is_one else []

    def policy(self, timeout: float) -> JsonObject:  # noqa: ARG002 - entries have times of their own
        """Nothing needs to be allowed."""
        return {}

    async def check(self, source: ManifestSource, timeout: float) -> Sequence[Problem]:  # noqa: ARG002 - nothing is run
        """What is wrong with a manifest, and which of its programs cannot be run; nothing of it is run to find out."""
        return list(findings(source))

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:  # noqa: ARG002 - there is one way only
        failed = {"exit": 1, "output": '{"error": "name must not be empty"}'}
        cases = greeting_cases(
            lambda text: json.dumps({"greeting": text}), preview=f"{name} name=Ada", empty_name=failed
        )
        return [
            NewFile.with_json(MANIFEST, {"tools": [entry(name)]}),
            NewFile(path=f"tools/bin/{name}", text=PROGRAM.replace("@NAME@", name), executable=True),
            NewFile.with_json(f"tests/{name}.json", cases),
        ]

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        """A manifest all of whose entries have commands."""
        tools = mapping(json_of(folder / MANIFEST)).get("tools") if MANIFEST in files else None
        if isinstance(tools, list) and tools and all("command" in mapping(tool) for tool in tools):
            yield Found(what="manifest of commands", entry=f"manifest:{place}/{MANIFEST}")


def findings(source: ManifestSource) -> Iterator[Problem]:
    """All that can be said of one manifest; the programs of a faulty one wait until it is mended."""
    for problem in source.problems:
        yield with_line(problem, source.file)
    if source.document is None:
        return
    for index, tool in enumerate(source.tools()):
        places = EntryPlaces(source.document, index)
        if wrong := program_problem(tool.entry.program):
            yield wrong.at(source.document.position(("tools", index, "command", 0)))
        yield from spec_findings(places, tool.spec)


class EntryPlaces:
    """Where an entry of a manifest says what."""

    def __init__(self, document: Document, index: int) -> None:
        self._document = document
        self._index = index

    @property
    def file(self) -> Path:
        return self._document.path

    def line_of(self, part: SpecPart) -> int:
        """The field, or the entry where it has none."""
        return self.line(*FIELDS[part])

    def property_line(self, name: str) -> int:
        return self.line("schema", "properties", name)

    def default_line(self, name: str, *, in_schema: bool) -> int:  # noqa: ARG002 - there is no other place
        return self.line("schema", "properties", name, "default")

    def line(self, *way: str | int) -> int:
        return self._document.position(("tools", self._index, *way)).line or 1


def entry(name: str) -> dict[str, object]:
    return {
        "name": name,
        "description": "Greet somebody by name.",
        "schema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whom to greet."},
                "loud": {"type": "boolean", "description": "Whether to shout."},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "command": [f"./tools/bin/{name}"],
        "timeoutSec": 10,
    }


PROGRAM = r"""#!/usr/bin/env python3
# Try it: echo '{"name": "Ada"}' | ./tools/bin/@NAME@
#         toolyard tool check .    toolyard tool test .
import json
import sys

# The arguments are the JSON text that the model wrote; they fit the schema by now.
arguments = json.load(sys.stdin)

if not arguments["name"]:
    # What the model sees when the tool failed; say what to do differently.
    sys.exit(json.dumps({"error": "name must not be empty"}))

greeting = f"Hello, {arguments['name']}!"
if arguments.get("loud"):
    greeting = greeting.upper()
# One line of JSON is what the model sees.
print(json.dumps({"greeting": greeting}, ensure_ascii=False))
"""
