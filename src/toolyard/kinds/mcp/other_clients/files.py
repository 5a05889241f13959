"""Servers in the files of other clients: which files those are, and what their keys mean."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from toolyard.config.settings import MISFITS
from toolyard.core.json_values import brief
from toolyard.core.problems import Problem, did_you_mean
from toolyard.files.door import LARGEST_CONFIGURATION, Door, FileRefused
from toolyard.kinds.mcp.other_clients.variables import env_file, looked_up, with_variables
from toolyard.kinds.mcp.reference import McpOptions, server_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.kinds.mcp.reference import McpServer

PROJECT_FILES = (
    *(".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json", ".roo/mcp.json"),
    *("opencode.json", "opencode.jsonc", ".codex/config.toml", ".zed/settings.json"),
)
"""Where clients keep the servers of a project."""
USER_FILES = (
    *("~/.claude.json", "~/.codex/config.toml", "~/.gemini/settings.json", "~/.cursor/mcp.json"),
    *("~/.config/opencode/opencode.json", "~/.config/zed/settings.json", "~/.config/goose/config.yaml"),
    *("~/.config/Code/User/mcp.json", "~/.config/Claude/claude_desktop_config.json"),
    "~/Library/Application Support/Claude/claude_desktop_config.json",
)
"""Where they keep those of a user."""
OWN_NAME = "toolyard"
"""What this application is called in clients' files."""
BLOCKS = ("mcpServers", "mcp_servers", "servers", "context_servers", "extensions", "mcp")
"""Under which keys: Claude, Cursor and gemini-cli; Codex; VS Code; Zed; goose; opencode."""
NAMES = {
    **dict.fromkeys(("cmd",), "command"),
    **dict.fromkeys(("environment", "envs"), "env"),
    **dict.fromkeys(("httpUrl", "serverUrl", "uri"), "url"),
    **dict.fromkeys(("http_headers",), "headers"),
    **dict.fromkeys(("includeTools", "enabled_tools", "available_tools"), "tools"),
    **dict.fromkeys(("excludeTools", "disabled_tools"), "without_tools"),
    "tool_timeout_sec": "timeout_seconds",
}
"""Their words for what we call otherwise."""
KEPT = frozenset({"command", "args", "env", "cwd", "url", "headers", "tools", "without_tools", "timeout_seconds"})
COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
TRAILING = re.compile(r'"(?:[^"\\]|\\.)*"|(,)(?=\s*[}\]])', re.DOTALL)


def servers_of_file(path: str, at: Place, *, only: str | None = None) -> list[McpServer | Problem]:
    """The servers of a file, or one of them; a file that tools may have written is not obeyed."""
    value = read_client_file(path, at.document.door)
    if isinstance(value, Problem):
        return [at.problem(value.code, f"{path}: {value.message}", value.hint)]
    block = block_in(value, os.path.dirname(path))
    if not block:
        return [at.problem("mcp_file", f"{path} names no MCP servers", f"it has none of {', '.join(BLOCKS[:4])}")]
    if only is not None and only not in block:
        hint = did_you_mean(only, list(block), f"it has {', '.join(block)}")
        return [at.problem("mcp_unknown", f"{path} has no MCP server '{only}'", hint)]
    others = {name: one for name, one in block.items() if not is_ours(name, one)}
    chosen = others if only is None else {only: block[only]}
    return servers_in(chosen, at, base=os.path.dirname(path), file=path)


def servers_in(block: Json, at: Place, *, base: str, file: str | None = None) -> list[McpServer | Problem]:
    """The servers of a block, by their names; those that are turned off are left out."""
    if not isinstance(block, dict):
        return [at.problem("plugin_spec", "'mcpServers' is no object", 'for example {"NAME": {"command": "npx"}}')]
    return [one for name, value in block.items() for one in server_in(name, value, at, base, file)]


def server_in(name: str, value: Json, at: Place, base: str, file: str | None) -> Iterator[McpServer | Problem]:
    if not isinstance(value, dict):
        yield at.problem("mcp_server", f"the MCP server '{name}' is {brief(value)} and no object", "mend the file")
        return
    if value.get("disabled") is True or value.get("enabled") is False:
        return
    missing: list[str] = []
    folder = project_of(base)
    options = in_our_words(value, folder, missing)
    for variable in dict.fromkeys(missing):
        hint = f"set it: export {variable}=…"
        problem = at.problem("env_missing", f"the MCP server '{name}' wants the variable '{variable}', not set", hint)
        yield msgspec.structs.replace(problem, severity="warning")
    try:
        read = msgspec.convert({**options, "name": name}, McpOptions)
    except MISFITS as error:
        message = f"the MCP server '{name}': {str(error).replace('`', '')}"
        yield at.problem("mcp_server", message, "it needs a 'command' or a 'url'")
        return
    if (read.command is None) == (read.url is None):
        yield at.problem("mcp_server", f"the MCP server '{name}' needs a 'command' or a 'url'", "mend the file")
        return
    yield server_of(read, at, base=folder, file=file)


