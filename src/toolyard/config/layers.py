"""What an agent's configuration amounts to: agent over provider over top level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json, JsonObject


STRUCTURE = frozenset({
    "$schema", "agents", "providers", "plugins", "plugin_policy", "plugin_cache_dir", "mixins", "mixin_policy",
    "permissions",
})  # fmt: skip
"""Keys that arrange the file instead of configuring an agent."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One of the objects that an agent's configuration is made of."""

    name: str
    pointer: Pointer
    value: JsonObject


def layers_of(config: JsonObject, agent: str) -> Sequence[Layer]:
    """The layers of an agent, from the bottom up."""
    own = mapping(mapping(config.get("agents")).get(agent))
    layers = [Layer(name="top level", pointer=(), value=config)]
    provider = provider_of(config, own)
    if isinstance(found := mapping(config.get("providers")).get(provider), dict):
        layers.append(Layer(name=f"provider '{provider}'", pointer=("providers", provider), value=found))
    return [*layers, Layer(name=f"agent '{agent}'", pointer=("agents", agent), value=own)]


def values_in_layers(config: JsonObject, agent: str, key: str) -> list[tuple[Pointer, Json]]:
    """What the layers of an agent say under a key, from the bottom up, each with its place."""
    return [((*layer.pointer, key), layer.value[key]) for layer in layers_of(config, agent) if key in layer.value]


def provider_of(config: JsonObject, own: JsonObject) -> str:
    """The provider that an agent names, or the file for all that name none; empty without one."""
    provider = own.get("provider", config.get("provider"))
    return provider if isinstance(provider, str) else ""


def effective_config(config: JsonObject, agent: str) -> dict[str, Json]:
    """Merge the layers into the values that an agent's tools see."""
    effective: dict[str, Json] = {}
    for layer in layers_of(config, agent):
        effective = merge_deep(effective, {key: value for key, value in layer.value.items() if key not in STRUCTURE})
    return effective


def merge_deep(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """Merge objects key by key; replace anything else."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge_deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def mapping(value: Json) -> JsonObject:
    """The value if it is an object, else nothing."""
    return value if isinstance(value, dict) else {}
