"""Which plugins of an agent are on, and why: every decision carries its reason and what decided it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.config.layers import mapping, provider_of
from toolyard.core.problems import Problem, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.config.layers import Layer
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json, JsonObject
    from toolyard.plugins.plugin import Plugin


BUNDLED_PROVIDERS = ("anthropic", "local", "openai-compatible", "openrouter", "replay")
"""Their folders; a test compares them with what is there."""
HOOKS = ("is_enabled", "required_tags", "forbidden_tags", "tags")


class Enablement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a plugin is on."""

    on: bool
    reason: str
    pointer: Pointer | None = None
    """What in the configuration decided it; None when nothing there did."""
    faulty: bool = False
    """Whether the plugin was asked and failed to answer."""


class EnablementRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration and the session say: for each plugin id where it is said."""

    enabled: Mapping[str, Pointer] = msgspec.field(default_factory=dict)
    disabled: Mapping[str, Pointer] = msgspec.field(default_factory=dict)
    forced: Mapping[str, Pointer] = msgspec.field(default_factory=dict)
    chosen: Collection[str] | None = None
    """The ids that the session's metadata names; None when it names none."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin is told when it is asked whether it is on."""

    config: JsonObject = msgspec.field(default_factory=dict)
    tags: Collection[str] = ()
    models: Sequence[str] = ()
    context: JsonObject = msgspec.field(default_factory=dict)
    provider: str = ""
    """The id of the provider plugin that the agent uses; the tags of others do not count."""


NO_RULES = EnablementRules()
NOTHING_KNOWN = Circumstances()


def read_rules(layers: Sequence[Layer], chosen: Json = None) -> EnablementRules:
    """The lists of all levels merged; of several that name an id, the broadest level is the one to be shown."""
    return EnablementRules(
        enabled=ids_of("enabled_plugins", layers),
        disabled=ids_of("disabled_plugins", layers),
        forced=ids_of("force_enabled_plugins", layers),
        chosen=[id for id in chosen if isinstance(id, str)] if isinstance(chosen, list | tuple) else None,
    )


def read_circumstances(layers: Sequence[Layer], config: JsonObject, context: JsonObject) -> Circumstances:
    """What an agent's configuration tells its plugins; `layers` are those that `config` was merged from."""
    tags, model = config.get("tags"), config.get("model")
    providers = [layer.value.get("provider") for layer in layers if layer.pointer[:1] == ("providers",)]
    provider = providers[0] if providers else config.get("provider")
    return Circumstances(
        config=config,
        tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else (),
        models=[model] if isinstance(model, str) else (),
        context=context,
        provider=provider if isinstance(provider, str) else "",
    )


def ids_of(key: str, layers: Sequence[Layer]) -> dict[str, Pointer]:
    found: dict[str, Pointer] = {}
    for layer in layers:
        ids = layer.value.get(key)
        for index, id in enumerate(ids if isinstance(ids, list) else ()):
            if isinstance(id, str):
                found.setdefault(id, (*layer.pointer, key, index))
    return found


def decide(
    plugins: Sequence[Plugin],
    rules: EnablementRules = NO_RULES,
    circumstances: Circumstances = NOTHING_KNOWN,
) -> dict[str, Enablement]:
    """First what the configuration says, then what the plugins that are on say of themselves, force at last."""
    decisions = {plugin.id: by_rules(plugin, rules) for plugin in plugins}
    if any(has_hooks(plugin) for plugin in plugins):
        tags = tags_in_use(plugins, decisions, circumstances)
        for plugin in plugins:
            if decisions[plugin.id].on and has_hooks(plugin):
                decisions[plugin.id] = by_itself(plugin, tags, circumstances) or decisions[plugin.id]
    for id, pointer in rules.forced.items():
        if id in decisions:
            decisions[id] = Enablement(on=True, reason="listed in force_enabled_plugins", pointer=pointer)
    return decisions


def by_rules(plugin: Plugin, rules: EnablementRules) -> Enablement:
    """The session's choice, else disabled before enabled before the plugin's default."""
    if rules.chosen is not None:
        on = plugin.id in rules.chosen
        return Enablement(on=on, reason=f"{'' if on else 'not '}among the plugins of the session's metadata")
    if pointer := rules.disabled.get(plugin.id):
        return Enablement(on=False, reason="listed in disabled_plugins", pointer=pointer)
    if pointer := rules.enabled.get(plugin.id):
        return Enablement(on=True, reason="listed in enabled_plugins", pointer=pointer)
    if plugin.default_enabled:
        return Enablement(on=True, reason="on by default")
    return Enablement(on=False, reason="off by default; enabled_plugins turns it on")


def has_hooks(plugin: Plugin) -> bool:
    """Whether a plugin has a say of its own, or tags for others that have."""
    return plugin.instance is not None and any(hasattr(plugin.instance, hook) for hook in HOOKS)


def asks_each_time(plugin: Plugin) -> bool:
    """Whether the answer may change from call to call; tags are those that a plugin was loaded with."""
    return hasattr(plugin.instance, "is_enabled")


def by_itself(plugin: Plugin, tags: frozenset[str], circumstances: Circumstances) -> Enablement | None:
    """What a plugin says of itself; None when it says nothing. Its author's mistakes turn off this plugin alone."""
    try:
        return asked(plugin.instance, tags, circumstances)
    except (Exception, SystemExit) as error:  # whatever the author's code does
        return Enablement(on=False, reason=f"asking it failed: {type(error).__name__}: {error}", faulty=True)


