"""AgentApplication: one configuration, its tools, and the one path to call them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from toolyard.core.own_names import READ_OUTPUT, SEARCH_TOOLS
from toolyard.core.tool import OWN, ToolCall, ToolResult
from toolyard.files.own.ownership import real_place
from toolyard.files.user_folders import user_folder
from toolyard.files.working_folder import absolute_path, working_folder
from toolyard.kinds import KINDS
from toolyard.runtime.lifecycle import Lifecycle
from toolyard.runtime.options import ApplicationOptions
from toolyard.runtime.output_folders import has_reader, output_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    # What a type checker makes of the formats where the SDK is installed; nothing of them is needed otherwise.
    from anthropic.types import MessageParam, ToolUnionParam
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
    from openai.types.responses import ResponseInputItemParam, ToolParam

    from toolyard.agents.controls import UiSchema
    from toolyard.agents.request import Contribution, Features
    from toolyard.agents.session import AgentSession
    from toolyard.agents.sessions.opening import Sessions
    from toolyard.agents.sessions.store import SessionStore
    from toolyard.config.configuration import Configuration
    from toolyard.config.settings import Preset
    from toolyard.core.events import Observer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject, Tool, ToolSpec, WireFormat
    from toolyard.core.wire.sdk_messages import CallResults, MessageFormat
    from toolyard.permissions.verdict import Approver, ApproverFunction, PermissionPolicy
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.entries import Entry
    from toolyard.plugins.kind import HasServer, Kind
    from toolyard.plugins.offers import PluginOffers
    from toolyard.plugins.plugin_status import PluginStatus
    from toolyard.process.sandbox.policy import SandboxReport

IN_TURNS = {READ_OUTPUT, SEARCH_TOOLS}
"""Tools of the application's own by which a model in one of our turns finds others, and reads on."""
SHOWN_TOOLS = 40
"""How many tools a model is shown before it looks for them instead; beyond, models choose badly."""


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
        approver: Approver | ApproverFunction | None = None,
        session: str | None = None,
        session_metadata: JsonObject | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        only: Literal["shell:command", "shell:session"] | None = None,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        """FileRefused when a link in the workspace leads to `sessions_dir`: a tool may have made it."""
        options = ApplicationOptions(
            config=Path(absolute_path(config_path)) if isinstance(config_path, str | os.PathLike) else config_path,
            folder=Path(working_folder()),
            sessions=Path(real_place(absolute_path(sessions_dir))),
            cache=Path(absolute_path(cache_dir or user_folder("cache"))),
            kinds=tuple(kinds),
            env_overrides=dict(env_overrides or {}),
            config_env=dict(config_env or {}),
            session=session or os.urandom(16).hex(),
            session_metadata=dict(session_metadata or {}),
            permissions=permissions,
            approver=approver_of(approver),
            only=only,
            given=entries_for(list(tools)),
            more_tools=self._more_tools,
        )
        self._lifecycle = Lifecycle(options)
        self._numbers = itertools.count(1)
        self._opened_sessions: Sessions | None = None

    def begin(self) -> None:
        """Do what opening can do without an event loop, for whoever has something to import while processes start."""
        self._lifecycle.begin()

    async def __aenter__(self) -> AgentApplication:
        await self._lifecycle.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._opened_sessions:
                await self._opened_sessions.aclose()
        finally:
            await self._lifecycle.aclose()

    def get_config_errors(self) -> list[dict[str, str | int | None]]:
        """Every problem known now: type, detail, file, line, column, hint and severity."""
        return [problem.as_mapping() for problem in self.problems()]

    def problems(self, *, of_requests: bool = True) -> list[Problem]:
        """Every problem known now, sorted; those of requests are found by making each agent's system message."""
        if not of_requests:
            return self._lifecycle.problems()
        from toolyard.agents.own_tools.subagents import subagent_problems
        from toolyard.agents.request import request_problems

        loaded = self._lifecycle.known()
        return self._lifecycle.problems(also=[*request_problems(loaded), *subagent_problems(loaded.configuration)])

    @property
    def config_path(self) -> Path:
        """The file of the configuration; of one in memory, the path that its relative paths are beside."""
        config = self._lifecycle.options.config
        return config if isinstance(config, Path) else self._lifecycle.known().configuration.document.path

    @property
    def has_configuration(self) -> bool:
        """Whether the configuration could be read; without one nothing is loaded, and `problems` say why."""
        return self._lifecycle.known().configuration.readable

    def agents(self) -> list[str]:
        """The names of the configured agents."""
        return self._lifecycle.known().configuration.agents()

    @overload
    def tool_specs(self, agent: str | None = ..., *, format: None = ...) -> list[ToolSpec]: ...
    @overload
    def tool_specs(
        self, agent: str | None = ..., *, format: Literal["openai"]
    ) -> list[ChatCompletionToolUnionParam]: ...
    @overload
    def tool_specs(self, agent: str | None = ..., *, format: Literal["responses"]) -> list[ToolParam]: ...
    @overload
    def tool_specs(self, agent: str | None = ..., *, format: Literal["anthropic"]) -> list[ToolUnionParam]: ...
    @overload
    def tool_specs(self, agent: str | None = ..., *, format: WireFormat) -> list[Any]: ...
    def tool_specs(self, agent: str | None = None, *, format: WireFormat | None = None) -> list[Any]:
        """What an agent has, as specs or in a wire format."""
        specs = [tool.spec for tool in self.tools(agent)]
        if format is None:
            return specs
        from toolyard.core.wire.formats import export

        return list(export(specs, format).tools)

    def tools(self, agent: str | None = None) -> Sequence[Tool]:
        """The tools of an agent, in the order of the configuration; without a name of `default`, else of the first.

        What a model has only in turns of ours, to find tools and to read on, is not among them unless it is asked for.
        """
        loaded = self._lifecycle.known()
        agent = agent or loaded.default_agent()
        in_turns = {SEARCH_TOOLS} if has_reader(loaded.configuration, agent, in_turn=False) else IN_TURNS
        found = loaded.agent(agent).catalog.tools()
        return [tool for tool in found if tool.kind != OWN or tool.spec.name not in in_turns]

    def offers(self, agent: str | None = None) -> list[tuple[str, PluginOffers]]:
        """What an agent's plugins have beside tools, for whoever serves them on."""
        loaded = self._lifecycle.known()
        return loaded.agent(agent or loaded.default_agent()).catalog.offers()

    def plugins(self, agent: str | None = None) -> list[PluginStatus]:
        """Every plugin of an agent with its tools, on or off, why, and where that was decided."""
        from toolyard.plugins.plugin_status import plugin_statuses

        loaded = self._lifecycle.known()
        return list(plugin_statuses(loaded.agent(agent).catalog, loaded.configuration.document))

    def sandbox_report(self) -> SandboxReport | None:
        """What keeps the processes of tools in, property by property, and why; None when it is off."""
        sandbox = self._lifecycle.known().host.children("work").sandbox
        return sandbox.report() if sandbox else None

    def output_folder(self) -> Path:
        """Where output of this workspace is kept that is too long for a result."""
        return output_folder(self._lifecycle.options.sessions, working_folder())

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
        timeout: float | None = None,
        by_person: bool = False,
        on_event: Observer | None = None,
    ) -> ToolResult:
        """Call a tool along the whole path; `on_event` hears of everything that happens on it.

        What a model changes it must have read before in the same session; `by_person` says that no model wrote this.
        """
        calls, settings = await self._lifecycle.for_call(agent, session)
        call = self._new_call(name, arguments, call_id, timeout, by_person=by_person)
        return await calls.call(call, settings, on_event)

    async def call_tools(
        self,
        calls: Iterable[ToolCall],
        *,
        agent: str | None = None,
        session: str | None = None,
        on_event: Observer | None = None,
        cancelled: asyncio.Event | None = None,
    ) -> CallResults:
        """Take the calls of one model turn; one result for each call id, in the order of the calls."""
        from toolyard.core.wire.sdk_messages import CallResults

        calls = list(calls)
        path, settings = await self._lifecycle.for_call(agent, session)
        return CallResults(await path.call_all(calls, settings, on_event, cancelled=cancelled), calls)

    def tool_calls(self, message: Any, *, format: MessageFormat) -> list[ToolCall]:
        """The calls that a model's answer holds; it may be an SDK's object or the JSON of it."""
        from toolyard.core.wire.sdk_messages import tool_calls

        return tool_calls(message, format)

    @overload
    def tool_messages(
        self, results: Mapping[str, ToolResult], *, format: Literal["openai"]
    ) -> list[ChatCompletionMessageParam]: ...
    @overload
    def tool_messages(
        self, results: Mapping[str, ToolResult], *, format: Literal["responses"]
    ) -> list[ResponseInputItemParam]: ...
    @overload
    def tool_messages(
        self, results: Mapping[str, ToolResult], *, format: Literal["anthropic"]
    ) -> list[MessageParam]: ...
    @overload
    def tool_messages(self, results: Mapping[str, ToolResult], *, format: MessageFormat) -> list[Any]: ...
    def tool_messages(self, results: Mapping[str, ToolResult], *, format: MessageFormat) -> list[Any]:
        """The results of a turn as what goes back to the model, after its answer."""
        from toolyard.core.wire.sdk_messages import tool_messages

        return tool_messages(results, format)

    async def preview_tool(
        self, name: str, arguments: JsonObject | str, *, agent: str | None = None, by_person: bool = False
    ) -> str | ToolResult:
        """What a call would do, in a line; a result instead when the call could not even begin."""
        calls, settings = await self._lifecycle.for_call(agent)
        return await calls.preview(self._new_call(name, arguments, by_person=by_person), settings)

    def set_preset(self, preset: Preset | None, *, session: str | None = None) -> None:
        """Raise or lower a conversation: from its next call on it has this preset; None for the configured one."""
        self._lifecycle.set_preset(preset, session)

    def session_preset(self, session: str | None = None) -> Preset | None:
        """What `set_preset` gave to a conversation; None where it has what the configuration says."""
        return self._lifecycle.session_preset(session)

    async def open_session(
        self,
        agent: str | None = None,
        *,
        id: str | None = None,
        model: str | None = None,
        approver: Approver | None = None,
        metadata: JsonObject | None = None,
    ) -> AgentSession:
        """A conversation with an agent: a new one, or with an id one that goes on.

        Raises `SessionTaken` while another process works on it.
        """
        return await self._sessions().open(agent, id=id, model=model, approver=approver, metadata=metadata)

    def session_store(self) -> SessionStore:
        """All sessions of this folder: to list, read, search and change them."""
        return self._sessions().store

    def _sessions(self) -> Sessions:
        if self._opened_sessions is None:
            from toolyard.agents.sessions.opening import Sessions

            self._opened_sessions = Sessions(self._lifecycle)
        return self._opened_sessions

    def _more_tools(self, configuration: Configuration, agent: str, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Tools that no entry names: they come of what the configuration says of the agent, and of its other tools."""
        found: list[Tool] = []
        config = configuration.for_agent(agent)
        if config.get("subagents"):
            from toolyard.agents.own_tools.subagents import AgentTool, subagents_in

            agents = subagents_in(configuration, agent)
            found += [AgentTool(agents, self._sessions())] if agents else []
        beyond = config.get("search_tools_beyond")
        if len(tools) > (beyond if isinstance(beyond, int) else SHOWN_TOOLS):  # another value is told as a problem
            from toolyard.agents.own_tools.tool_search import SearchTool

            found.append(SearchTool(tools))
        if (tools or found) and has_reader(configuration, agent, in_turn=bool(config.get("provider"))):
            from toolyard.runtime.output_reader import OutputReader

            found.append(OutputReader())
        return found

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
        self, agent: str | None = None, *, tags: Sequence[str] | None = None, models: Sequence[str] | None = None
    ) -> Contribution:
        """The controls that the agent's plugins offer to a person, in `elements`; with the agent's tags and models."""
        return await (await self._features(agent, tags=tags, models=models)).ui_elements()

    async def ui_schema(self, agent: str | None = None, *, session: str | None = None) -> UiSchema:
        """Every control of an agent: plugins on and off, the model, what features add; of a session, as it is there."""
        from toolyard.agents.controls import ui_schema

        loaded = await self._lifecycle.current()
        row = self.session_store().session(session) if session else None
        name = agent or (row.agent if row else loaded.default_agent())
        return await ui_schema(loaded, name, row.metadata if row else {})

    async def reload(self) -> None:
        """Read the configuration again: what is unchanged keeps its state, and an unreadable one changes nothing."""
        await self._lifecycle.reload()

    async def refresh(self) -> None:
        """Look at the configuration and every tool file again."""
        await (await self._lifecycle.current()).refresh()

    async def refresh_plugins(self, names: Collection[str] = ()) -> list[RepositoryNow]:
        """Fetch git repositories again, all or those of these names or plugins, and load what changed."""
        return await self._lifecycle.refetch(names)

    async def servers(self) -> list[HasServer]:
        """The sources whose tools are asked of servers: how each is doing, and signing in to it."""
        from toolyard.plugins.kind import HasServer

        loaded = await self._lifecycle.current()
        return [one.source for one in loaded.sources() if isinstance(one.source, HasServer)]

    def watch(self, *, seconds: float = 0.5) -> AsyncIterator[None]:
        """Look for changes from now on, again and again; gives a turn after each, when it has taken effect."""
        return self._watch(self._lifecycle.known().state(), seconds)

    async def _watch(self, seen: object, seconds: float) -> AsyncIterator[None]:
        while True:
            await self._news(seconds)
            await self.refresh()
            if (now := (await self._lifecycle.current()).state()) != seen:
                seen = now
                yield

    async def _news(self, seconds: float) -> None:
        """Wait for a source that says that it changed; not for long, since most do not say."""
        news = self._lifecycle.known().host.news
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), seconds)
        news.clear()

    async def _features(
        self, agent: str | None, *, tags: Sequence[str] | None = None, models: Sequence[str] | None = None
    ) -> Features:
        from toolyard.agents.request import features_of

        return features_of(await self._lifecycle.current(), agent, tags=tags, models=models)

    def _new_call(
        self,
        name: str,
        arguments: JsonObject | str,
        call_id: str | None = None,
        timeout: float | None = None,
        *,
        by_person: bool = False,
    ) -> ToolCall:
        id = call_id or f"call_{self._lifecycle.options.session}_{next(self._numbers)}"
        return ToolCall(id=id, name=name, arguments=arguments, timeout=timeout, by_person=by_person)


def entries_for(tools: Sequence[Any]) -> Sequence[Entry]:
    """Entries for functions and the like that a program hands over."""
    if not tools:
        return ()
    from toolyard.kinds.python_function.objects import object_entries

    return object_entries(tools)


def approver_of(approver: Approver | ApproverFunction | None) -> Approver | None:
    """Whoever is asked, a plain function too."""
    if approver is None or hasattr(approver, "approve"):
        return approver
    from toolyard.permissions.approval import FunctionApprover

    return FunctionApprover(approver)
