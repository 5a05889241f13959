"""What a folder already has that a configuration could load. Nothing that is found is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Document, read_document
from toolyard.config.layers import mapping
from toolyard.core.problems import Problem
from toolyard.kinds.bash_script.comments import has_comment_tags
from toolyard.kinds.bash_script.schema_reading import SCHEMA_SUBCOMMAND
from toolyard.plugins.descriptors import DESCRIPTOR
from toolyard.plugins.spec import parse_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolyard.core.tool import Json, JsonObject


DEEPEST = 3
MOST_FOLDERS = 2000
LARGEST_SCRIPT = 1 << 20
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "env", "target", "dist", "build", "tests", "test"})
MCP_CONFIGS = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json", ".roo/mcp.json")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something that tools could come from."""

    what: str
    entry: Json
    """What `plugins` would say to load it."""
    is_loadable: bool
    """Whether this version knows that spelling."""
    needs_bash: bool = False


def find_plugins(folder: Path) -> list[Found]:
    """Everything below a folder that looks like tools, in a steady order."""
    document = Document(folder / "toolyard.json", "{}", {})
    found = [*in_folders(folder), *in_mcp_configs(folder)]
    return [
        Found(
            what=what,
            entry=entry,
            is_loadable=not isinstance(parse_plugin(entry, ("plugins",), document), Problem),
            needs_bash=isinstance(entry, str) and entry.startswith("bash:"),
        )
        for what, entry in found
    ]


def in_folders(top: Path) -> Iterator[tuple[str, Json]]:
    """The tools of each folder: what its descriptors list, else its scripts."""
    for folder, files in walk(top):
        place = spelled(folder.relative_to(top))
        described = False
        for name, read in DESCRIPTIONS.items():
            if name in files:
                entries = list(read(mapping(json_of(folder / name)), place))
                described = described or (name == DESCRIPTOR and bool(entries))
                yield from entries
        if not described:
            for name in files:
                if is_bash_tool(folder / name):
                    yield "bash tool", f"bash:{place}/{name}"


def walk(top: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with their files, from the top down, less those that hold what others made."""
    for number, (path, folders, files) in enumerate(os.walk(top)):
        folder = Path(path)
        depth = len(folder.relative_to(top).parts)
        folders[:] = sorted(
            name for name in folders if depth < DEEPEST and name not in SKIPPED and not name.startswith(".")
        )
        if number >= MOST_FOLDERS:
            return
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        yield folder, sorted(files)


def plugin_folder(descriptor: JsonObject, place: str) -> Iterator[tuple[str, Json]]:
    if descriptor.get("bash_tools"):
        yield "folder of bash tools", f"bash:{place}"
    elif descriptor.get("entries"):
        yield "Python plugin", f"path:{place}"


def node_package(package: JsonObject, place: str) -> Iterator[tuple[str, Json]]:
    if mapping(package.get("agent")).get("tools"):
        yield "Node tools", f"node:{place}"


def manifest(content: JsonObject, place: str) -> Iterator[tuple[str, Json]]:
    tools = content.get("tools")
    if isinstance(tools, list) and tools and all("command" in mapping(tool) for tool in tools):
        yield "manifest of commands", f"manifest:{place}/tools.json"


DESCRIPTIONS: dict[str, Callable[[JsonObject, str], Iterator[tuple[str, Json]]]] = {
    DESCRIPTOR: plugin_folder,
    "package.json": node_package,
    "tools.json": manifest,
}
"""Files that describe tools; a new kind of source is one line here."""


def in_mcp_configs(top: Path) -> Iterator[tuple[str, Json]]:
    """The MCP servers that other clients are configured with."""
    for name in MCP_CONFIGS:
        config = mapping(json_of(top / name))
        servers = mapping(config.get("mcpServers") or config.get("servers"))
        for server in servers:
            yield f"MCP server '{server}'", {"mcp": {"file": f"./{name}", "server": server}}


def is_bash_tool(file: Path) -> bool:
    """Whether a script says of itself that it is a tool. Loading it will run it, so a mere guess would not do."""
    if file.suffix not in (".bash", ".sh"):
        return False
    try:
        if file.stat().st_size > LARGEST_SCRIPT:
            return False
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return False
    return has_comment_tags(text) or ("args_mode" in text and SCHEMA_SUBCOMMAND.search(text) is not None)


def json_of(file: Path) -> Json:
    """What a file holds; nothing when it cannot be read."""
    if not file.is_file():
        return None
    document = read_document(file)
    return None if isinstance(document, Problem) else document.value


def spelled(place: Path) -> str:
    return "." if place == Path() else f"./{place.as_posix()}"
