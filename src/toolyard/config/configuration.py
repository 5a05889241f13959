"""A configuration file read as a whole: settings for the application, and every problem at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import Document, read_document
from toolyard.config.layers import effective_config
from toolyard.config.placeholders import Names, expand_placeholders
from toolyard.config.problems import ConfigProblem
from toolyard.config.settings import AuditPolicy, OutputSettings, PluginPolicy, ResourceLimits, read_section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.tool import Json

__all__ = ["Configuration", "builtin_names", "read_configuration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What a file says, and what is wrong with it."""

    document: Document
    value: dict[str, Json]
    policy: PluginPolicy = field(default_factory=PluginPolicy)
    output: OutputSettings = field(default_factory=OutputSettings)
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    audit: AuditPolicy = field(default_factory=AuditPolicy)
    problems: tuple[ConfigProblem, ...] = ()
    readable: bool = True
    """Whether there is a configuration at all, or only the reason why not."""

    @property
    def loads_bash_tools(self) -> bool:
        """Whether there may be bash tools to load."""
        return self.policy.allow_bash_tools and bool(self.value.get("plugins"))

    def agents(self) -> list[str]:
        """The names of the configured agents; `default` when there are none."""
        agents = self.value.get("agents")
        return list(agents) if isinstance(agents, dict) and agents else ["default"]

    def for_agent(self, agent: str) -> dict[str, Json]:
        """The values that an agent's tools see."""
        return effective_config(self.value, agent)


def read_configuration(path: Path, names: Names) -> Configuration:
    """Read a file; it never raises for what is in it."""
    document = read_document(path)
    if isinstance(document, ConfigProblem):
        return Configuration(document=Document(path, "{}", {}), value={}, problems=(document,), readable=False)
    if is_manifest(document.value):
        return Configuration(document=document, value={"plugins": [{"manifest": {"path": str(path)}}]})
    value, problems = expand_placeholders(document, names)
    if not isinstance(value, dict):
        wrong = ConfigProblem(
            code="config_type", message="a configuration is a JSON object", where=document.position(())
        )
        return Configuration(document=document, value={}, problems=(wrong,), readable=False)
    policy, policy_problems = read_section(PluginPolicy, value, "plugin_policy", document)
    output, output_problems = read_section(OutputSettings, value, "output", document)
    limits, limits_problems = read_section(ResourceLimits, value, "limits", document)
    audit, audit_problems = read_section(AuditPolicy, value, "audit", document)
    found = (*problems, *policy_problems, *output_problems, *limits_problems, *audit_problems)
    return Configuration(
        document=document,
        value=value,
        policy=policy,
        output=output,
        limits=limits,
        audit=audit,
        problems=(*found, *narrower_plugins(value, document)),
    )


def is_manifest(value: Json) -> bool:
    """Whether a file is a manifest of tools; by itself it stands for a configuration that loads nothing else."""
    return isinstance(value, dict) and "tools" in value and "plugins" not in value


def builtin_names(config_path: Path, working_dir: Path) -> Mapping[str, str]:
    """The names that every configuration can use."""
    return {
        "CONFIG_DIR": os.path.dirname(os.path.abspath(config_path)),
        "WORKING_DIR": str(working_dir),
        "BUILTIN_PLUGINS": str(Path(__file__).parent.parent / "builtin_plugins"),
    }


def narrower_plugins(value: dict[str, Json], document: Document) -> list[ConfigProblem]:
    """Plugins of a single agent or provider are not loaded here; silence about that would mislead."""
    return [
        ConfigProblem(
            code="plugins_level_unsupported",
            message=f"plugins of a single {level[:-1]} are not loaded",
            hint="move them to the top-level 'plugins'",
            where=document.position((level, name, "plugins")),
            severity="warning",
        )
        for level in ("providers", "agents")
        if isinstance(value.get(level), dict)
        for name, entry in value[level].items()
        if isinstance(entry, dict) and entry.get("plugins")
    ]
