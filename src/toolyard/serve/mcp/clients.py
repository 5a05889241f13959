"""What each client's settings file says of a server, and that file with it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable  # noqa: TC003 - a field of a struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "toolyard"
"""What clients call the server."""
TOKEN = "TOOLYARD_TOKEN"  # noqa: S105 - the name of a variable


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How a client reaches the server: it starts a command, or it knows an address."""

    command: tuple[str, ...] = ()
    url: str | None = None

    @property
    def started(self) -> dict[str, Any]:
        return {"command": self.command[0], "args": list(self.command[1:])}

    def known(self, url_key: str, variable: str, **more: str) -> dict[str, Any]:
        """The entry with an address; the token stays in the environment, `variable` is how the client writes that."""
        return {**more, url_key: self.url, "headers": {"Authorization": f"Bearer {variable}"}}


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client keeps its servers, and how it writes one."""

    file: str
    """Below the project's folder, or with ~ below the user's."""
    section: str
    entry: Callable[[ServerEntry], dict[str, Any]]
    syntax: Literal["json", "toml", "yaml"] = "json"
    takes_url: bool = True
    has_projects: bool = True
    """Whether it starts a server in the folder that a person works in, so that the folder need not be named."""


class NotMergeable(Exception):
    """A settings file that cannot be changed without losing something; the message says why."""


def stdio_or_http(entry: ServerEntry, variable: str, **more: str) -> dict[str, Any]:
    return entry.known("url", variable, **more) if entry.url else entry.started


def claude_code(entry: ServerEntry) -> dict[str, Any]:
    if entry.url:
        return entry.known("url", f"${{{TOKEN}}}", type="http")
    return {"type": "stdio", **entry.started}


def codex(entry: ServerEntry) -> dict[str, Any]:
    return {"url": entry.url, "bearer_token_env_var": TOKEN} if entry.url else entry.started


def opencode(entry: ServerEntry) -> dict[str, Any]:
    if entry.url:
        return {**entry.known("url", f"{{env:{TOKEN}}}", type="remote"), "enabled": True}
    return {"type": "local", "command": list(entry.command), "enabled": True}


def vscode(entry: ServerEntry) -> dict[str, Any]:
    if entry.url:
        return entry.known("url", f"${{env:{TOKEN}}}", type="http")
    return {"type": "stdio", **entry.started}


def goose(entry: ServerEntry) -> dict[str, Any]:
    common = {"name": NAME, "enabled": True, "timeout": 300}
    if entry.url:
        return {"type": "streamable_http", **common, **entry.known("uri", f"${{{TOKEN}}}"), "env_keys": [TOKEN]}
    return {"type": "stdio", **common, "cmd": entry.command[0], "args": list(entry.command[1:])}


CLAUDE_DESKTOP = "~/Library/Application Support/Claude" if sys.platform == "darwin" else "~/.config/Claude"
CLIENTS: Mapping[str, ClientSettings] = {
    "claude-code": ClientSettings(file=".mcp.json", section="mcpServers", entry=claude_code),
    "codex": ClientSettings(file="~/.codex/config.toml", section="mcp_servers", entry=codex, syntax="toml"),
    "gemini": ClientSettings(
        file=".gemini/settings.json",
        section="mcpServers",
        entry=lambda entry: stdio_or_http(entry, f"${TOKEN}", type="http"),
    ),
    "opencode": ClientSettings(file="opencode.json", section="mcp", entry=opencode),
    "vscode": ClientSettings(file=".vscode/mcp.json", section="servers", entry=vscode),
    "cursor": ClientSettings(
        file=".cursor/mcp.json", section="mcpServers", entry=lambda entry: stdio_or_http(entry, f"${{env:{TOKEN}}}")
    ),
    "goose": ClientSettings(file="~/.config/goose/config.yaml", section="extensions", entry=goose, syntax="yaml"),
    "zed": ClientSettings(
        file="~/.config/zed/settings.json",
        section="context_servers",
        entry=lambda entry: stdio_or_http(entry, "put-the-token-here"),  # it reads no variables there
    ),
    "claude-desktop": ClientSettings(
        file=f"{CLAUDE_DESKTOP}/claude_desktop_config.json",
        section="mcpServers",
        entry=lambda entry: entry.started,
        takes_url=False,
        has_projects=False,
    ),
}


def settings_file(client: ClientSettings, folder: Path) -> Path:
    return Path(client.file).expanduser() if client.file.startswith("~") else folder / client.file


def block(client: ClientSettings, entry: ServerEntry) -> str:
    """What to paste into an empty settings file."""
    return merge(client, entry, "")


def merge(client: ClientSettings, entry: ServerEntry, text: str) -> str:
    """A settings file with the server in it, in the place of one of that name."""
    match client.syntax:
        case "json":
            return merge_json(client.section, client.entry(entry), text)
        case "toml":
            return merge_toml(client.section, client.entry(entry), text)
        case "yaml":
            return merge_yaml(client.section, client.entry(entry), text)


def merge_json(section: str, entry: dict[str, Any], text: str) -> str:
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError:
        raise NotMergeable("it is no plain JSON; comments in it would be lost") from None
    if not isinstance(settings, dict) or not isinstance(settings.setdefault(section, {}), dict):
        raise NotMergeable(f"its '{section}' is no object")
    settings[section][NAME] = entry
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def merge_toml(section: str, entry: dict[str, Any], text: str) -> str:
    """The table of the server at the end; an old one is taken out, up to the next table."""
    table = "".join([f"[{section}.{NAME}]\n", *(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())])
    old = re.compile(rf"^\[{section}\.{NAME}(\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)
    rest = old.sub("", text).rstrip("\n")
    merged = f"{rest}\n\n{table}" if rest else table
    try:
        found = tomllib.loads(merged)[section][NAME]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        raise NotMergeable("it is no TOML, or has the server in a form of its own") from None
    if found != entry:
        raise NotMergeable("it has the server in a form of its own")
    return merged


def merge_yaml(section: str, entry: dict[str, Any], text: str) -> str:
    """The server as the first entry of its section; an old one is taken out, up to the next of its depth."""
    lines = [f"  {NAME}:\n", *(f"    {key}: {json.dumps(value)}\n" for key, value in entry.items())]
    rest = re.sub(rf"^  {NAME}:[^\n]*\n(?:(?:    [^\n]*)?\n)*", "", text, flags=re.MULTILINE)
    if rest and not rest.endswith("\n"):
        rest += "\n"
    head = re.compile(rf"^{section}:[ \t]*(?:\{{\}})?[ \t]*\n", re.MULTILINE)
    if head.search(rest):
        return head.sub(lambda _: "".join([f"{section}:\n", *lines]), rest, count=1)
    if re.search(rf"^{section}:", rest, re.MULTILINE):
        raise NotMergeable(f"its '{section}' is written in one line")
    return "".join([rest, f"{section}:\n", *lines])
