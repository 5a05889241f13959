"""All that holds for one agent, as one object: what `config show` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.config.layers import mapping

if TYPE_CHECKING:
    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import Json

__all__ = ["ADDING", "added_up", "permissions_of", "whole_config"]

ADDING = ("plugins", "enabled_plugins", "disabled_plugins", "force_enabled_plugins")
"""Lists that do not replace each other: those of all layers count together."""


def whole_config(configuration: Configuration, agent: str) -> dict[str, Json]:
    """The agent's values, the lists of plugins of all layers, and the application's settings with their defaults."""
    whole = configuration.for_agent(agent)
    for key in ADDING:
        if any(key in layer.value for layer in configuration.layers(agent)):
            whole[key] = added_up(configuration, agent, key)
    if "plugin_cache_dir" in configuration.value:
        whole["plugin_cache_dir"] = configuration.value["plugin_cache_dir"]
    if permissions := permissions_of(configuration, agent):
        whole["permissions"] = permissions
    sections = {
        "plugin_policy": configuration.policy,
        "output": configuration.output_of(agent),
        "limits": configuration.limits,
        "audit": configuration.audit,
        "sandbox": configuration.sandbox,
    }
    return whole | {name: msgspec.to_builtins(section) for name, section in sections.items()}


def permissions_of(configuration: Configuration, agent: str) -> dict[str, Json]:
    """The agent's permissions: rules of all layers add up, of the rest the nearest counts."""
    whole: dict[str, Json] = {}
    for layer in configuration.layers(agent):
        for key, value in mapping(layer.value.get("permissions")).items():
            adds = isinstance(value, list) and isinstance(whole.get(key), list) and key != "allowed_commands"
            whole[key] = [*whole[key], *value] if adds else value
    return whole


def added_up(configuration: Configuration, agent: str, key: str) -> list[Json]:
    """The entries of one list in all layers of an agent, from the bottom up, each once."""
    found: list[Json] = []
    for layer in configuration.layers(agent):
        entries = layer.value.get(key)
        found += [entry for entry in (entries if isinstance(entries, list) else ()) if entry not in found]
    return found
