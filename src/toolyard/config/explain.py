"""Why a value is what it is: every layer that set it, and which of them won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from toolyard.config.agent_settings import BudgetSettings, CheckpointSettings, ContextSettings
from toolyard.config.layers import STRUCTURE, Layer, mapping, values_in_layers
from toolyard.config.origins import Origin, dotted
from toolyard.config.settings import SECTIONS, PermissionSettings
from toolyard.core.json_values import ABSENT, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


LayerVerdict: TypeAlias = Literal["won", "merged", "added", "overridden"]
PLUGIN_LISTS = ("plugins", "enabled_plugins", "disabled_plugins", "force_enabled_plugins")
ADDED_UP = {*((key,) for key in PLUGIN_LISTS), *(("permissions", key) for key in ("allow", "ask", "deny"))}
"""Lists that do not replace each other: those of all layers count together."""
WHOLE_FILE = (STRUCTURE | set(SECTIONS)) - {"output", "permissions"}
"""Keys that only the top level has, for all agents."""
WITH_DEFAULTS: dict[str, type[msgspec.Struct]] = {
    **SECTIONS,
    "permissions": PermissionSettings,
    "budget": BudgetSettings,
    "context": ContextSettings,
    "checkpoints": CheckpointSettings,
}


class LayerValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that some layer has, as it is written."""

    layer: str
    value: Json
    origin: Origin | None
    """None for a default, which nobody wrote."""
    verdict: LayerVerdict


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A value and what became of everything that was said about it."""

    key: str
    value: Json
    contributions: tuple[LayerValue, ...]
    """The strongest first; none when nobody says anything."""


def explain(configuration: Configuration, key: str, agent: str) -> Explanation:
    """Explain a key of an agent, of `agents.NAME` or `providers.NAME`, or of the file as a whole."""
    pointer = pointer_of(key, as_agents_see_it(configuration, agent))
    match pointer:
        case ("agents", str(name), _, *_):
            return explain_agent(configuration, pointer[2:], name, dotted(pointer))
        case ("providers", str(name), _, *_):
            provider = value_at(configuration.value, pointer[:2])
            layer = Layer(name=f"provider '{name}'", pointer=pointer[:2], value=provider)
            return explain_layer(configuration, pointer, layer, ())
        case (str(first), *_) if first in WHOLE_FILE and (first, len(pointer)) != ("plugins", 1):
            layer = Layer(name="top level", pointer=(), value=configuration.value)
            return explain_layer(configuration, pointer, layer, default_of(configuration, pointer))
    return explain_agent(configuration, pointer, agent, dotted(("agents", agent, *pointer)))


def explain_agent(configuration: Configuration, rest: Pointer, agent: str, key: str) -> Explanation:
    """Explain a value that an agent's layers override, or a list to which each adds."""
    layers = configuration.layers(agent)
    whole = {**configuration.for_agent(agent), "permissions": permissions_of(configuration, agent)}
    if rest in ADDED_UP:
        added = tuple(part for layer in layers for part in contributions(configuration, [layer], rest, winner="added"))
        value = (
            added_up(configuration, agent, rest[0]) if rest[0] in PLUGIN_LISTS else held(value_at(whole, rest), added)
        )
        return Explanation(key=key, value=value, contributions=added)
    found = tuple(contributions(configuration, layers[::-1], rest)) or default_of(configuration, rest)
    return Explanation(key=key, value=held(value_at(whole, rest), found), contributions=found)


def explain_layer(
    configuration: Configuration, pointer: Pointer, layer: Layer, default: tuple[LayerValue, ...]
) -> Explanation:
    """Explain a value that one layer alone sets."""
    found = tuple(contributions(configuration, [layer], pointer[len(layer.pointer) :])) or default
    value = held(value_at(configuration.value, pointer), found)
    return Explanation(key=dotted(pointer), value=value, contributions=found)


