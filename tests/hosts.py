"""Hosts for tests of one part alone: what a source gets, with nothing around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolyard.config.configuration import in_memory
from toolyard.config.placeholders import Names
from toolyard.core.reach import REACHES
from toolyard.kinds import KINDS
from toolyard.plugins.acquire.build import BuildRunner
from toolyard.plugins.entries import settings_of
from toolyard.plugins.host import Caches, Host, Processes
from toolyard.process.child import Children

NOWHERE = Path("/nonexistent")
NO_NAMES = Names(config_env={}, overrides={}, builtin={}, process={})


def make_host(children: Children, *, cache: Path = NOWHERE, limits: Any = None, **policy: Any) -> Host:
    """A host without a sandbox, under a policy."""
    value = {"plugin_policy": {"allow_bash_tools": True, **policy}, "plugin_cache_dir": str(cache / "plugins")}
    configuration = in_memory(
        {**value, "limits": limits or {}}, Path.cwd() / "<configuration>", NO_NAMES, settings_of(KINDS)
    )
    assert configuration.problems == ()
    return Host(
        configuration,
        Processes(children=dict.fromkeys(REACHES, children), build=BuildRunner()),
        Caches(cache, kept=False),
    )
