"""Typed settings out of a configuration's value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec

from toolyard.config.problems import ConfigProblem

if TYPE_CHECKING:
    from toolyard.config.document import Document
    from toolyard.core.tool import Json

__all__ = [
    "AuditPolicy",
    "OutputSettings",
    "PermissionSettings",
    "PluginPolicy",
    "Preset",
    "ResourceLimits",
    "read_section",
]

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class PluginPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`plugin_policy`: what plugins may be and do."""

    allow_bash_tools: bool = False
    bash_timeout_seconds: Seconds = 60
    bash_error_timeout_seconds: Seconds = 5
    bash_stream_stderr: bool = False
    pass_env: list[str] = []
    """Names of variables that reach tools although they look like credentials."""


class OutputSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`output`: how much of what a tool prints is kept."""

    limit_bytes: Count = 262_144
    spill: bool = False
    """Whether what is too long is kept whole in a file of the sessions folder."""


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`limits`: what each process of a tool may use."""

    cpu_seconds: Count | None = None
    memory_bytes: Count | None = None
    file_bytes: Count | None = None
    open_files: Count | None = None
    processes: Count | None = None
    output_bytes: Count | None = None
    """What one command of a bash session may print before it is ended."""


class AuditPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`audit`: what happens when the audit log cannot be written."""

    on_failure: Literal["continue", "stop"] = "continue"


Preset = Literal["read-only", "workspace", "ask-everything", "allowlist", "trusted"]


class PermissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`permissions`: which calls may happen. A rule is a pattern of commands, or an object that says more."""

    preset: Preset = "workspace"
    allow: list[str | dict[str, Any]] = []
    ask: list[str | dict[str, Any]] = []
    deny: list[str | dict[str, Any]] = []
    allowed_commands: list[str] | None = None
    """The programs of the preset `allowlist`."""
    ask_timeout_seconds: Seconds = 300
    """How long a question waits for its answer, which is no after that."""


Section = TypeVar("Section", bound=msgspec.Struct)


def read_section(
    kind: type[Section], config: Json, key: str, document: Document
) -> tuple[Section, list[ConfigProblem]]:
    """One section of the file; every field that does not fit is a problem and keeps its default."""
    value = config.get(key) if isinstance(config, dict) else None
    if value is None:
        return kind(), []
    if not isinstance(value, dict):
        problem = ConfigProblem(
            code="config_type", message=f"'{key}' must be an object", where=document.position((key,))
        )
        return kind(), [problem]
    return read_fields(kind, value, key, document)


def read_fields(
    kind: type[Section], value: dict[str, Json], key: str, document: Document
) -> tuple[Section, list[ConfigProblem]]:
    fields: dict[str, Json] = {}
    problems: list[ConfigProblem] = []
    hints = get_type_hints(kind, include_extras=True)
    for name in kind.__struct_fields__:
        if name not in value:
            continue
        try:
            fields[name] = msgspec.convert(value[name], hints[name])
        except msgspec.ValidationError as error:
            problems.append(
                ConfigProblem(
                    code="config_type",
                    message=f"'{key}.{name}': {str(error).replace('`', '')}",
                    where=document.position((key, name)),
                )
            )
    return kind(**fields), problems
