"""Ids that a configuration turns on or off although no plugin has them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem
from toolyard.plugins.enablement import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolyard.config.configuration import Configuration
    from toolyard.config.layers import Layer
    from toolyard.plugins.catalog import Catalog

__all__ = ["unknown_ids"]

KEYS = {"enabled_plugins": "turned on", "disabled_plugins": "turned off", "force_enabled_plugins": "forced on"}


def unknown_ids(configuration: Configuration, catalogs: Mapping[str, Catalog]) -> Iterator[ConfigProblem]:
    """One warning for each id that none of the agents has for whom it is meant."""
    for layer, plugins in layers_with_plugins(configuration, catalogs):
        for key, done in KEYS.items():
            for id, pointer in ids_of(key, [layer]).items():
                if id not in plugins:
                    close = difflib.get_close_matches(id, plugins, n=1)
                    yield ConfigProblem(
                        code="plugin_id_unknown",
                        message=f"plugin '{id}' is {done} here, but no plugin has that id",
                        hint=(f"did you mean '{close[0]}'? " if close else "") + "run `toolyard tools --all`",
                        where=configuration.document.position(pointer),
                        severity="warning",
                    )


def layers_with_plugins(
    configuration: Configuration, catalogs: Mapping[str, Catalog]
) -> Iterator[tuple[Layer, set[str]]]:
    """Every layer once, with the ids of all plugins of the agents that it is part of."""
    found: dict[str, tuple[Layer, set[str]]] = {}
    for agent, catalog in catalogs.items():
        for layer in configuration.layers(agent):
            found.setdefault(layer.name, (layer, set()))[1].update(catalog.plugins)
    yield from found.values()
