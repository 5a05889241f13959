"""`tools.json`: from a document to the entries of a manifest, or all that is wrong with them."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from toolyard.config.document import Place
from toolyard.core.arguments.faults import kind_of
from toolyard.core.arguments.schema import schema_fault
from toolyard.core.problems import Problem, did_you_mean
from toolyard.kinds.manifest.program import Program
from toolyard.kinds.manifest.tool import ManifestEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.config.document import Document
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


ManifestFaultCode = Literal[
    "manifest_type",
    "manifest_name",
    "manifest_duplicate_name",
    "manifest_command",
    "manifest_env_name",
    "manifest_path",
    "manifest_schema",
    "manifest_unknown_field",
]
FIELDS = ("name", "description", "schema", "command", "timeoutSec", "envPassthrough")
EXAMPLE = '{"tools": [{"name": "get_time", "command": ["./tools/bin/get_time"]}]}'


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest offers; nothing, when any of its entries is at fault."""

    entries: Sequence[ManifestEntry] = ()
    problems: Sequence[Problem] = ()

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing that keeps it from being used."""
        return all(problem.severity == "warning" for problem in self.problems)


Fault: TypeAlias = "tuple[Pointer, Problem]"
"""What is wrong with an entry, and at which of its values."""


def read_manifest(document: Document) -> Manifest:
    """Every entry is looked at, and the first fault of each is told."""
    tools = document.value.get("tools") if isinstance(document.value, dict) else None
    if not isinstance(tools, list):
        _, problem = fault("manifest_type", "a manifest is an object with 'tools', a list", EXAMPLE)
        return Manifest(problems=[problem.at(document.position(("tools",)))])
    taken: set[str] = set()
    found = [(index, wrong) for index, entry in enumerate(tools) if (wrong := first_fault(index, entry, taken))]
    problems = [problem.at(document.position(("tools", index, *at))) for index, (at, problem) in found]
    problems += unknown_fields(tools, document)
    entries = () if found else [make_entry(entry, document.folder) for entry in tools]
    return Manifest(entries=entries, problems=problems)


def first_fault(index: int, entry: Json, taken: set[str]) -> Fault | None:
    """The first of an entry's faults, in the order in which they are looked for; its name is taken from now on."""
    if not isinstance(entry, dict):
        message = f"tool[{index}]: an entry is an object, not {kind_of(entry)}"
        return fault("manifest_type", message, EXAMPLE)
    if wrong := name_fault(index, entry.get("name")):
        return wrong
    name: str = entry["name"]
    wrong = next(faults_of(entry, repeated=name in taken), None)
    taken.add(name)
    if wrong is None:
        return None
    at, problem = wrong
    return at, replace(problem, message=f"tool[{index}] {quoted(name)}: {problem.message}")


def name_fault(index: int, name: Json) -> Fault | None:
    hint = "a model calls the tool by its name"
    if not isinstance(name, str | None):
        message = f"tool[{index}]: name must be a string, not {kind_of(name)}"
        return fault("manifest_name", message, hint, "name")
    if not name or not name.strip():
        return fault("manifest_name", f"tool[{index}]: name is required", hint, "name")
    return None


def faults_of(entry: dict[str, Json], *, repeated: bool) -> Iterator[Fault]:
    if repeated:
        hint = "give each tool a name of its own"
        yield fault("manifest_duplicate_name", "duplicate name", hint, "name")
    yield from command_faults(entry.get("command"))
    yield from environment_faults(entry.get("envPassthrough"))
    yield from path_faults(entry["command"][0])
    yield from other_faults(entry)


def command_faults(command: Json) -> Iterator[Fault]:
    hint = 'a list of words, the program first: ["./tools/bin/get_time"]'
    if command is None or command == []:
        message = "command must have at least program name"
        yield fault("manifest_command", message, hint, "command")
    elif not isinstance(command, list):
        message = f"command must be a list of strings, not {kind_of(command)}"
        yield fault("manifest_command", message, hint, "command")
    else:
        for index, word in enumerate(command):
            if not isinstance(word, str):
                message = f"command[{index}] must be a string, not {kind_of(word)}"
                yield fault("manifest_command", message, hint, "command", index)
            elif "\0" in word or not is_text(word):
                message = f"command[{index}] holds what no command line can carry: {quoted(word)}"
                yield fault("manifest_command", message, hint, "command", index)


def environment_faults(names: Json) -> Iterator[Fault]:
    hint = 'names of variables, such as "TZ"'
    if not isinstance(names, list | None):
        message = f"envPassthrough must be a list of strings, not {kind_of(names)}"
        yield fault("manifest_env_name", message, hint, "envPassthrough")
        return
    for index, name in enumerate(names or ()):
        at = ("envPassthrough", index)
        if not isinstance(name, str):
            message = f"envPassthrough[{index}] must be a string, not {kind_of(name)}"
            yield fault("manifest_env_name", message, hint, *at)
        elif passed_name(name) is None:
            message = f"envPassthrough[{index}]: invalid name {quoted(name)} (must match [A-Z_][A-Z0-9_]*)"
            yield fault("manifest_env_name", message, hint, *at)


