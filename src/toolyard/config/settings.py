"""Typed settings: every key a configuration file is known to have. Its JSON Schema comes from here.

Annotations are evaluated here and not kept as text: reading text back would cost every start three milliseconds.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from toolyard.config.agent_settings import BudgetSettings, CheckpointSettings, ContextSettings
from toolyard.core.reach import Reach
from toolyard.core.sandbox_properties import PROPERTIES, SandboxProperty

MISFITS = (msgspec.ValidationError, UnicodeEncodeError)
"""What converting raises for a value of a wrong shape; the second for half a character, which JSON can spell."""
PLACEHOLDER_PATTERN = r"\$\{(env|file):"
"""What a text has in it that may become any other."""
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]


class PluginPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`plugin_policy`: what plugins may be and do."""

    # Each kind of tool adds keys of its own: see `Settings`. The docstring is part of the schema that users see.

    allow_remote: Annotated[
        bool, Meta(description="Whether repositories, and what building them needs, may come from other machines.")
    ] = False
    allowed_git_hosts: Annotated[
        list[str], Meta(description="With allow_remote, the only hosts to load from; any host when there are none.")
    ] = []
    install_timeout_seconds: Annotated[Seconds, Meta(description="Limit for each run of git or the installer.")] = 600
    install_max_bytes: Annotated[Count, Meta(description="The most that a repository may hold.")] = 268_435_456
    pass_env: Annotated[
        list[str], Meta(description="Variables that reach tools although they look like credentials.")
    ] = []


class MixinPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`mixin_policy`: how mixins are merged."""

    default_merge: Annotated[
        Literal["shallow", "deep"], Meta(description="Whether whole keys are replaced, or objects merged key by key.")
    ] = "shallow"
    max_depth: Annotated[int, Meta(ge=1, le=100, description="How many mixins a chain of references may have.")] = 16


class OutputSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`output`: how much of what a tool prints is kept."""

    limit_bytes: Annotated[Count, Meta(description="How much of a tool's output is kept: head and tail.")] = 30_000
    spill: Annotated[bool, Meta(description="Whether longer output is kept whole in the sessions folder.")] = True
    reader: Annotated[
        bool | None, Meta(description="Whether there is the tool read_output; null: in conversations of agents.")
    ] = None
    keep_days: Annotated[Count, Meta(description="How many days such output is kept.")] = 30
    keep_bytes: Annotated[Count, Meta(description="How much of it is kept; the oldest goes first.")] = 1 << 30


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`limits`: what each process of a tool may use."""

    cpu_seconds: Count | None = None
    memory_bytes: Count | None = None
    file_bytes: Annotated[Count | None, Meta(description="The largest file a process may write.")] = None
    open_files: Count | None = None
    processes: Count | None = None
    output_bytes: Annotated[
        Count | None, Meta(description="What one command of a bash session may print before it is ended.")
    ] = None


class AuditPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`audit`: what happens when the audit log cannot be written."""

    on_failure: Literal["continue", "stop"] = "continue"


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sandbox`: what keeps the processes of tools in."""

    mode: Annotated[
        Literal["auto", "require", "off"],
        Meta(description="The best that the machine has; only one that keeps what is required; nothing."),
    ] = "auto"
    properties: Annotated[
        list[SandboxProperty], Meta(description="What 'require' requires; everything unless said.")
    ] = msgspec.field(default_factory=lambda: list(PROPERTIES))
    network: Annotated[bool, Meta(description="Whether tools can reach any host.")] = False
    hosts: Annotated[
        list[str], Meta(description="Names, and groups such as @python, that can be reached though the network is off.")
    ] = []
    unix_sockets: Annotated[bool, Meta(description="Whether tools can reach sockets of other processes.")] = False
    hide_processes: Annotated[bool, Meta(description="Whether tools see only their own processes.")] = False
    processes: Annotated[Count, Meta(description="How many processes there may be inside at a time.")] = 4096
    writable: Annotated[list[str], Meta(description="Further paths to write; relative to this file's folder.")] = []
    readable: Annotated[list[str], Meta(description="Paths to read that would be hidden otherwise.")] = []
    hidden: Annotated[list[str], Meta(description="Paths that tools do not see.")] = []


Preset = Literal["read-only", "workspace", "sandboxed", "ask-everything", "allowlist", "trusted"]


class PermissionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of `permissions` that says more than a pattern of commands."""

    tool: Annotated[str | UnsetType, Meta(description="The tool it is about; else all that run shell commands.")] = (
        UNSET
    )
    command: Annotated[str | UnsetType, Meta(description="A pattern of commands, such as 'git status **'.")] = UNSET
    write: Annotated[str | UnsetType, Meta(description="Files that a command writes to.")] = UNSET
    read: Annotated[str | UnsetType, Meta(description="Files that a command reads.")] = UNSET
    path: Annotated[str | UnsetType, Meta(description="Paths among a tool's arguments.")] = UNSET
    arguments: Annotated[
        dict[str, str | dict[str, str]] | UnsetType,
        Meta(description="For each argument by name a text with '*', or {'path': a pattern of paths}."),
    ] = UNSET
    host: Annotated[
        str | UnsetType, Meta(description="A host that may be reached from the sandbox, such as '*.example.com'.")
    ] = UNSET
    reach: Annotated[
        Reach | UnsetType, Meta(description="How far what it allows may reach, instead of the preset's reach.")
    ] = UNSET
    folder: Annotated[
        str | UnsetType,
        Meta(description="With the reach 'outside': the folders it holds in, by default the top of the workspace."),
    ] = UNSET
    reason: Annotated[str | UnsetType, Meta(description="What a model is told that runs into the rule.")] = UNSET


Rules = list[str | PermissionRule]


class PermissionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`permissions`: which calls may happen. A rule is a pattern of commands, or an object that says more."""

    preset: Annotated[
        Preset | None,
        Meta(description="What holds where no rule says otherwise: 'sandboxed' where a sandbox holds, or 'workspace'."),
    ] = None
    allow: Annotated[Rules, Meta(description="Calls that may happen.")] = []
    ask: Annotated[Rules, Meta(description="Calls that a person is asked about.")] = []
    deny: Annotated[Rules, Meta(description="Calls that may not happen, whatever else is said.")] = []
    allowed_commands: Annotated[list[str] | None, Meta(description="The programs of the preset 'allowlist'.")] = None
    operators: Annotated[
        bool, Meta(description="Whether a line may have pipes, lists, redirections and expansions, or be one command.")
    ] = True
    ask_timeout_seconds: Annotated[
        Seconds, Meta(description="How long a question waits for its answer, which is no after that.")
    ] = 300


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "plugin_policy": PluginPolicy,
    "mixin_policy": MixinPolicy,
    "output": OutputSettings,
    "limits": ResourceLimits,
    "audit": AuditPolicy,
    "sandbox": SandboxSettings,
}
"""The parts of a file that have no keys but known ones."""


class LayerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the top level, a provider and an agent can have alike, each over the one before."""

    plugins: Annotated[
        list[str | dict[str, Any]] | UnsetType,
        Meta(description="Where plugins come from; those of the top level, the provider and the agent add up."),
    ] = UNSET
    enabled_plugins: Annotated[
        list[str] | UnsetType, Meta(description="Ids of plugins to turn on that are off by default.")
    ] = UNSET
    disabled_plugins: Annotated[list[str] | UnsetType, Meta(description="Ids of plugins to turn off.")] = UNSET
    force_enabled_plugins: Annotated[
        list[str] | UnsetType, Meta(description="Ids of plugins that are on whatever else is said.")
    ] = UNSET
    provider: Annotated[
        str | UnsetType, Meta(description="In an agent, an entry of 'providers'; in a provider, the plugin it uses.")
    ] = UNSET
    model: str | UnsetType = UNSET
    tags: Annotated[list[str] | UnsetType, Meta(description="Tags by which plugins decide whether they are on.")] = (
        UNSET
    )
    system_message: str | dict[str, Any] | UnsetType = UNSET
    api_key: Annotated[str | UnsetType, Meta(description="The key of the model's service; best '${env:NAME}'.")] = UNSET
    base_url: Annotated[str | UnsetType, Meta(description="Where the model's service is.")] = UNSET
    options: Annotated[dict[str, Any] | UnsetType, Meta(description="What else goes into each request.")] = UNSET
    subagents: Annotated[
        list[str] | UnsetType, Meta(description="Agents that it may give work to, by the tool 'agent'.")
    ] = UNSET
    search_tools_beyond: (
        Annotated[int, Meta(ge=1, description="With more tools than this, the model looks for them by what they do.")]
        | UnsetType
    ) = UNSET
    budget: BudgetSettings | UnsetType = UNSET
    context: ContextSettings | UnsetType = UNSET
    checkpoints: CheckpointSettings | UnsetType = UNSET
    working_directory: Annotated[str | UnsetType, Meta(description="The folder that tools work in.")] = UNSET
    output: OutputSettings | UnsetType = UNSET
    permissions: Annotated[
        PermissionSettings | UnsetType, Meta(description="Which calls may happen; the rules of all layers add up.")
    ] = UNSET


class NodeSettings(LayerSettings, frozen=True, kw_only=True):
    """A provider, an agent or a mixin."""

    description: Annotated[
        str | UnsetType, Meta(description="What an agent is for; agents that may give it work read this.")
    ] = UNSET
    mixin_refs: Annotated[list[str] | UnsetType, Meta(description="Mixins to build on; later ones win.")] = UNSET
    mixin_merge: Annotated[Literal["shallow", "deep"] | UnsetType, Meta(description="How they are merged here.")] = (
        UNSET
    )


class FileSettings(LayerSettings, frozen=True, kw_only=True):
    """A whole configuration file."""

    schema: Annotated[str | UnsetType, Meta(description="For editors: the schema of this file.")] = msgspec.field(
        name="$schema", default=UNSET
    )
    plugin_cache_dir: Annotated[str | UnsetType, Meta(description="Where plugins are installed.")] = UNSET
    plugin_policy: PluginPolicy | UnsetType = UNSET
    mixins: Annotated[
        dict[str, NodeSettings] | UnsetType, Meta(description="Fragments for providers, agents and each other.")
    ] = UNSET
    mixin_policy: MixinPolicy | UnsetType = UNSET
    providers: dict[str, NodeSettings] | UnsetType = UNSET
    agents: dict[str, NodeSettings] | UnsetType = UNSET
    limits: ResourceLimits | UnsetType = UNSET
    audit: AuditPolicy | UnsetType = UNSET
    sandbox: SandboxSettings | UnsetType = UNSET


class Settings:
    """The types that a file is read by: ours, with what kinds of tools add to `plugin_policy`."""

    def __init__(self, parts: Sequence[type[msgspec.Struct]] = ()) -> None:
        added = [(name, *declared) for part in parts for name, declared in declared_fields(part).items()]
        options: dict[str, Any] = {"frozen": True, "kw_only": True, "module": __name__}
        self.policy: type[PluginPolicy] = msgspec.defstruct(  # type: ignore[assignment]  # it is what it is made from
            "PluginPolicy", added, bases=(PluginPolicy,), **options
        )
        self.policy.__doc__ = PluginPolicy.__doc__
        fields = [("plugin_policy", self.policy | UnsetType, UNSET)]
        self.file: type[FileSettings] = msgspec.defstruct(  # type: ignore[assignment]  # as above
            "FileSettings", fields, bases=(FileSettings,), **options
        )
        self.file.__doc__ = FileSettings.__doc__
        self.sections = SECTIONS | {"plugin_policy": self.policy}


def declared_fields(part: type[msgspec.Struct]) -> dict[str, tuple[Any, Any]]:
    """Each field with its type and default; read off the class, since asking msgspec would take a millisecond."""
    defaults = dict(
        zip(part.__struct_fields__[-len(part.__struct_defaults__) :], part.__struct_defaults__, strict=True)
    )
    types = {
        name: kind for base in reversed(part.__mro__) for name, kind in getattr(base, "__annotations__", {}).items()
    }
    return {name: (types[name], defaults[name]) for name in part.__struct_fields__}
