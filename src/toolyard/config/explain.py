"""Why a value is what it is: every layer that set it, and which of them won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.config.layers import STRUCTURE, Layer, mapping
from toolyard.config.origins import MISSING, Origin, below, dotted
from toolyard.config.settings import SECTIONS, PermissionSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.config.document import Pointer
    from toolyard.core.tool import Json


ADDING = ("plugins", "enabled_plugins", "disabled_plugins", "force_enabled_plugins")
"""Lists that do not replace each other: those of all layers count together."""

WHOLE_FILE = (STRUCTURE | set(SECTIONS)) - {"output", "permissions"}
"""Keys that only the top level has, for all agents."""
WITH_DEFAULTS: dict[str, type[msgspec.Struct]] = {**SECTIONS, "permissions": PermissionSettings}
ADDING_PLACES = {*((key,) for key in ADDING), *(("permissions", key) for key in ("allow", "ask", "deny"))}
"""Lists to which each layer adds."""


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """A value that some layer has, as it is written."""

    layer: str
    value: Json
    origin: Origin | None
    """None for a default, which nobody wrote."""
    verdict: Literal["won", "merged", "added", "overridden"]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A value and what became of everything that was said about it."""

    key: str
    value: Json
    contributions: tuple[Contribution, ...]
    """The strongest first; none when nobody says anything."""


def explain(configuration: Configuration, key: str, agent: str) -> Explanation:
    """Explain a key of an agent, of `agents.NAME` or `providers.NAME`, or of the file as a whole."""
    pointer = pointer_of(key, as_agents_see_it(configuration, agent))
    match pointer:
        case ("agents", str(name), _, *_):
            return explain_layers(configuration, pointer[2:], name, dotted(pointer))
        case ("providers", str(name), _, *_):
            layer = Layer(name=f"provider '{name}'", pointer=pointer[:2], value=below(configuration.value, pointer[:2]))
            found = tuple(judged(configuration, [layer], pointer[2:]))
            value = value_of(below(configuration.value, pointer), found)
            return Explanation(key=dotted(pointer), value=value, contributions=found)
        case (str(first), *_) if first in WHOLE_FILE and (first, len(pointer)) != ("plugins", 1):
            return explain_whole_file(configuration, pointer)
    return explain_layers(configuration, pointer, agent, dotted(("agents", agent, *pointer)))


def explain_layers(configuration: Configuration, rest: Pointer, agent: str, key: str) -> Explanation:
    """A value that an agent's layers set one over the other, or a list to which each adds."""
    layers = configuration.layers(agent)
    whole = {**configuration.for_agent(agent), "permissions": permissions_of(configuration, agent)}
    if rest in ADDING_PLACES:
        added = tuple(part for layer in layers for part in judged(configuration, [layer], rest, winner="added"))
        value = added_up(configuration, agent, str(rest[0])) if len(rest) == 1 else value_of(below(whole, rest), added)
        return Explanation(key=key, value=value, contributions=added)
    found = tuple(judged(configuration, layers[::-1], rest)) or with_default(rest)
    return Explanation(key=key, value=value_of(below(whole, rest), found), contributions=found)


def explain_whole_file(configuration: Configuration, pointer: Pointer) -> Explanation:
    layer = Layer(name="top level", pointer=(), value=configuration.value)
    found = tuple(judged(configuration, [layer], pointer)) or with_default(pointer)
    value = value_of(below(configuration.value, pointer), found)
    return Explanation(key=dotted(pointer), value=value, contributions=found)


def judged(
    configuration: Configuration, layers: Sequence[Layer], rest: Pointer, winner: Literal["won", "added"] = "won"
) -> Iterator[Contribution]:
    """Everything that layers say about a value, the strongest first."""
    written = configuration.written
    won: Json = MISSING
    for layer, origin, visible in said(configuration, layers, rest):
        value = below(written.value if written else {}, origin.pointer)
        verdict: Literal["won", "merged", "added", "overridden"] = "overridden"
        if visible and won is MISSING:
            won, verdict = value, winner
        elif visible and isinstance(won, dict) and isinstance(value, dict):
            verdict = "merged"
        yield Contribution(layer=layer.name, value=value, origin=origin, verdict=verdict)


def said(configuration: Configuration, layers: Sequence[Layer], rest: Pointer) -> Iterator[tuple[Layer, Origin, bool]]:
    """Each place that sets a value, with its layer and whether that layer itself shows it."""
    origins = configuration.document.origins
    for layer in layers:
        if not layer.pointer or origins is None:
            if below(layer.value, rest) is not MISSING:
                yield layer, Origin(pointer=(*layer.pointer, *rest)), True
            continue
        visible = set(origins.writers(layer.pointer, rest))
        for origin in origins.writers(layer.pointer, rest, hidden=True):
            yield layer, origin, origin in visible


def with_default(pointer: Pointer) -> tuple[Contribution, ...]:
    """What holds when nobody says anything."""
    match pointer:
        case (str(section), str(name)) if section in WITH_DEFAULTS:
            default = below(msgspec.to_builtins(WITH_DEFAULTS[section]()), (name,))
            if default is not MISSING:
                return (Contribution(layer="default", value=default, origin=None, verdict="won"),)
    return ()


def as_agents_see_it(configuration: Configuration, agent: str) -> dict[str, Json]:
    """The file with every agent's values whole, by which a key is read."""
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
        words, value = words[taken:], below(value, (step,))
    return tuple(steps)


def next_step(words: Sequence[str], value: Json) -> tuple[int, str | int]:
    if isinstance(value, list) and words[0].isdecimal():
        return 1, int(words[0])
    for taken in range(len(words), 0, -1):
        if isinstance(value, dict) and ".".join(words[:taken]) in value:
            return taken, ".".join(words[:taken])
    return 1, words[0]


def value_of(value: Json, found: Sequence[Contribution]) -> Json:
    """What holds: the value that is there, else a default, else nothing."""
    if value is MISSING:
        return found[0].value if found else None
    return value


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
