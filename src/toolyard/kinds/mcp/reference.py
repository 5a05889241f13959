"""How a configuration names MCP servers: by itself, or by a file that another client has."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.config.settings import MISFITS
from toolyard.core.problems import Problem
from toolyard.plugins.kind import Named, Reference
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json

EXAMPLES = 'for example {"mcp": {"command": ["npx", "-y", "PACKAGE"]}} or {"mcp": {"url": "https://HOST/mcp"}}'
RUNNERS = re.compile(r"(?:npx|bunx|uvx|pipx|uv|npm|pnpm|yarn|bun|deno|node|python[\d.]*|docker|bash|sh|env)")
"""Programs that run others, which a server is rather named after."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_NAME = 64
Pairs = tuple[tuple[str, str], ...]


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which of a server's tools are wanted, and by which names."""

    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    names: Pairs = ()
    """The names that tools have here, by those that they have there."""

    def has(self, name: str) -> bool:
        return name not in self.without and (self.only is None or name in self.only)

    def name_of(self, name: str) -> str:
        return dict(self.names).get(name) or name


class McpServer(Reference, frozen=True, kw_only=True):
    """One server."""

    name: str
    """What it is called here; the id of its plugin."""
    choice: ToolChoice = ToolChoice()
    timeout: float | None = None
    """How many seconds a call may take; None for what policy says."""
    file: str | None = None
    """The file of another client that names it."""

    @property
    def roots(self) -> Sequence[str]:
        """Who writes that file says what is run, and where secrets are sent to."""
        return (self.file,) if self.file else ()


def secret_values(values: Pairs) -> dict[str, str]:
    """Those of some variables or headers that are secret; of `Bearer TOKEN` the token."""
    words = {name: value.rpartition(" ")[2] for name, value in values}
    return {
        name: words[name]
        for name, value in values
        if len(words[name]) >= SHORTEST_SECRET and looks_like_credential(name, value)
    }


class McpProgram(McpServer, frozen=True, kw_only=True):
    """A program that speaks by its standard streams."""

    command: tuple[str, ...]
    env: Pairs = ()
    cwd: str | None = None
    """Where it runs; None for where calls work."""

    @property
    def secrets(self) -> Mapping[str, str]:
        return secret_values(self.env)

    @property
    def paths(self) -> Sequence[str]:
        """What of its command is on this machine."""
        return [word for word in self.command if os.path.isabs(word) and os.path.exists(word)]

    @property
    def scripts(self) -> Sequence[str]:
        """The files among its words; a folder may be one that it is to work in."""
        places = (self.cwd or self.at.path("."), self.at.path("."))
        named = (os.path.join(place, word) for word in self.command for place in places)
        return [path for path in dict.fromkeys(named) if os.path.isfile(path)]


class OAuthOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to sign in to a server that does not let clients register themselves, or that wants more than it says."""

    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    client_metadata_url: str | None = None
    """Where a document lies that says who we are, for servers that take its address as the id of a client."""
    callback_port: int = 0
    """On which the browser comes back, where the server knows only one address of ours; 0 for any."""


class McpAddress(McpServer, frozen=True, kw_only=True):
    """A server at an address."""

    url: str
    headers: Pairs = ()
    form: Literal["http", "sse"] = "http"
    """The transport: streamable HTTP, or the one before it with a stream of events."""
    oauth: OAuthOptions = OAuthOptions()

    @property
    def secrets(self) -> Mapping[str, str]:
        return secret_values((*self.headers, ("client_secret", self.oauth.client_secret or "")))


class McpOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`mcp`: a `command`, a `url`, or the `file` of another client; and what goes with it."""

    command: str | list[str] | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    headers: dict[str, str] = {}
    oauth: OAuthOptions = OAuthOptions()
    file: str | None = None
    server: str | None = None
    name: str | None = None
    tools: list[str] | None = None
    without_tools: list[str] = []
    rename: dict[str, str] = {}
    timeout_seconds: float | None = None


def read_options(value: Json, at: Place) -> Named:
    """`{"mcp": {…}}`."""
    from toolyard.plugins.spellings import unknown_key

    place = at.below("mcp")
    try:
        options = msgspec.convert(value, McpOptions)
    except MISFITS as error:
        known = McpOptions.__struct_fields__
        if wrong := unknown_key(value, "mcp", known, place):
            return Named(problems=[wrong])
        return Named(problems=[place.problem("plugin_spec", f"'mcp': {str(error).replace('`', '')}", EXAMPLES)])
    if sum(each is not None for each in (options.command, options.url, options.file)) != 1:
        message = "'mcp' needs exactly one of 'command', 'url' and 'file'"
        return Named(problems=[place.problem("plugin_spec", message, EXAMPLES)])
    if options.file is not None:
        return read_file(options.file, options.server, at)
    server = server_of(options, at, base=at.document.folder)
    return named([server])