def project_of(folder: str) -> str:
    """The folder that a file is for: above those in which clients keep their own."""
    name = os.path.basename(folder)
    return os.path.dirname(folder) if name in (".cursor", ".vscode", ".gemini", ".roo", ".codex", ".zed") else folder


def in_our_words(value: Mapping[str, Json], folder: str, missing: list[str]) -> dict[str, Json]:
    """What a client says of a server, under our keys, with its variables replaced."""
    found = {NAMES.get(key, key): part for key, part in value.items()}
    if isinstance(found.get("command"), dict):  # Zed of old
        inner = found.pop("command")
        found |= {"command": inner.get("path"), "args": inner.get("args") or [], "env": inner.get("env") or {}}
    if "timeout" in value:  # milliseconds, but for goose
        found["timeout_seconds"] = value["timeout"] / (1 if "cmd" in value or "uri" in value else 1000)
    env = {**env_file(value.get("envFile"), folder, missing), **(found.get("env") or {})}
    for name in (*(value.get("env_vars") or ()), *(value.get("env_keys") or ())):
        env[str(name)] = looked_up(str(name), missing)
    headers = dict(found.get("headers") or {})
    for header, name in (value.get("env_http_headers") or {}).items():
        headers[header] = looked_up(name, missing)
    if name := value.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer {looked_up(name, missing)}"
    told = {key: part for key, part in found.items() if key in KEPT} | {"env": env, "headers": headers}
    if value.get("type") == "sse":
        told["type"] = "sse"
    expanded: dict[str, Json] = with_variables(told, folder, missing)
    return expanded


def block_in(value: Any, folder: str) -> dict[str, Json]:
    """The servers that a client's file names, by their names; none in one that is something else."""
    if not isinstance(value, dict):
        return {}
    of_project = (value.get("projects") or {}) if isinstance(value.get("projects"), dict) else {}
    found: dict[str, Json] = {}
    for part in (value, of_project.get(folder)):
        for key in BLOCKS:
            block = part.get(key) if isinstance(part, dict) else None
            if key == "mcp" and isinstance(block, dict) and isinstance(block.get("servers"), dict):
                block = block["servers"]  # in the settings of VS Code
            if isinstance(block, dict) and all(isinstance(one, dict) for one in block.values()):
                found |= {name: one for name, one in block.items() if is_server(one)}
    return found


def is_ours(name: str, value: Json) -> bool:
    """Whether an entry is this application as a server: it would serve its own tools to itself, again and again."""
    if not isinstance(value, dict):
        return False
    command = value.get("command") or value.get("cmd") or ""
    words = [*(command if isinstance(command, list) else [command]), *(value.get("args") or ())]
    has_name = any(os.path.basename(str(word)) == OWN_NAME for word in words)
    serves = any(words[at : at + 2] == ["serve", "--mcp"] for at in range(len(words)))
    return (has_name and serves) or (name == OWN_NAME and is_loopback(value))


def is_loopback(value: Mapping[str, Json]) -> bool:
    """Whether a server is at an address of this machine."""
    urls = (value.get(key) for key, meant in (*NAMES.items(), ("url", "url")) if meant == "url")
    hosts = [urlsplit(url).hostname for url in urls if isinstance(url, str)]
    return any(host in ("127.0.0.1", "::1", "localhost") for host in hosts)


def is_server(value: Mapping[str, Json]) -> bool:
    """Whether something is a server; goose keeps more than those in one place."""
    return any(key in value for key in ("command", "cmd", "url", "httpUrl", "serverUrl", "uri"))


def file_with_server(name: str, folder: str) -> str | None:
    """The first file of another client, of the project or else of the user, that knows a server by a name."""
    for file in (*(os.path.join(folder, one) for one in PROJECT_FILES), *map(os.path.expanduser, USER_FILES)):
        if name in block_in(read_client_file(file), folder):
            return file
    return None


def read_client_file(path: str, door: Door | None = None) -> Json | Problem:
    """What a file holds, be it JSON with comments, TOML or YAML; a problem where it cannot be read."""
    try:
        text = (door or Door.here()).read_accepted(path, largest=LARGEST_CONFIGURATION).text()
    except FileRefused as refused:
        return refused.problem("mcp_file")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
        return Problem(code="mcp_file", message=f"it cannot be read: {reason}", hint="check the path")
    try:
        return decoded(text, path)
    except ValueError as error:
        return Problem(code="mcp_file", message=f"it cannot be understood: {error}", hint="mend the file")


def decoded(text: str, path: str) -> Json:
    if path.endswith(".toml"):
        import tomllib

        return tomllib.loads(text)
    if path.endswith((".yaml", ".yml")):
        from toolyard.kinds.mcp.other_clients.plain_yaml import read_yaml

        return read_yaml(text)
    try:
        return json.loads(text)
    except ValueError:
        plain = COMMENTS.sub(lambda found: "" if found[1] else found[0], text)
        return json.loads(TRAILING.sub(lambda found: "" if found[1] else found[0], plain))
