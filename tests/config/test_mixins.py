"""Mixins and layers against a slow, obvious model, and configurations that nobody would write."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.config.configuration import Configuration, resolve
from toolyard.config.document import Document, parse_document
from toolyard.config.explain import explain
from toolyard.config.layers import STRUCTURE
from toolyard.config.origins import dotted
from toolyard.config.placeholders import Names
from toolyard.core.json_values import ABSENT, value_at
from toolyard.kinds import KINDS
from toolyard.plugins.entries import settings_of

NAMES = Names(config_env={}, overrides={}, builtin={}, process={"X": "x"})
CODES = {"mixin_unknown", "mixin_circle", "mixin_depth"}


def configured(config) -> Configuration:
    document = parse_document(Path("c.json"), json.dumps(config, indent=1))
    assert isinstance(document, Document)
    return resolve(document, NAMES, settings_of(KINDS))


# The model: what the contract says, word for word, however slow.


def model_merge(lower, upper, deep):
    merged = {**lower, **upper}
    if deep:
        for key in lower.keys() & upper.keys():
            if isinstance(lower[key], dict) and isinstance(upper[key], dict):
                merged[key] = model_merge(lower[key], upper[key], deep=True)
    return merged


def model_leads_to(config, start, goal) -> bool:
    """Whether a chain of references from one mixin comes to another."""
    seen, waiting = set(), [start]
    while waiting:
        for ref in config["mixins"][waiting.pop()].get("mixin_refs", []):
            if ref == goal:
                return True
            if ref in config["mixins"] and ref not in seen:
                seen.add(ref)
                waiting.append(ref)
    return False


def model_refs(config, node, name=None):
    """The references that count: to mixins that exist and that do not lead back here."""
    known = [ref for ref in node.get("mixin_refs", []) if ref in config["mixins"]]
    return [ref for ref in known if name is None or not (ref == name or model_leads_to(config, ref, name))]


def model_depth(config, name) -> int:
    refs = model_refs(config, config["mixins"][name], name)
    return 1 + max((model_depth(config, ref) for ref in refs), default=0)


def model_expand(config, node, name=None):
    policy = config.get("mixin_policy", {})
    deep = node.get("mixin_merge", policy.get("default_merge", "shallow")) == "deep"
    result = {}
    for ref in model_refs(config, node, name):
        if name is not None or model_depth(config, ref) <= policy.get("max_depth", 16):
            result = model_merge(result, model_expand(config, config["mixins"][ref], ref), deep)
    own = {key: value for key, value in node.items() if key not in ("mixin_refs", "mixin_merge")}
    return model_merge(result, own, deep)


def model_effective(config, agent):
    own = model_expand(config, config["agents"][agent])
    provider = config["providers"].get(own.get("provider"), {})
    result = {}
    for layer in (config, model_expand(config, provider), own):
        result = model_merge(result, {key: layer[key] for key in layer if key not in STRUCTURE}, deep=True)
    return result


# Configurations in which every scalar is written once, so that a value tells where it comes from.

KEYS = st.sampled_from(["k", "l", "m"])
IDS = ["p", "q", "r", "s"]
VALUES = st.recursive(
    st.just(0),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
NODES = st.fixed_dictionaries(
    {},
    optional={
        "k": VALUES,
        "l": VALUES,
        "m": VALUES,
        "mixin_refs": st.lists(st.sampled_from([*IDS, "nowhere"]), max_size=3),
        "mixin_merge": st.sampled_from(["shallow", "deep"]),
    },
)
PROVIDED = NODES.flatmap(
    lambda node: st.sampled_from(["one", "two", "none"]).map(lambda name: {**node, "provider": name})
)
CONFIGS = st.fixed_dictionaries(
    {
        "mixins": st.fixed_dictionaries(dict.fromkeys(IDS, NODES)),
        "providers": st.fixed_dictionaries({"one": NODES, "two": NODES}),
        "agents": st.fixed_dictionaries({"a": PROVIDED, "b": NODES}),
    },
    optional={
        "k": VALUES,
        "l": VALUES,
        "mixin_policy": st.fixed_dictionaries(
            {}, optional={"default_merge": st.sampled_from(["shallow", "deep"]), "max_depth": st.integers(1, 4)}
        ),
    },
)


def numbered(config):
    """The same with a number of its own for every zero."""
    numbers = itertools.count(1000)

    def number(value):
        match value:
            case dict():
                return {key: number(part) for key, part in value.items()}
            case list():
                return [number(part) for part in value]
            case 0:
                return next(numbers)
        return value

    return number(config)


def leaves(value, pointer=()):
    match value:
        case dict():
            for key, part in value.items():
                yield from leaves(part, (*pointer, key))
        case list():
            for index, part in enumerate(value):
                yield from leaves(part, (*pointer, index))
        case _:
            yield pointer, value


@settings(max_examples=150, deadline=None)
@given(CONFIGS.map(numbered))
def test_mixins_and_layers_give_what_the_model_gives(config):
    found = configured(config)
    for section in ("providers", "agents"):
        for name, node in config[section].items():
            assert found.value[section][name] == model_expand(config, node)
    for agent in config["agents"]:
        assert found.for_agent(agent) == model_effective(config, agent)


@settings(max_examples=150, deadline=None)
@given(CONFIGS.map(numbered))
def test_every_value_is_known_to_be_where_it_was_written(config):
    found = configured(config)
    for pointer, value in leaves({key: found.value[key] for key in ("providers", "agents")}):
        if isinstance(value, int):
            where = found.document.position(pointer)
            line = found.document.text.split("\n")[where.line - 1]
            assert line[where.column - 1 :].startswith(str(value))
            written = config[pointer[0]][pointer[1]]
            assert bool(where.via) == (value_at(written, pointer[2:]) != value), "a way only for what came by one"


@settings(max_examples=100, deadline=None)
@given(CONFIGS.map(numbered))
def test_the_layer_that_won_has_the_value_and_every_layer_that_has_it_is_named(config):
    found = configured(config)
    for agent in config["agents"]:
        for pointer, value in leaves(found.for_agent(agent)):
            if isinstance(value, int):
                explained = explain(found, dotted(("agents", agent, *pointer)), agent)
                assert [one.value for one in explained.contributions if one.verdict == "won"] == [value]
                assert explained.value == value
                named = {one.layer for one in explained.contributions}
                assert named == {layer.name for layer in found.layers(agent) if says(config, layer, pointer)}


def says(config, layer, pointer) -> bool:
    """Whether a layer itself, or any mixin that it builds on, has a value at a place."""
    nodes, waiting = [], [(value_at(config, layer.pointer), None)]
    for node, name in waiting:  # grows while we go over it
        nodes.append(node)
        refs = model_refs(config, node, name) if layer.pointer else []
        limit = config.get("mixin_policy", {}).get("max_depth", 16)
        waiting += [(config["mixins"][ref], ref) for ref in refs if name or model_depth(config, ref) <= limit]
    return any(value_at(node, pointer) is not ABSENT for node in nodes)


@settings(max_examples=100, deadline=None)
@given(CONFIGS)
def test_there_is_a_problem_exactly_when_a_reference_does_not_count(config):
    used, waiting = set(), [*config["providers"].values(), *config["agents"].values()]
    expected = set()
    limit = config.get("mixin_policy", {}).get("max_depth", 16)
    for node in waiting:  # grows while we go over it
        for ref in node.get("mixin_refs", []):
            if ref not in config["mixins"]:
                expected.add("mixin_unknown")
            elif ref not in used:
                used.add(ref)
                waiting.append(config["mixins"][ref])
    if any(model_leads_to(config, name, name) for name in used):
        expected.add("mixin_circle")
    for node in (*config["providers"].values(), *config["agents"].values()):
        refs = model_refs(config, node)
        if any(model_depth(config, ref) > limit for ref in refs):
            expected.add("mixin_depth")
    assert {problem.code for problem in configured(config).problems} & CODES == expected


def test_many_mixins_that_all_refer_to_each_other_take_no_time():
    names = [f"m{number}" for number in range(60)]
    mixins = {name: {"mixin_refs": names, name: 1} for name in names}
    found = configured({"mixins": mixins, "agents": {"a": {"mixin_refs": names}}})
    assert [problem.code for problem in found.problems] == ["mixin_circle"]
    assert found.for_agent("a") == dict.fromkeys(names, 1)


def test_a_long_chain_is_too_deep_and_nothing_worse():
    mixins = {f"m{n}": {"mixin_refs": [f"m{n + 1}"]} for n in range(3000)}
    found = configured({"mixins": mixins | {"m3000": {}}, "agents": {"a": {"mixin_refs": ["m0"]}}})
    assert [problem.code for problem in found.problems] == ["mixin_depth"]


# Whatever a file holds, reading it raises nothing.

SECTION_KEYS = st.sampled_from(
    [
        *("plugins", "providers", "agents", "mixins", "mixin_refs", "mixin_merge", "mixin_policy", "max_depth"),
        *("default_merge", "plugin_policy", "limits", "output", "limit_bytes", "audit", "on_failure", "provider"),
        *("disabled_plugins", "enabled_plugins", "tags", "a", "b", "$schema", "system_message"),
    ]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "b", "${env:X}", "${env:NOPE}", "${file:nope}", "deep", "${file:${env:X}}", "bash:a", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SECTION_KEYS, inner, max_size=6),
    max_leaves=40,
)


@settings(max_examples=150, deadline=None)
@given(ANYTHING)
def test_no_configuration_raises_and_every_problem_has_its_place(value):
    document = parse_document(Path("c.json"), json.dumps(value, indent=1))
    assert isinstance(document, Document)
    found = resolve(document, NAMES, settings_of(KINDS))
    lines = document.text.split("\n")
    for problem in (*found.problems, *(unknown.problem for unknown in found.unknown)):
        assert problem.where is not None
        assert 1 <= problem.where.line <= len(lines)
        assert 1 <= problem.where.column <= len(lines[problem.where.line - 1]) + 1
    for agent in found.agents():
        json.dumps(found.for_agent(agent))
        found.output_of(agent)
