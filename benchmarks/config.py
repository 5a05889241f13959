"""A large configuration: resolved as a whole, against reading it and validating it by its schema."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from benchmarks.measure import Row, interleave, milliseconds
from toolyard.config.configuration import builtin_names, read_configuration
from toolyard.config.document import Place
from toolyard.config.explain import added_up
from toolyard.config.placeholders import Names
from toolyard.config.schema import config_schema
from toolyard.kinds import KINDS
from toolyard.plugins.entries import read_entry, settings_of

PLUGINS, MIXINS, AGENTS, PROVIDERS = 1000, 200, 50, 10
ROUNDS = 15


async def rows() -> AsyncIterator[Row]:
    """Everything that a start does with the text: mixins, placeholders, layers, plugin entries, unknown keys."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "toolyard.json"
        file.write_text(json.dumps(large_config(), indent=2))
        validator = Draft202012Validator(config_schema(settings_of(KINDS)))
        names = Names(config_env={}, overrides={}, builtin=builtin_names(file, Path(name)), process={"HOST": "host"})

        async def ours() -> None:
            resolve_all(file, names)

        def floor() -> None:
            value = json.loads(file.read_text())
            assert validator.is_valid(value)

        await ours()
        mine, bare = await interleave(ROUNDS, ours, floor)
    yield Row(
        what=f"a configuration of {PLUGINS} plugins, {MIXINS} mixins and {AGENTS} agents",
        ours=milliseconds(mine),
        floor=f"{milliseconds(bare)} (json.loads and jsonschema)",
        figure=f"{mine / bare:.2f} ×",
        promise="≤ 5 ×",
        kept=mine <= 5 * bare,
    )


def resolve_all(file: Path, names: Names) -> None:
    configuration = read_configuration(file, names, settings_of(KINDS))
    assert not configuration.problems
    assert not configuration.unknown
    for agent in configuration.agents():
        assert configuration.for_agent(agent)["mail"]["to"]
        assert added_up(configuration, agent, "disabled_plugins")
    for layer, pointer in plugin_lists(configuration.value):
        for index, entry in enumerate(layer):
            assert not read_entry(entry, Place(configuration.document, (*pointer, index)), KINDS)[1].problems


def plugin_lists(value: dict[str, Any]) -> list[tuple[list[Any], tuple[str, ...]]]:
    nodes = [(section, name) for section in ("providers", "agents") for name in value[section]]
    lists = [(value[section][name].get("plugins", []), (section, name, "plugins")) for section, name in nodes]
    return [(value["plugins"], ("plugins",)), *lists]


def large_config() -> dict[str, Any]:
    """Every agent builds on a chain of mixins, and adds plugins to those of the top level and of its provider."""
    shared = PLUGINS - AGENTS * 10
    return {
        "plugin_policy": {"allow_bash_tools": True},
        "mixin_policy": {"default_merge": "deep"},
        "plugins": [f"bash:${{env:CONFIG_DIR}}/tools/tool_{number}.bash" for number in range(shared)],
        "disabled_plugins": ["tool_1"],
        "mixins": {f"mixin_{number}": mixin(number) for number in range(MIXINS)},
        "providers": {
            f"provider_{number}": {"model": f"model-{number}", "url": "https://${env:HOST}/", "tags": ["fast"]}
            for number in range(PROVIDERS)
        },
        "agents": {f"agent_{number}": agent(number) for number in range(AGENTS)},
    }


def mixin(number: int) -> dict[str, Any]:
    below = [f"mixin_{number + 1}"] if number % 8 != 7 else []
    return {
        "mixin_refs": below,
        f"setting_{number}": {"limit": number, "words": ["a", "b", "c"], "path": "${env:CONFIG_DIR}/x"},
        "mail": {"to": f"user{number}@example.org", f"header_{number}": "x"},
    }


def agent(number: int) -> dict[str, Any]:
    first = number * 4
    return {
        "provider": f"provider_{number % PROVIDERS}",
        "mixin_refs": [f"mixin_{first}", f"mixin_{first + 2}"],
        "plugins": [{"bash_tool": {"file": f"./agent_{number}/tool_{index}.bash"}} for index in range(10)],
        "disabled_plugins": [f"tool_{number}"],
        "mail": {"from": f"agent{number}@example.org"},
    }
