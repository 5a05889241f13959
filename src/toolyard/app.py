"""AgentApplication: one configuration, its tools, and the one path to call them."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from toolyard.core.tool import ToolCall, ToolResult
from toolyard.files.user_folders import user_folder
from toolyard.files.working_folder import absolute_path, working_folder
from toolyard.kinds import KINDS
from toolyard.runtime.lifecycle import ApplicationOptions, Lifecycle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from toolyard.agents.request import Contribution, Features
    from toolyard.config.settings import Preset
    from toolyard.core.events import Observer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject, Tool, ToolSpec, WireFormat
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.entries import Entry
    from toolyard.plugins.kind import Kind
    from toolyard.plugins.plugin_status import PluginStatus
    from toolyard.process.sandbox.policy import SandboxReport


class AgentApplication:
    """Loads a configuration and calls its tools; `async with` opens it, leaving ends every process it started."""

    def __init__(
        self,
        config_path: str | os.PathLike[str] | Mapping[str, Any],
        sessions_dir: str | os.PathLike[str],
        env_overrides: Mapping[str, str] | None = None,
        config_env: Mapping[str, str] | None = None,
        *,
        tools: Iterable[Any] = (),
        permissions: PermissionPolicy | None = None,
        approver: Approver | None = None,
        session: str | None = None,
        session_metadata: JsonObject | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        only: Literal["shell:command", "shell:session"] | None = None,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        options = ApplicationOptions(
            config=Path(absolute_path(config_path)) if isinstance(config_path, str | os.PathLike) else config_path,
            folder=Path(working_folder()),
            sessions=Path(absolute_path(sessions_dir)),
            cache=Path(absolute_path(cache_dir or user_folder("cache"))),
            kinds=tuple(kinds),
            env_overrides=dict(env_overrides or {}),
            config_env=dict(config_env or {}),
            session=session or uuid.uuid4().hex,
            session_metadata=dict(session_metadata or {}),
            permissions=permissions,
            approver=approver,
            only=only,
            given=entries_for(list(tools)),
        )
        self._lifecycle = Lifecycle(options)
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> AgentApplication:
        await self._lifecycle.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lifecycle.aclose()

    def get_config_errors(self) -> list[dict[str, str | int | None]]:
        """Every problem known now: type, detail, file, line, column, hint and severity."""
        return [problem.as_mapping() for problem in self.problems()]

    def problems(self) -> list[Problem]:
        """Every problem known now, sorted."""
        return self._lifecycle.problems()

    @property
    def config_path(self) -> Path:
        """The file of the configuration; of one in memory, the path that its relative paths are beside."""
        config = self._lifecycle.options.config
        return config if isinstance(config, Path) else self._lifecycle.known().configuration.document.path

    def agents(self) -> list[str]:
        """The names of the configured agents."""
        return self._lifecycle.known().configuration.agents()

    @overload
    def tool_specs(self, agent: str | None = ..., *, format: None = ...) -> list[ToolSpec]: ...
    @overload
    def tool_specs(self, agent: str | None = ..., *, format: WireFormat) -> list[JsonObject]: ...
    def tool_specs(
        self, agent: str | None = None, *, format: WireFormat | None = None
    ) -> list[ToolSpec] | list[JsonObject]:
        """What an agent has, as specs or in a wire format."""
        specs = [tool.spec for tool in self.tools(agent)]
        if format is None:
            return specs
        from toolyard.core.formats import export

        return list(export(specs, format).tools)

    def tools(self, agent: str | None = None) -> Sequence[Tool]:
        """The tools of an agent, in the order of the configuration; without a name of `default`, else of the first."""
        return self._lifecycle.known().agent(agent).catalog.tools()

    def plugins(self, agent: str | None = None) -> list[PluginStatus]:
        """Every plugin of an agent with its tools, on or off, why, and where that was decided."""
        from toolyard.plugins.plugin_status import plugin_statuses

        loaded = self._lifecycle.known()
        return list(plugin_statuses(loaded.agent(agent).catalog, loaded.configuration.document))

    def sandbox_report(self) -> SandboxReport | None:
        """What keeps the processes of tools in, property by property, and why; None when it is off."""
        sandbox = self._lifecycle.known().host.children("work").sandbox
        return sandbox.report() if sandbox else None

    def origin(self, name: str, agent: str | None = None) -> str:
        """The file that a tool comes from."""
        return self._lifecycle.known().agent(agent).catalog.file_of(name)

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | str,
        *,
        agent: str | None = None,
        call_id: str | None = None,
        session: str | None = None,
        on_event: Observer | None = None,
    ) -> ToolResult:
        """Call a tool along the whole path; `on_event` hears of everything that happens on it."""
        calls, settings = await self._lifecycle.for_call(agent, session)
        return await calls.call(self._new_call(name, arguments, call_id), settings, on_event)

    async def call_tools(
        self,
        calls: Iterable[ToolCall],
        *,
        agent: str | None = None,
        session: str | None = None,
        on_event: Observer | None = None,
        cancelled: asyncio.Event | None = None,
    ) -> dict[str, ToolResult]:
        """Take the calls of one model turn; one result for each call id, in the order of the calls."""
        path, settings = await self._lifecycle.for_call(agent, session)
        return await path.call_all(calls, settings, on_event, cancelled=cancelled)

    async def preview_tool(
        self, name: str, arguments: JsonObject | str, *, agent: str | None = None
    ) -> str | ToolResult:
        """What a call would do, in a line; a result instead when the call could not even begin."""
        calls, settings = await self._lifecycle.for_call(agent)
        return await calls.preview(self._new_call(name, arguments), settings)

    def set_preset(self, preset: Preset | None, *, session: str | None = None) -> None:
        """Raise or lower a conversation: from its next call on it has this preset; None for the configured one."""
        self._lifecycle.set_preset(preset, session)

    async def end_session(self, session: str) -> None:
        """End what tools keep for a conversation, such as its live shell."""
        await self._lifecycle.end_session(session)

    async def system_message(self, agent: str | None = None) -> Contribution:
        """The system message that the agent's plugins make for a request, in `text`."""
        return await (await self._features(agent)).system_message()

    async def request_options(self, agent: str | None = None) -> Contribution:
        """The options that the agent's plugins give to a request, in `options`."""
        return await (await self._features(agent)).request_options()

    async def ui_elements(
        self, agent: str | None = None, *, tags: Sequence[str] = (), models: Sequence[str] = ()
    ) -> Contribution:
        """The controls that the agent's plugins offer to a person, in `elements`."""
        return await (await self._features(agent, tags=tags, models=models)).ui_elements()

    async def reload(self) -> None:
        """Read the configuration again: what is unchanged keeps its state, and an unreadable one changes nothing."""
        await self._lifecycle.reload()

    async def refresh(self) -> None:
        """Look at the configuration and every tool file again."""
        await (await self._lifecycle.current()).refresh()

    async def refresh_plugins(self, names: Collection[str] = ()) -> list[RepositoryNow]:
        """Fetch git repositories again, all or those of these names or plugins, and load what changed."""
        return await self._lifecycle.refetch(names)

    def watch(self, *, seconds: float = 0.5) -> AsyncIterator[None]:
        """Look for changes from now on, again and again; gives a turn after each, when it has taken effect."""
        return self._watch(self._lifecycle.known().state(), seconds)

    async def _watch(self, seen: object, seconds: float) -> AsyncIterator[None]:
        while True:
            await asyncio.sleep(seconds)
            await self.refresh()
            if (now := (await self._lifecycle.current()).state()) != seen:
                seen = now
                yield

    async def _features(self, agent: str | None, *, tags: Sequence[str] = (), models: Sequence[str] = ()) -> Features:
        from toolyard.agents.request import features_of

        return features_of(await self._lifecycle.current(), agent, tags=tags, models=models)

    def _new_call(self, name: str, arguments: JsonObject | str, call_id: str | None = None) -> ToolCall:
        id = call_id or f"call_{self._lifecycle.options.session}_{next(self._numbers)}"
        return ToolCall(id=id, name=name, arguments=arguments)


def entries_for(tools: Sequence[Any]) -> Sequence[Entry]:
    """Entries for functions and the like that a program hands over."""
    if not tools:
        return ()
    from toolyard.kinds.python_function.objects import object_entries

    return object_entries(tools)