def asked(instance: Any, tags: frozenset[str], circumstances: Circumstances) -> Enablement | None:
    if hasattr(instance, "is_enabled"):
        told = circumstances
        answer = instance.is_enabled(told.config, tags, told.models, told.context)
        if isinstance(answer, bool):
            return Enablement(on=answer, reason=f"its is_enabled() says {answer}")
        if answer is not None:
            if hasattr(answer, "close"):
                answer.close()  # a coroutine that nobody awaits would complain of it
            raise TypeError(f"is_enabled() must return True, False or None, not {type(answer).__name__}")
    required, forbidden = tags_by(instance, "required_tags"), tags_by(instance, "forbidden_tags")
    if missing := required - tags:
        return Enablement(on=False, reason=f"needs the tag{quoted(missing)}")
    if present := forbidden & tags:
        return Enablement(on=False, reason=f"refuses the tag{quoted(present)}")
    return Enablement(on=True, reason="its tags fit") if required or forbidden else None


def tags_in_use(
    plugins: Iterable[Plugin], decisions: Mapping[str, Enablement], circumstances: Circumstances
) -> frozenset[str]:
    """The tags of the configuration, and those that the plugins give that are on."""
    given = (tags_of(plugin, circumstances) for plugin in plugins if decisions[plugin.id].on)
    return frozenset(circumstances.tags).union(*given)


def tags_of(plugin: Plugin, circumstances: Circumstances) -> frozenset[str]:
    """The tags that a plugin gives others to go by; a provider only where it is the one in use."""
    if plugin.kind == "provider" and plugin.id != circumstances.provider:
        return frozenset()
    try:
        return tags_by(plugin.instance, "tags")
    except (Exception, SystemExit):  # said when the plugin itself is asked
        return frozenset()


def tags_by(instance: Any, name: str) -> frozenset[str]:
    """Tags given as an attribute or by a method; a single one may be a plain string."""
    given = getattr(instance, name, None)
    if callable(given):
        given = given()
    tags = [given] if isinstance(given, str) else list(given or ())
    if not all(isinstance(tag, str) for tag in tags):
        raise TypeError(f"{name} must be strings")
    return frozenset(tags)


def quoted(tags: Iterable[str]) -> str:
    names = sorted(tags)
    return f"{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"


KEYS = {"enabled_plugins": "turned on", "disabled_plugins": "turned off", "force_enabled_plugins": "forced on"}


def unknown_ids(configuration: Configuration, plugins: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    """One warning for each id that none of the agents has for whom it is meant."""
    for layer, known in layers_with_plugins(configuration, plugins):
        for key, done in KEYS.items():
            for id, pointer in ids_of(key, [layer]).items():
                if id not in known:
                    near = did_you_mean(id, known)
                    yield Problem(
                        code="plugin_id_unknown",
                        message=f"plugin '{id}' is {done} here, but no plugin has that id",
                        hint=f"{near} run `toolyard tools --all`".lstrip(),
                        where=configuration.document.position(pointer),
                        severity="warning",
                    )


def unknown_providers(configuration: Configuration, plugins: Mapping[str, Mapping[str, Plugin]]) -> Iterator[Problem]:
    """A warning for each agent whose provider is nowhere, or is an entry of `providers` whose plugin is nowhere."""
    for agent, known in plugins.items():
        name, pointer = provider_named(configuration.value, agent)
        usable = [id for id, plugin in known.items() if plugin.kind == "provider"]
        if name and name not in usable:
            entries = [] if pointer[0] == "providers" else mapping(configuration.value.get("providers"))
            yield Problem(
                code="provider_unknown",
                message=f"agent '{agent}' has the provider '{name}': no plugin is one, nor is it among 'providers'",
                hint=did_you_mean(name, [*entries, *usable], otherwise=provider_hint(name)),
                where=configuration.document.position(pointer),
                severity="warning",
            )


def provider_named(value: JsonObject, agent: str) -> tuple[str, Pointer]:
    """The plugin that an agent wants as its provider, by itself or by an entry of `providers`; and where it says so."""
    own = mapping(mapping(value.get("agents")).get(agent))
    name, entries = provider_of(value, own), mapping(value.get("providers"))
    if name in entries:
        of_entry = mapping(entries[name]).get("provider")
        return of_entry if isinstance(of_entry, str) else "", ("providers", name, "provider")
    return name, ("agents", agent, "provider") if "provider" in own else ("provider",)


def provider_hint(id: str) -> str:
    """What to write where no plugin is a provider."""
    folder = id.replace("_", "-")
    if folder in BUNDLED_PROVIDERS:
        return f'add "path:${{env:BUILTIN_PLUGINS}}/{folder}" to "plugins"'
    return f'add the plugin that has it to "plugins"; {", ".join(BUNDLED_PROVIDERS)} are in ${{env:BUILTIN_PLUGINS}}'


def layers_with_plugins(
    configuration: Configuration, plugins: Mapping[str, Collection[str]]
) -> Iterator[tuple[Layer, set[str]]]:
    """Every layer once, with the ids of all plugins of the agents that it is part of."""
    found: dict[str, tuple[Layer, set[str]]] = {}
    for agent, ids in plugins.items():
        for layer in configuration.layers(agent):
            found.setdefault(layer.name, (layer, set()))[1].update(ids)
    yield from found.values()
