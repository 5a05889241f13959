"""What a kind of tool is to everybody else: how it is spelled, where its tools come from, and how they are written.

A new kind is a folder in `kinds/` that implements `Kind`, and its line in the tuple there. Nothing else names it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.plugins.host import Host
    from toolyard.plugins.plugin import Plugin

DESCRIPTOR = "agent_plugin.json"
"""The file by which a folder says which plugins it holds."""
Scope: TypeAlias = Literal["application", "config", "session"]
"""Who shares a source: all agents; those with equal configurations; all, with a state for each conversation."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One thing that an entry of `plugins` names; equal if it is the same, wherever it is written."""

    at: Place
    """Where it is written."""
    scope: ClassVar[Scope] = "application"

    @property
    def repository(self) -> GitReference | None:
        """The git repository that it is fetched from, if it is."""
        return None

    @property
    def paths(self) -> Sequence[str]:
        """Where it is on this machine: its tools must be able to read it."""
        return ()

    @property
    def roots(self) -> Sequence[str]:
        """What of it the application itself will run or obey: tools must not write it. Known without running it."""
        return ()

    @property
    def scripts(self) -> Sequence[str]:
        """What of it runs in the sandbox, and without one where a rule says so: tools must not write that either."""
        return ()

    @property
    def secrets(self) -> Mapping[str, str]:
        """What of it no output may show, by what that is called."""
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._meant() == other._meant()

    def __hash__(self) -> int:
        return hash(self._meant())

    def _meant(self) -> tuple[object, ...]:
        return (type(self), *(getattr(self, name) for name in self.__struct_fields__ if name != "at"))


class RepositoryFolder(Reference, frozen=True, kw_only=True):
    """A folder of a git repository, which has to be fetched."""

    git: GitReference
    subdirectory: str | None = None

    @property
    def repository(self) -> GitReference:
        return self.git

    @property
    def paths(self) -> Sequence[str]:
        """The repository, if it is on this machine."""
        return () if self.git.is_remote else (self.git.url,)


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry names, and what is wrong with it."""

    references: Sequence[Reference] = ()
    problems: Sequence[Problem] = ()
    watched: Sequence[str] = ()
    """Files besides the tools themselves whose change changes what is named."""


class Source(Protocol):
    """One reference, followed through the changes of what it names; it owns whatever its tools need.

    To make one is cheap and holds nothing: after a reload it may be dropped for the one that was there before.
    """

    @property
    def conditions(self) -> object:
        """What its tools run under; a source is kept over a reload only if that is equal too."""

    @property
    def file(self) -> Path:
        """What to name as its origin."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with it now."""

    def plugins(self) -> Sequence[Plugin]:
        """The plugins there are now."""

    def is_current(self) -> bool:
        """Whether it is still what was read; cheap enough to be asked at every call."""

    async def load(self, *, without_running: bool = False) -> bool:
        """Read it; False when `without_running` could not be kept, and then nothing was read."""

    def adopt(self, newer: Any) -> None:
        """The configuration was read again: take over what the source that was made for it knows anew."""

    async def aclose(self) -> None:
        """Release what it holds."""


@runtime_checkable
class EndsSessions(Protocol):
    """What a source has besides that keeps something for each conversation."""

    async def end_session(self, session: str) -> None:
        """A conversation is over: end what was kept for it."""


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is doing that tools are asked of."""

    name: str
    state: Literal["not started", "asked", "ready", "running", "failed"]
    """`asked`: it has not said yet what it offers."""
    restarts: int
    tools: int
    speaks: str
    """The revision of its protocol; empty while that is not known."""
    last_error: str
    printed: str
    """The last of what it printed beside its messages, when it failed."""


@runtime_checkable
class HasServer(Protocol):
    """What a source has besides whose tools are asked of a server."""

    @property
    def name(self) -> str:
        """The id of the server's plugin."""

    async def status(self, *, start: bool) -> ServerStatus:
        """How the server is doing; with `start` it is asked now."""

    async def login(self, show_address: Callable[[str], None]) -> Problem | None:
        """Let a person sign in to it by an address that they open; why they cannot."""

    def logout(self) -> bool:
        """Forget what signing in gave; whether there was something."""


class Kind(Protocol):
    """One kind of tool; one that names this as its base has the answers of most, and says only what is different."""

    @property
    def name(self) -> str:
        """As messages and `tool new --kind` have it."""

    @property
    def spellings(self) -> Sequence[str]:
        """Every form of an entry, as a person would write it, with capitals for what differs."""

    @property
    def suffixes(self) -> Sequence[str]:
        """How files of this kind end, for hints."""
        return ()

    @property
    def modes(self) -> Sequence[str] | None:
        """Ways to write a tool of this kind, the usual one first; empty for one way, None when nobody writes any."""
        return None

    @property
    def settings(self) -> type[msgspec.Struct] | None:
        """Its part of `plugin_policy`."""
        return None

    @property
    def author(self) -> Authoring | None:
        """What it does for people who write its tools; None when nobody does. Getting it may import a lot."""
        return None

    def read(self, entry: Json, at: Place) -> Named | None:
        """What an entry of `plugins` names; None when it is not one of this kind. Nothing is run or fetched."""

    def source(self, reference: Any, host: Host) -> Source:
        """Where its tools come from."""

    def refusal(self, reference: Any, host: Host) -> Problem | None:  # noqa: ARG002 - most need nothing
        """Why nothing of it may be loaded here, by policy or for want of a program."""
        return None

    def stores(self, policy: Any, plugin_cache: Path, folder: str) -> Sequence[str]:  # noqa: ARG002 - most have none
        """Folders of its own beside the plugin cache, of which plugins are made: tools must not write them."""
        return ()

    def whole_file(self, value: JsonObject, path: Path) -> JsonObject | None:  # noqa: ARG002 - most files are none
        """The configuration that a file stands for which is none, but something this kind loads; None for others."""
        return None


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a new tool, with its path from the tool's folder."""

    path: str
    text: str
    executable: bool = False

    @classmethod
    def with_json(cls, path: str, value: Json) -> NewFile:
        return cls(path=path, text=json.dumps(value, indent=2) + "\n")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder that tools could come from."""

    what: str
    entry: Json
    """What `plugins` would say to load it."""
    policy: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """What `plugin_policy` must say besides."""


class Authoring(Protocol):
    """What a kind does for people who write its tools."""

    @property
    def form(self) -> str:
        """How a file is known as one of this kind, for somebody whose file is not."""

    def entries(self, path: Path) -> Sequence[Json]:
        """The entries of `plugins` that load the tools at a path; none when there are none of this kind."""

    def policy(self, timeout: float) -> JsonObject:
        """What `plugin_policy` must say so that they can be tried, each step within a time."""

    async def check(self, source: Any, timeout: float) -> Sequence[Problem]:
        """All that is wrong with what a source loads, and what is legal but will hurt."""

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:
        """A tool of that name that works as it is."""

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        """What of a folder looks like tools of this kind; `place` is how a configuration spells the folder."""
