"""What an agent's configuration amounts to: agent over provider over top level."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.tool import Json, JsonObject

__all__ = ["STRUCTURE", "effective_config", "merge_deep"]

STRUCTURE = frozenset(
    {
        "$schema",
        "agents",
        "providers",
        "plugins",
        "plugin_policy",
        "plugin_cache_dir",
        "mixins",
        "mixin_policy",
        "permissions",
    }
)
"""Keys that arrange the file instead of configuring an agent."""


def effective_config(config: JsonObject, agent: str) -> dict[str, Json]:
    """The values an agent's tools see."""
    own = mapping(mapping(config.get("agents")).get(agent))
    provider = mapping(mapping(config.get("providers")).get(str(own.get("provider"))))
    effective: dict[str, Json] = {}
    for layer in (config, provider, own):
        effective = merge_deep(effective, {key: value for key, value in layer.items() if key not in STRUCTURE})
    return effective


def merge_deep(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """Mappings merge key by key, anything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge_deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def mapping(value: Json) -> JsonObject:
    """The value if it is an object, else nothing."""
    return value if isinstance(value, dict) else {}
