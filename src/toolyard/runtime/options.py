"""What an application is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import JsonObject, Tool
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.plugins.entries import Entry
    from toolyard.plugins.kind import Kind


class MoreTools(Protocol):
    """What the application itself gives an agent, by its configuration and its other tools."""

    def __call__(self, configuration: Configuration, agent: str, tools: Sequence[Tool]) -> Sequence[Tool]: ...


class ApplicationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an application was made with."""

    config: Path | JsonObject
    folder: Path
    """Where relative paths of a configuration start that is no file."""
    sessions: Path
    cache: Path
    kinds: tuple[Kind, ...]
    env_overrides: Mapping[str, str]
    config_env: Mapping[str, str]
    session: str
    session_metadata: JsonObject
    permissions: PermissionPolicy | None = None
    approver: Approver | None = None
    only: str | None = None
    """The one entry to load, instead of all."""
    given: Sequence[Entry] = ()
    """Tools that come from no configuration; every agent has them."""
    more_tools: MoreTools | None = None
