"""What any tool's name, description and schema say that will hurt, or fail to say."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from toolyard.core.arguments.notes import schema_notes
from toolyard.core.tool import JsonInput, WireFormat
from toolyard.core.wire.formats import format_problems
from toolyard.plugins.checks.findings import warning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, ToolSpec
    from toolyard.core.wire.formats import FormatProblem


DEFAULT_HINT = "mend the default or the schema; until then it is not used"
PATTERN_HINT = "write it as JavaScript would read it"
SpecPart: TypeAlias = Literal["name", "description", "parameters", "required"]


class Places(Protocol):
    """Where in its file a tool says what."""

    @property
    def file(self) -> Path:
        """The file."""

    def line_of(self, part: SpecPart) -> int:
        """The line of what every tool has, or where it ought to be."""

    def property_line(self, name: str) -> int:
        """The line on which an argument is declared."""

    def default_line(self, name: str, *, in_schema: bool) -> int:
        """The line of an argument's default, which may stand elsewhere than in the schema."""


def spec_findings(places: Places, spec: ToolSpec) -> Iterator[Problem]:
    """Everything about a valid tool that its author should know, whatever its kind."""
    yield from description_findings(places, spec)
    if isinstance(spec.input, JsonInput):
        yield from required_findings(places, spec.input)
        yield from note_findings(places, spec.input)
    yield from format_findings(places, spec)


def description_findings(places: Places, spec: ToolSpec) -> Iterator[Problem]:
    """A model knows of a tool what its descriptions say, and nothing else."""
    if not spec.description.strip():
        message = "the tool has no description, and models choose tools by it"
        hint = "say in a sentence what the tool does"
        yield warning(places.file, places.line_of("description"), "no_description", message, hint=hint)
    for name, shape in properties_of(spec.input).items():
        if not (isinstance(shape, dict) and str(shape.get("description", "")).strip()):
            hint = "say what it means and in which form it is wanted"
            message = f"'{name}' has no description"
            yield warning(places.file, places.property_line(name), "no_description", message, hint=hint)


def required_findings(places: Places, given: JsonInput) -> Iterator[Problem]:
    """Every call must have what is required, also what no model has heard of."""
    for name in given.schema.get("required", ()):
        if name not in properties_of(given):
            message = f"'{name}' is required, but is no property: no model knows what to send"
            line = places.line_of("required")
            yield warning(places.file, line, "required_unknown", message, hint="add it to the properties")


def note_findings(places: Places, given: JsonInput) -> Iterator[Problem]:
    """A default that does not fit is not used, and a pattern that cannot be read not checked."""
    own = {name for name, shape in properties_of(given).items() if isinstance(shape, dict) and "default" in shape}
    for note in schema_notes(given.schema, given.defaults):
        name = str(note.path[1]) if note.path[:1] == ("properties",) else ""
        if note.keyword == "default":
            line = places.default_line(name, in_schema=name in own) if name else places.line_of("parameters")
            yield warning(places.file, line, "default_does_not_fit", str(note), hint=DEFAULT_HINT)
        else:
            line = places.property_line(name) if name else places.line_of("parameters")
            yield warning(places.file, line, "pattern_unreadable", str(note), hint=PATTERN_HINT)


def format_findings(places: Places, spec: ToolSpec) -> Iterator[Problem]:
    """What model APIs do not take."""
    for problem, message in gathered_problems(spec):
        consequence = "; the tool is left out there" if problem.fatal else ""
        line = places.line_of("name" if problem.code.startswith("name_") else "parameters")
        yield warning(places.file, line, f"format_{problem.code}", message + consequence, hint=problem.hint)


def gathered_problems(spec: ToolSpec) -> Iterator[tuple[FormatProblem, str]]:
    """Each problem with a wire format once, in words that name all formats which have it."""
    found = [
        problem
        for format in get_args(WireFormat)
        for problem in format_problems(spec, format)
        if problem.code != "description_missing"
    ]
    for _, same in groupby(sorted(found, key=lambda problem: problem.code), key=lambda problem: problem.code):
        first, *others = same
        yield first, first.message + (f" (the same with {', '.join(each.format for each in others)})" if others else "")


def properties_of(given: object) -> dict[str, Json]:
    properties = given.schema.get("properties") if isinstance(given, JsonInput) else None
    return properties if isinstance(properties, dict) else {}
