"""A configuration file read as a whole: settings for the application, and every problem at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from toolyard.config.document import Document, parse_document, read_document
from toolyard.config.known_keys import UnknownKey, unknown_keys
from toolyard.config.layers import Layer, effective_config, layers_of, mapping
from toolyard.config.mixins import expand_mixins
from toolyard.config.named_files import prompt_files
from toolyard.config.placeholders import Names, expand_placeholders, expand_variables
from toolyard.config.settings import (
    MISFITS,
    AuditPolicy,
    FileSettings,
    MixinPolicy,
    OutputSettings,
    PluginPolicy,
    ResourceLimits,
    SandboxSettings,
    Settings,
)
from toolyard.config.workspace import writable_of
from toolyard.core.problems import Problem
from toolyard.files.door import Door
from toolyard.files.working_folder import working_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolyard.core.reach import Reach
    from toolyard.core.tool import Json, JsonObject


Section = TypeVar("Section", bound=msgspec.Struct)
StandsFor: TypeAlias = "Callable[[JsonObject, Path], JsonObject | None]"
"""From a file that is no configuration to the one that loads it, if it is something that can be loaded."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, and what is wrong with it."""

    document: Document
    """The file after its mixins; it knows where each of its values was written."""
    value: dict[str, Json]
    """The same after its placeholders."""
    written: Document | None = None
    """The file as it stands."""
    policy: PluginPolicy = msgspec.field(default_factory=PluginPolicy)
    output: OutputSettings = msgspec.field(default_factory=OutputSettings)
    limits: ResourceLimits = msgspec.field(default_factory=ResourceLimits)
    audit: AuditPolicy = msgspec.field(default_factory=AuditPolicy)
    sandbox: SandboxSettings = msgspec.field(default_factory=SandboxSettings)
    problems: tuple[Problem, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()
    """Keys that nobody knows, unless a tool that is loaded later asks for them."""
    files: tuple[str, ...] = ()
    """Those that it names besides plugins, and whose text or code is obeyed."""
    readable: bool = True
    """Whether there is a configuration at all, or only the reason why not."""
    in_memory: bool = False
    """Whether it was never a file."""

    @property
    def door(self) -> Door:
        """By which all that it names is read."""
        return self.document.door

    def agents(self) -> list[str]:
        """The names of the configured agents; `default` when there are none."""
        agents = self.value.get("agents")
        return list(agents) if isinstance(agents, dict) and agents else ["default"]

    @property
    def usual_reach(self) -> Reach:
        """How far most of its calls will reach."""
        section = self.value.get("permissions")
        return "look" if isinstance(section, dict) and section.get("preset") == "read-only" else "work"

    def for_agent(self, agent: str) -> dict[str, Json]:
        """The values that an agent's tools see."""
        return effective_config(self.value, agent)

    def layers(self, agent: str) -> Sequence[Layer]:
        """What an agent's values come from, from the bottom up."""
        return layers_of(self.value, agent)

    def output_of(self, agent: str) -> OutputSettings:
        """How much of what an agent's tools print is kept."""
        if not any("output" in layer.value for layer in self.layers(agent)[1:]):
            return self.output
        return read_section(OutputSettings, self.for_agent(agent).get("output"))

    def plugin_cache(self, user_cache: Path) -> Path:
        """`plugin_cache_dir`, relative to the file's folder; by default in the user's cache folder."""
        named = self.value.get("plugin_cache_dir")
        if not isinstance(named, str) or not named:
            return user_cache / "plugins"
        return Path(os.path.abspath(os.path.join(self.document.folder, os.path.expanduser(named))))


def read_configuration(
    path: Path, names: Names, settings: Settings, stands_for: StandsFor | None = None
) -> Configuration:
    """Read a file; it never raises for what is in it."""
    document = read_document(path, door_for({}, os.path.dirname(os.path.abspath(path))), accepted=True)
    if isinstance(document, Problem):
        unread = Document(path, "{}", {})
        return Configuration(document=unread, value={}, policy=settings.policy(), problems=(document,), readable=False)
    return resolve(document, names, settings, stands_for)


def in_memory(value: JsonObject, path: Path, names: Names, settings: Settings) -> Configuration:
    """A configuration that a program made; relative paths in it start beside a path where no file need be."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    document = parse_document(path, text)
    if isinstance(document, Problem):
        raise TypeError(f"the configuration is no JSON: {document.message}")
    return msgspec.structs.replace(resolve(document, names, settings), in_memory=True)


def resolve(document: Document, names: Names, settings: Settings, stands_for: StandsFor | None = None) -> Configuration:
    """Mixins first, then placeholders, so that a mixin that nobody uses complains of nothing.

    A file that is no configuration may stand for one that loads it.
    """
    if not isinstance(document.value, dict):
        wrong = Problem(code="config_type", message="a configuration is a JSON object", where=document.position(()))
        return Configuration(document=document, value={}, policy=settings.policy(), problems=(wrong,), readable=False)
    if stands_for and (meant := stands_for(document.value, document.path)) is not None:
        return Configuration(document=document, value=dict(meant), policy=settings.policy())
    merged, mixin_problems = expand_mixins(document, read_section(MixinPolicy, document.value.get("mixin_policy")))
    merged.door = door_for(expand_variables(merged, names), merged.folder)
    expanded = expand_placeholders(merged, names)
    value = expanded.value
    read, shape = read_settings(document, value, settings)
    told = {problem.where for problem in mixin_problems}
    return Configuration(
        document=merged,
        value=value,
        written=document,
        policy=read.plugin_policy or settings.policy(),
        output=read.output or OutputSettings(),
        limits=read.limits or ResourceLimits(),
        audit=read.audit or AuditPolicy(),
        sandbox=read.sandbox or SandboxSettings(),
        problems=(
            *mixin_problems,
            *expanded.problems,
            *(problem for problem in shape if problem.where not in told),
            *repeated_keys(document),
        ),
        unknown=tuple(unknown_keys(document, settings)),
        files=tuple(dict.fromkeys([*expanded.files, *prompt_files(value, merged.folder)])),
    )


def door_for(value: Json, folder: str) -> Door:
    """The door of a configuration: where its tools can write, it follows no link."""
    return Door.to(writable_of(value, folder, working_folder()))


def read_settings(document: Document, value: JsonObject, settings: Settings) -> tuple[FileSettings, list[Problem]]:
    """The typed settings. Providers, agents and mixins are looked at as they are written, each where it stands."""
    written = {key: document.value[key] for key in ("mixins", "providers", "agents") if key in document.value}
    whole = {**value, **written}
    try:
        return msgspec.convert(whole, settings.file), []
    except MISFITS:
        from toolyard.config.shape import shape_problems

    fitting: dict[str, Any] = {name: read_section(kind, value.get(name)) for name, kind in settings.sections.items()}
    return settings.file(**fitting), shape_problems(whole, settings.file, document)


def read_section(kind: type[Section], value: Json) -> Section:
    """One section; a field that does not fit keeps its default, which is said elsewhere."""
    try:
        return msgspec.convert(value, kind)
    except MISFITS:
        return kind(**dict(fitting_fields(kind, mapping(value))))


def fitting_fields(kind: type[Section], value: JsonObject) -> Iterator[tuple[str, Json]]:
    for item in msgspec.structs.fields(kind):
        if item.name in value:
            given = value[item.name]
            whole = [int(given)] if isinstance(given, float) and given.is_integer() else []
            for candidate in (given, *whole):  # in JSON 5.0 is a whole number
                try:
                    yield item.name, msgspec.convert(candidate, item.type)
                    break
                except MISFITS:
                    continue


def repeated_keys(document: Document) -> Iterator[Problem]:
    """Keys that stand twice in one object: JSON takes the last without a word."""
    for key, lost, kept in document.repeated_keys():
        yield Problem(
            code="config_repeated_key",
            message=f"'{key}' stands in this object again, at line {kept.line}; what is written here does not count",
            hint="keep one of them",
            where=lost,
            severity="warning",
        )


def builtin_names(config_path: Path, working_dir: Path) -> Mapping[str, str]:
    """The names that every configuration can use."""
    return {
        "CONFIG_DIR": os.path.dirname(os.path.abspath(config_path)),
        "WORKING_DIR": str(working_dir),
        "BUILTIN_PLUGINS": str(Path(__file__).parent.parent / "builtin_plugins"),
    }