def path_faults(program: str) -> Iterator[Fault]:
    path = program_path(program)
    if isinstance(path, Problem):
        yield ("command", 0), path


def other_faults(entry: dict[str, Json]) -> Iterator[Fault]:
    """Values of which the common rules say no more than their type."""
    description, timeout, schema = (entry.get(key) for key in ("description", "timeoutSec", "schema"))
    if not isinstance(description, str | None):
        message = f"description must be a string, not {kind_of(description)}"
        yield fault("manifest_type", message, "say what the tool does", "description")
    if not isinstance(timeout, int | None) or isinstance(timeout, bool):
        message = f"timeoutSec must be an integer, not {kind_of(timeout)}"
        yield fault("manifest_type", message, "whole seconds, such as 5", "timeoutSec")
    if schema is not None and (reason := schema_fault(schema)):
        hint = 'for example {"type": "object", "properties": {"timezone": {"type": "string"}}}'
        message = f"schema is not a JSON Schema for arguments: {reason}"
        yield fault("manifest_schema", message, hint, "schema")


def unknown_fields(tools: Sequence[Json], document: Document) -> Iterator[Problem]:
    """Fields that nobody reads are most often misspelt ones."""
    for index, entry in enumerate(tools):
        for key in entry if isinstance(entry, dict) else ():
            if key not in FIELDS:
                hint = did_you_mean(key, FIELDS, f"an entry has {', '.join(FIELDS)}")
                message = f"tool[{index}]: nothing reads the field {quoted(key)}"
                problem = Place(document, ("tools", index, key)).problem("manifest_unknown_field", message, hint)
                yield replace(problem, severity="warning")


def make_entry(entry: dict[str, Json], folder: str) -> ManifestEntry:
    """An entry without a fault, in our terms."""
    program, *arguments = entry["command"]
    passed = [name for written in entry.get("envPassthrough") or () if (name := passed_name(written))]
    timeout = entry.get("timeoutSec") or 0
    return ManifestEntry(
        name=entry["name"],
        description=entry.get("description") or "",
        schema=entry.get("schema"),
        program=placed(str(program_path(program)), folder),
        arguments=tuple(arguments),
        timeout=timeout if timeout > 0 else None,
        env=without_repeats(passed),
    )


def placed(path: str, folder: str) -> Program:
    """A program in its place: a relative one below the manifest's own folder, which may itself be reached by links."""
    if os.path.isabs(path):
        return Program(path=path)
    within = os.path.join(os.path.realpath(folder), "tools", "bin")
    return Program(path=os.path.normpath(os.path.join(folder, path)), within=within)


def is_text(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def fault(code: ManifestFaultCode, message: str, hint: str, *at: str | int) -> Fault:
    return at, Problem(code=code, message=message, hint=hint)


PREFIX = "./tools/bin/"
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ESCAPED = dict(zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True))
"""What stands after a backslash for characters that have a sign of their own."""


def program_path(written: str) -> str | Problem:
    """An absolute path as it is, a relative one in its shortest form; it must not leave `tools/bin`."""
    if os.path.isabs(written):
        return written
    path = written.replace("\\", "/")
    if not path.startswith(PREFIX):
        return wrong_path(f"relative command[0] must start with {PREFIX}")
    short = shortest(path)
    if not short.startswith(PREFIX):
        got = f"(got {quoted(written)} -> {quoted(short)})"
        return wrong_path(f"command[0] escapes {PREFIX.rstrip('/')} after normalization {got}")
    return short


def wrong_path(reason: str) -> Problem:
    hint = "put the program into tools/bin beside the manifest, or give its absolute path"
    return Problem(code="manifest_path", message=reason, hint=hint)


def shortest(path: str) -> str:
    """A relative path without detours, beginning with `./` unless it leaves the folder altogether."""
    normal = posixpath.normpath(path)
    return normal if normal.split("/")[0] == ".." else f"./{normal}"


def passed_name(written: str) -> str | None:
    """A variable's name in the form in which it is looked up; None when it is none."""
    name = written.strip()
    return name.upper() if ENV_NAME.fullmatch(name) else None


def without_repeats(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, where it came first."""
    return tuple(dict.fromkeys(names))


def quoted(text: str) -> str:
    """A text in double quotes, with everything that cannot be seen as it would be written in a program."""
    return f'"{"".join(map(visible, text))}"'


def visible(char: str) -> str:
    if char in ESCAPED:
        return f"\\{ESCAPED[char]}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
