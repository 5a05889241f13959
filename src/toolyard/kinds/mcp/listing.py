"""What a server has to offer, as it said itself: kept by what the server is made of, so that it need not be started."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolyard.core.arguments.schema import schema_fault
from toolyard.files.door import FileRefused
from toolyard.kinds.mcp.reference import McpProgram
from toolyard.process.interpreter import find_interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp import Client
    from mcp.types import Tool

    from toolyard.core.tool import Json
    from toolyard.files.content_cache import ContentCache
    from toolyard.files.door import Door
    from toolyard.kinds.mcp.health import ServerLost
    from toolyard.kinds.mcp.reference import McpAddress
    from toolyard.plugins.host import Host

FORM = 3
"""Changes when what is kept of a listing does."""
MOST_PAGES = 100
LARGEST_PROGRAM = 4 << 20
"""A file of a command that is larger counts by its size and time."""


class McpDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as its server describes it."""

    name: str
    description: str = ""
    schema: dict[str, Any]
    read_only: bool = False
    destructive: bool = False
    has_output_schema: bool = False

    @property
    def digest(self) -> str:
        """What a person lets run when they let the tool run."""
        told = [self.name, self.description, self.schema, self.read_only, self.destructive]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


Offered: TypeAlias = "dict[str, McpDefinition] | ServerLost"
"""A server's tools by their names, or why it does not say which it has."""


class McpResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be read; a template has `{…}` in its address."""

    uri: str
    name: str = ""
    description: str = ""
    definition: dict[str, Any] = {}
    """As the server gave it, to be passed on."""

    @property
    def is_template(self) -> bool:
        return "uriTemplate" in self.definition


class McpPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A text that a server makes for whoever asks."""

    name: str
    description: str = ""
    arguments: list[str] = []
    required: list[str] = []
    definition: dict[str, Any] = {}


class McpListing(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server offers."""

    tools: list[McpDefinition] = []
    resources: list[McpResource] = []
    prompts: list[McpPrompt] = []
    faults: list[str] = []
    """Tools that cannot be used, and why."""
    completes: bool = False
    """Whether it completes arguments of its prompts and templates."""
    tells_updates: bool = False
    """Whether it tells of changes of single resources."""
    protocol: str = ""
    """The revision that the server speaks."""
    server: str = ""
    """Name and version, as it says."""
    is_missing: bool = False
    """Whether this stands for a list that the server did not give when it was last asked."""


def listing_cache(host: Host) -> ContentCache[McpListing]:
    return host.caches.get("mcp-servers", McpListing)


def listing_key(server: McpProgram | McpAddress, host: Host) -> str:
    """What a listing depends on: how the server is started or reached, and the contents of what is started."""
    told: list[Json]
    if isinstance(server, McpProgram):
        told = [FORM, server.command, server.env, server.cwd, list(contents(server, host))]
    else:
        told = [FORM, server.url, server.headers, server.form]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def contents(server: McpProgram, host: Host) -> Iterator[str]:
    """The program, the files that its arguments name, and the packages that those belong to."""
    program = find_interpreter(server.command[0], host.configuration.door)
    yield program.identity if program else ""
    for word in server.command:
        if os.path.isabs(word) and os.path.isfile(word):
            yield content_of(word, host.configuration.door)
            yield from packages_around(os.path.realpath(word), host.configuration.door)


def content_of(path: str, door: Door) -> str:
    try:
        facts = os.stat(path)
        if facts.st_size > LARGEST_PROGRAM:
            return f"{facts.st_size}:{facts.st_mtime_ns}"
        return hashlib.sha256(door.read(path, largest=LARGEST_PROGRAM).data).hexdigest()
    except (OSError, FileRefused):
        return ""


def packages_around(path: str, door: Door) -> Iterator[str]:
    """The nearest `package.json` above a file, which says the version."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if os.path.isfile(manifest := os.path.join(folder, "package.json")):
            yield content_of(manifest, door)
            return
        folder = os.path.dirname(folder)


async def fetch_tools(client: Client, faults: list[str]) -> list[McpDefinition]:
    """Ask a server for its tools; `faults` are those that were found in its answers on the way here."""
    found: list[McpDefinition] = []
    faults.clear()
    if client.server_capabilities.tools is not None:
        for tool in await every(client.list_tools, "tools"):
            definition = definition_of(tool)
            (found if isinstance(definition, McpDefinition) else faults).append(definition)  # type: ignore[arg-type]
    return found


async def fetch_listing(client: Client, faults: list[str], tools: list[McpDefinition]) -> McpListing:
    """Ask a server for everything beside its tools."""
    capabilities, info = client.server_capabilities, client.server_info
    return McpListing(
        tools=tools,
        resources=await resources_of(client) if capabilities.resources is not None else [],
        prompts=await prompts_of(client) if capabilities.prompts is not None else [],
        faults=list(faults),
        completes=capabilities.completions is not None,
        tells_updates=bool(capabilities.resources and capabilities.resources.subscribe),
        protocol=client.protocol_version,
        server=f"{info.name} {info.version}".strip() if info else "",
    )


async def every(ask: Any, what: str) -> list[Any]:
    """All pages of a list."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await ask(cursor=cursor, cache_mode="bypass")
        found += getattr(page, what)
        if (cursor := page.next_cursor) is None:
            break
    return found


def definition_of(tool: Tool) -> McpDefinition | str:
    """A tool as a type, or what is wrong with it."""
    if fault := schema_fault(tool.input_schema):
        return f"'{tool.name}': its inputSchema: {fault}"
    notes = tool.annotations
    return McpDefinition(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        read_only=bool(notes and notes.read_only_hint),
        destructive=bool(notes and notes.destructive_hint),
        has_output_schema=tool.output_schema is not None,
    )


async def resources_of(client: Client) -> list[McpResource]:
    found = [(one.uri, one) for one in await every(client.list_resources, "resources")]
    found += [(one.uri_template, one) for one in await every(client.list_resource_templates, "resource_templates")]
    return [
        McpResource(uri=str(uri), name=one.name, description=one.description or "", definition=on_wire(one))
        for uri, one in found
    ]


async def prompts_of(client: Client) -> list[McpPrompt]:
    return [
        McpPrompt(
            name=one.name,
            description=one.description or "",
            arguments=[argument.name for argument in one.arguments or ()],
            required=[argument.name for argument in one.arguments or () if argument.required],
            definition=on_wire(one),
        )
        for one in await every(client.list_prompts, "prompts")
    ]


def on_wire(item: Any) -> dict[str, Any]:
    """Something of the SDK as it is on the wire."""
    form: dict[str, Any] = item.model_dump(mode="json", by_alias=True, exclude_none=True)
    return form


def without_bad_tools(result: Any, faults: list[str]) -> None:
    """Take out of an answer the tools that would cost all others: the SDK refuses a list with one that does not fit."""
    if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
        return
    from mcp.types import Tool

    kept: list[Json] = []
    for tool in result["tools"]:
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict) and "type" not in schema:
            schema["type"] = "object"  # which it can only be, and many forget to say
        try:
            Tool.model_validate(tool, by_name=False)
            fault = schema_fault(schema)
        except ValueError as error:
            first: Any = error.errors()[0] if hasattr(error, "errors") else {}
            place = ".".join(map(str, first.get("loc", ())))
            fault = f"{place}: {first.get('msg', error)}".removeprefix(": ")
        if fault:
            name = tool.get("name") if isinstance(tool, dict) else None
            faults.append(f"'{name or 'a tool without a name'}': {fault}")
        else:
            kept.append(tool)
    result["tools"] = kept