def read_block(block: Json, at: Place) -> Named:
    """A block of servers by their names, pasted as it is from another client's file."""
    from toolyard.kinds.mcp.other_clients.files import servers_in

    return named(servers_in(block, at, base=at.document.folder))


def read_file(name: str, server: str | None, at: Place) -> Named:
    """All servers of another client's file, or one of them."""
    from toolyard.kinds.mcp.other_clients.files import servers_of_file

    path = at.path(name)
    found = named(servers_of_file(path, at, only=server))
    return msgspec.structs.replace(found, watched=[path])


def read_name(name: str, at: Place) -> Named:
    """`mcp:NAME`, a server that this configuration or another client's file in reach knows by that name."""
    from toolyard.kinds.mcp.other_clients.files import file_with_server

    if not name:
        return Named(problems=[at.problem("plugin_spec", "'mcp:' names no server", EXAMPLES)])
    own = at.document.value.get("mcpServers") if isinstance(at.document.value, dict) else None
    if isinstance(own, dict) and name in own:
        return read_block({name: own[name]}, at)
    path = file_with_server(name, at.document.folder)
    if path is None:
        message = f"no MCP server is called '{name}' in the files of other clients here or in your home"
        return Named(problems=[at.problem("mcp_unknown", message, EXAMPLES)])
    return read_file(path, name, at)


def named(servers: Sequence[McpServer | Problem]) -> Named:
    return Named(
        references=[one for one in servers if isinstance(one, McpServer)],
        problems=[one for one in servers if isinstance(one, Problem)],
    )


def server_of(options: McpOptions, at: Place, *, base: str, file: str | None = None) -> McpServer | Problem:
    """The server that options describe; relative paths of a command start at `base`."""
    words = [options.command] if isinstance(options.command, str) else list(options.command or ())
    words += options.args
    if options.url is None and not any(words[:1]):
        return at.problem("plugin_spec", "the command of an MCP server is empty", EXAMPLES)
    shared: dict[str, Any] = {
        "at": at,
        "name": fitting(options.name or (name_in(words) if options.url is None else host_in(options.url))),
        "choice": ToolChoice(
            only=None if options.tools is None else tuple(options.tools),
            without=tuple(options.without_tools),
            names=pairs(options.rename),
        ),
        "timeout": options.timeout_seconds,
        "file": file,
    }
    if options.url is None:
        cwd = None if options.cwd is None else absolute(options.cwd, base)
        return McpProgram(command=tuple(located(words, base)), env=pairs(options.env), cwd=cwd, **shared)
    if not re.match(r"https?://[^/]", options.url):
        return at.problem("plugin_spec", f"'{options.url}' is no address of an MCP server", EXAMPLES)
    form: Literal["http", "sse"] = "sse" if options.type == "sse" else "http"
    return McpAddress(url=options.url, headers=pairs(options.headers), form=form, oauth=options.oauth, **shared)


def pairs(values: Mapping[str, str]) -> Pairs:
    return tuple(sorted(values.items()))


def absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def located(words: Sequence[str], base: str) -> Iterator[str]:
    """The words with those absolute that are paths from where they are written, as `./server.py`."""
    for word in words:
        is_path = word.startswith(("./", "../", "~/")) or (os.sep in word and os.path.exists(os.path.join(base, word)))
        yield absolute(word, base) if is_path else word


def name_in(words: Sequence[str]) -> str:
    """What a command is about: the program, or what a runner of programs runs."""
    program = stem(words[0])
    if not RUNNERS.fullmatch(program):
        return program
    rest = [word for word in words[1:] if not word.startswith("-") and word not in ("run", "exec", "x", "tool", "dlx")]
    return stem(rest[0]) if rest else program


def stem(word: str) -> str:
    """`@scope/server-x@1.2` and `./a/server-x.py` are `server-x`."""
    last = word.rstrip("/").rpartition("/")[2]
    return re.sub(r"(?:@.*|\.(?:py|js|mjs|cjs|ts|sh))$", "", last)


def host_in(url: str) -> str:
    return re.sub(r"^https?://(?:[^/@]*@)?(?:www\.|mcp\.|api\.)?", "", url).partition("/")[0].partition(":")[0]


def fitting(name: str) -> str:
    """A name as ids of plugins are written."""
    return NOT_IN_NAMES.sub("_", name).strip("_") or "mcp"


def fitted(name: str) -> str:
    """A name that every receiver takes: letters, digits, `_` and `-`, and not too long."""
    plain = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else fitting(name)
    return plain[:LONGEST_NAME]