def contributions(
    configuration: Configuration, layers: Sequence[Layer], rest: Pointer, winner: Literal["won", "added"] = "won"
) -> Iterator[LayerValue]:
    """Every value that layers set here, the strongest first."""
    written = configuration.written
    won: Json = ABSENT
    for layer, origin, visible in setters(configuration, layers, rest):
        value = value_at(written.value if written else {}, origin.pointer)
        if value is ABSENT:  # nobody wrote it: the file stands for a configuration
            value = value_at(layer.value, rest)
        verdict: LayerVerdict = "overridden"
        if visible and won is ABSENT:
            won, verdict = value, winner
        elif visible and isinstance(won, dict) and isinstance(value, dict):
            verdict = "merged"
        yield LayerValue(layer=layer.name, value=value, origin=origin, verdict=verdict)


def setters(
    configuration: Configuration, layers: Sequence[Layer], rest: Pointer
) -> Iterator[tuple[Layer, Origin, bool]]:
    """Each place that sets a value, with its layer, and whether it counts within that layer."""
    origins = configuration.document.origins
    for layer in layers:
        if not layer.pointer or origins is None:
            if value_at(layer.value, rest) is not ABSENT:
                yield layer, Origin(pointer=(*layer.pointer, *rest)), True
            continue
        visible = set(origins.writers(layer.pointer, rest))
        for origin in origins.writers(layer.pointer, rest, hidden=True):
            yield layer, origin, origin in visible


def default_of(configuration: Configuration, pointer: Pointer) -> tuple[LayerValue, ...]:
    match pointer:
        case (str(section), str(name)) if section in WITH_DEFAULTS:
            kind = type(configuration.policy) if section == "plugin_policy" else WITH_DEFAULTS[section]
            default = value_at(msgspec.to_builtins(kind()), (name,))
            if default is not ABSENT:
                return (LayerValue(layer="default", value=default, origin=None, verdict="won"),)
    return ()


def held(value: Json, found: Sequence[LayerValue]) -> Json:
    """The value that is there, else a default, else None."""
    if value is ABSENT:
        return found[0].value if found else None
    return value


def as_agents_see_it(configuration: Configuration, agent: str) -> dict[str, Json]:
    """The file with the effective values of every agent, in which a typed key is looked up."""
    agents = mapping(configuration.value.get("agents"))
    whole = {name: {**mapping(own), **configuration.for_agent(name)} for name, own in agents.items()}
    return {**configuration.value, **configuration.for_agent(agent), "agents": whole}


def pointer_of(key: str, value: Json) -> Pointer:
    """The place that a dotted key means; names with dots in them are found if they are there."""
    steps: list[str | int] = []
    words = key.replace("[", ".").replace("]", "").split(".")
    while words:
        taken, step = next_step(words, value)
        steps.append(step)
        words, value = words[taken:], value_at(value, (step,))
    return tuple(steps)


def next_step(words: Sequence[str], value: Json) -> tuple[int, str | int]:
    if isinstance(value, list) and words[0].isdecimal():
        return 1, int(words[0])
    for taken in range(len(words), 0, -1):
        if isinstance(value, dict) and ".".join(words[:taken]) in value:
            return taken, ".".join(words[:taken])
    return 1, words[0]


def nearest_key(configuration: Configuration, key: str, agent: str) -> str | None:
    import difflib

    *owner, name = key.split(".")
    beside = value_at(whole_config(configuration, agent), owner[2:] if owner[:1] == ["agents"] else owner)
    close = difflib.get_close_matches(name, beside, n=1) if isinstance(beside, dict) else []
    return ".".join((*owner, close[0])) if close else None


def whole_config(configuration: Configuration, agent: str) -> dict[str, Json]:
    """The agent's values, the lists of plugins of all layers, and the application's settings with their defaults."""
    whole = configuration.for_agent(agent)
    for key in PLUGIN_LISTS:
        if values_in_layers(configuration.value, agent, key):
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
    for _, section in values_in_layers(configuration.value, agent, "permissions"):
        for key, value in mapping(section).items():
            adds = isinstance(value, list) and isinstance(whole.get(key), list) and key != "allowed_commands"
            whole[key] = [*whole[key], *value] if adds else value
    return whole


def added_up(configuration: Configuration, agent: str, key: str) -> list[Json]:
    """The entries of one list in all layers of an agent, from the bottom up, each once."""
    found: list[Json] = []
    for _, entries in values_in_layers(configuration.value, agent, key):
        found += [entry for entry in (entries if isinstance(entries, list) else ()) if entry not in found]
    return found
