"""AgentApplication: one configuration, its tools, and the one path to call them."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from msgspec.structs import replace

from toolyard.config.configuration import Configuration, builtin_names, read_configuration
from toolyard.config.placeholders import Names
from toolyard.core.problems import Position, Problem, sort_problems
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.errors import ApplicationClosed, UnknownPlugin
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import Sections
from toolyard.plugins.loader import Loader
from toolyard.plugins.workshops import Caches, Workshops
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential, process_secrets
from toolyard.runtime.audit.log import NdjsonAudit
from toolyard.runtime.invoke import Invoker
from toolyard.runtime.loaded import AgentTools, Loaded
from toolyard.runtime.passage import CallSettings
from toolyard.runtime.process_pools import Quarters
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from toolyard.agents.request import Contribution, Features
    from toolyard.core.events import Observer
    from toolyard.core.tool import Json, JsonObject, Tool, ToolSpec, WireFormat
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.catalog import Catalog
    from toolyard.plugins.plugin_status import Standing
    from toolyard.process.sandbox.policy import SandboxReport
    from toolyard.process.sandbox.sandbox import Sandbox


class AgentApplication:
    """Loads a configuration and calls its tools; `async with` opens it, leaving ends every process it started."""

    def __init__(
        self,
        config_path: str | os.PathLike[str],
        sessions_dir: str | os.PathLike[str],
        env_overrides: Mapping[str, str] | None = None,
        config_env: Mapping[str, str] | None = None,
        *,
        permissions: PermissionPolicy | None = None,
        approver: Approver | None = None,
        session: str | None = None,
        session_metadata: JsonObject | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        only: Literal["shell:command", "shell:session"] | None = None,
    ) -> None:
        self._config_path = Path(os.path.abspath(config_path))
        self._sessions_dir = Path(os.path.abspath(sessions_dir))
        self._config_env = dict(config_env or {})
        self._overrides = dict(env_overrides or {})
        self._permissions = permissions
        self._rules: RulePolicy | None = None
        self._grants = GrantStore(default_grants_file())
        self._approver = approver
        self._only = only
        self._session = session or uuid.uuid4().hex
        self._metadata = dict(session_metadata or {})
        self._caches = Caches(Path(os.path.abspath(cache_dir or default_cache_dir())))
        self._numbers = itertools.count(1)
        self._said: list[Problem] = []
        self._loaded: Loaded | None = None
        self._apart: Loaded | None = None
        self._reloading = asyncio.Lock()
        self._audit = NdjsonAudit(self._sessions_dir / "audit", on_failure=self._say_audit)
        self._quarters = self._new_quarters()
        os.environ.update(self._overrides)

    async def __aenter__(self) -> AgentApplication:
        self._loaded = await self._load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded:
            await loaded.aclose()
        await self._quarters.aclose()
        self._audit.close()

    def get_config_errors(self) -> list[dict[str, str | int | None]]:
        """Every problem known now: type, detail, file, line, column, hint and severity."""
        return [problem.as_mapping() for problem in self.problems()]

    def problems(self) -> list[Problem]:
        """Every problem known now, sorted."""
        loaded = self._known()
        rules = self._rules
        permitting = [*rules.problems(), *rules.sections.problems(loaded.configuration.agents())] if rules else []
        told = loaded.problems()
        places = {problem.where for problem in told if problem.code == "permissions_rule"}
        untold = [problem for problem in permitting if problem.where not in places]
        redact = loaded.redactor.redact
        found = sort_problems([*told, *self._said, *untold])
        return [replace(one, message=redact(one.message), hint=one.hint and redact(one.hint)) for one in found]

    @property
    def config_path(self) -> Path:
        """The file of the configuration."""
        return self._config_path

    def agents(self) -> list[str]:
        """The names of the configured agents."""
        return self._known().configuration.agents()

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
        return self._known().agent(agent).catalog.tools()

    def plugins(self, agent: str | None = None) -> list[Standing]:
        """Every plugin of an agent with its tools, on or off, why, and where that was decided."""
        from toolyard.plugins.plugin_status import standings

        loaded = self._known()
        return list(standings(loaded.agent(agent).catalog, loaded.configuration.document))

    def sandbox_report(self) -> SandboxReport | None:
        """What keeps the processes of tools in, property by property, and why; None when it is off."""
        sandbox = self._known().crews.tools.sandbox
        return sandbox.report() if sandbox else None

    def origin(self, name: str, agent: str | None = None) -> str:
        """The file that a tool comes from."""
        return self._known().agent(agent).catalog.file_of(name)

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | str,
        *,
        agent: str | None = None,
        call_id: str | None = None,
        on_event: Observer | None = None,
    ) -> ToolResult:
        """Call a tool along the whole path; `on_event` hears of everything that happens on it."""
        loaded = await self._current()
        call = ToolCall(id=call_id or self._new_call_id(), name=name, arguments=arguments)
        tools = loaded.agent(agent)
        return await tools.invoker.call(call, self._settings(loaded, agent, tools), on_event)

    async def call_tools(
        self,
        calls: Iterable[ToolCall],
        *,
        agent: str | None = None,
        on_event: Observer | None = None,
        cancelled: asyncio.Event | None = None,
    ) -> dict[str, ToolResult]:
        """Take the calls of one model turn; one result for each call id, in the order of the calls."""
        loaded = await self._current()
        tools = loaded.agent(agent)
        settings = self._settings(loaded, agent, tools)
        return await tools.invoker.call_all(calls, settings, on_event, cancelled=cancelled)

    async def preview_tool(
        self, name: str, arguments: JsonObject | str, *, agent: str | None = None
    ) -> str | ToolResult:
        """What a call would do, in a line; a result instead when the call could not even begin."""
        loaded = await self._current()
        call = ToolCall(id=self._new_call_id(), name=name, arguments=arguments)
        tools = loaded.agent(agent)
        return await tools.invoker.preview(call, self._settings(loaded, agent, tools))

    async def system_message(self, agent: str | None = None) -> Contribution:
        """The system message that the agent's plugins make for a request, in `text`."""
        loaded = await self._current()
        agent = agent or loaded.default_agent()
        return await self._features(loaded, agent).system_message(loaded.configuration.for_agent(agent))

    async def request_options(self, agent: str | None = None) -> Contribution:
        """The options that the agent's plugins give to a request, in `options`."""
        loaded = await self._current()
        agent = agent or loaded.default_agent()
        return await self._features(loaded, agent).request_options(loaded.configuration.for_agent(agent))

    async def ui_elements(
        self, agent: str | None = None, *, tags: Sequence[str] = (), models: Sequence[str] = ()
    ) -> Contribution:
        """The controls that the agent's plugins offer to a person, in `elements`."""
        loaded = await self._current()
        agent = agent or loaded.default_agent()
        features = self._features(loaded, agent, tags=tags, models=models)
        return await features.ui_elements(loaded.configuration.for_agent(agent))

    async def reload(self) -> None:
        """Read the configuration again: what is unchanged keeps its state, and an unreadable one changes nothing."""
        async with self._reloading:
            await self._reload()

    async def refresh_plugins(self, names: Collection[str] = ()) -> list[RepositoryNow]:
        """Fetch git repositories again, all or those of these names or plugins, and load what changed."""
        from toolyard.plugins.acquire.refetch import fetch_again, repositories_of

        loaded = await self._current()
        document = loaded.configuration.document
        repositories = repositories_of(loaded.sources(), document)
        known = {name for repository in repositories for name in repository.names}
        if unknown := [name for name in names if name not in known]:
            raise UnknownPlugin(f"no repository is called or has '{unknown[0]}'; known: {', '.join(sorted(known))}")
        wanted = [one for one in repositories if not names or set(names).intersection(one.names)]
        workshops = Workshops(loaded.configuration, loaded.crews, self._caches)
        found = await fetch_again(wanted, workshops.python.acquirer, document)
        await self.reload()
        return found

    def watch(self, *, seconds: float = 0.5) -> AsyncIterator[None]:
        """Look for changes from now on, again and again; gives a turn after each, when it has taken effect."""
        return self._watch(self._known().state(), seconds)

    async def _watch(self, seen: object, seconds: float) -> AsyncIterator[None]:
        while True:
            await asyncio.sleep(seconds)
            await self.refresh()
            if (now := (await self._current()).state()) != seen:
                seen = now
                yield

    async def _reload(self) -> None:
        if self._loaded is None:
            raise ApplicationClosed("the application is not open")
        before = self._loaded
        after = await self._load(before)
        if self._stays_despite(after.configuration):
            before.keep_despite(after)
        else:
            self._loaded = after
            await before.aclose(except_for=after)
        await self._quarters.retire(except_for=self._loaded.crews)

    async def refresh(self) -> None:
        """Look at the configuration and every tool file again."""
        loaded = await self._current()
        await loaded.refresh()

    async def _current(self) -> Loaded:
        if self._loaded is None:
            raise ApplicationClosed("the application is not open: use it with `async with`")
        if self._loaded.is_stale():
            async with self._reloading:
                if self._loaded and self._loaded.is_stale():
                    await self._reload()
        await self._loaded.crews.tools.choose_sandbox()
        return self._loaded

    async def _load(self, before: Loaded | None = None) -> Loaded:
        configuration = read_configuration(self._config_path, self._names())
        crews = self._quarters.crews(configuration, before.crews if before else None)
        if self._caches.schemas.is_empty and configuration.loads_bash_tools:
            await crews.tools.choose_sandbox()
            crews.tools.start()  # every schema will have to be read: let it start while we look for them
        redactor = self._redactor(configuration)
        loaded = Loaded(
            configuration,
            Loader(
                configuration.policy, Workshops(configuration, crews, self._caches), before.kept() if before else {}
            ),
            self._invoker_maker(configuration, redactor, crews.tools.sandbox),
            crews=crews,
            redactor=redactor,
            session=self._session,
            metadata=self._metadata,
            only=shell_entries(configuration.value.get("plugins"), self._only) if self._only else None,
        )
        await loaded.refresh()
        self._caches.save()
        told = [problem for problem in self._said if not problem.code.startswith("sandbox_")]
        self._said = [*told, *self._quarters.problems(configuration, crews)]
        return loaded

    def _known(self) -> Loaded:
        return self._loaded or self._load_apart()

    def _load_apart(self) -> Loaded:
        """Load without an open application: in a loop and with processes of its own, ended before this returns."""
        if self._apart is not None:
            return self._apart

        async def load() -> Loaded:
            try:
                return await self._load()
            finally:
                await self._quarters.aclose()
                self._quarters = self._new_quarters()

        # A thread, because the caller may be inside a running event loop.
        with ThreadPoolExecutor(1) as thread:
            self._apart = thread.submit(asyncio.run, load()).result()
        return self._apart

    def _new_quarters(self) -> Quarters:
        return Quarters(
            sessions=self._sessions_dir, cache=self._caches.folder, audit=self._audit, session=self._session
        )

    def _redactor(self, configuration: Configuration) -> Redactor:
        return Redactor(process_secrets() | long_values(self._config_env) | dict(config_secrets(configuration.value)))

    def _invoker_maker(
        self, configuration: Configuration, redactor: Redactor, sandbox: Sandbox | None
    ) -> Callable[[Catalog], Invoker]:
        """What makes the invoker of each agent, with all that they share."""
        permissions = self._permissions or self._policy(configuration)
        if not self._stays_despite(configuration):
            self._audit.policy = configuration.audit

        def make(catalog: Catalog) -> Invoker:
            return Invoker(
                tools=catalog,
                audit=self._audit,
                redactor=redactor,
                permissions=permissions,
                approver=self._approver,
                sandbox=sandbox,
            )

        return make

    def _policy(self, configuration: Configuration) -> RulePolicy:
        """The rules; one policy for all configurations that are read, since it knows what was answered meanwhile."""
        damage = () if configuration.readable else configuration.problems
        sections = Sections(configuration.value, configuration.document, damage)
        if self._rules is None:
            self._rules = RulePolicy(sections, self._grants, protected=(str(self._config_path),))
        if not self._stays_despite(configuration):
            self._rules.sections = sections
        return self._rules

    def _stays_despite(self, configuration: Configuration) -> bool:
        """Whether what is in use stays in use, with its rules, since what was read is nothing to go by."""
        return self._loaded is not None and self._loaded.configuration.readable and not configuration.readable

    def _say_audit(self, message: str) -> None:
        hint = "free space or mend the folder's permissions"
        self._said.append(
            Problem(
                code="audit_unwritable", message=message, hint=hint, where=Position(file=self._sessions_dir / "audit")
            )
        )

    def _settings(self, loaded: Loaded, agent: str | None, tools: AgentTools) -> CallSettings:
        """The conditions of a call, made anew only when the working directory has changed."""
        here = os.getcwd()
        if tools.settings is None or tools.settings[0] != here:
            agent = agent or loaded.default_agent()
            output = loaded.configuration.output_of(agent)
            config = loaded.configuration.for_agent(agent)
            folder = config.get("working_directory")
            settings = CallSettings(
                session=self._session,
                agent=agent,
                cwd=Path(here),
                workspace=Path(here, folder) if isinstance(folder, str) else Path(here),
                config=config,
                output_limit=output.limit_bytes,
                spill_folder=self._sessions_dir / "outputs" if output.spill else None,
            )
            tools.settings = (here, settings)
        return tools.settings[1]

    def _features(
        self, loaded: Loaded, agent: str, *, tags: Sequence[str] = (), models: Sequence[str] = ()
    ) -> Features:
        from toolyard.agents.request import Features
        from toolyard.plugins.contract import FeatureContext

        document = loaded.configuration.document
        context = FeatureContext(
            agent=agent, cwd=Path.cwd(), config_dir=Path(document.folder), tags=tuple(tags), models=tuple(models)
        )
        catalog = loaded.agent(agent).catalog
        plugins = [found.plugin for id, found in catalog.plugins.items() if catalog.decisions[id].on]
        limit = loaded.configuration.policy.python_timeout_seconds
        return Features(plugins, context, document.path, limit=limit)

    def _new_call_id(self) -> str:
        return f"call_{self._session}_{next(self._numbers)}"

    def _names(self) -> Names:
        return Names(
            config_env=self._config_env,
            overrides=self._overrides,
            builtin=builtin_names(self._config_path, Path.cwd()),
            process=os.environ,
        )


def shell_entries(entries: Json, word: str) -> list[Json]:
    """The entry for the shell as the configuration has it, or else the plain one."""
    key = word.replace(":", "_")
    listed = entries if isinstance(entries, list) else []
    named = [entry for entry in listed if entry == word or (isinstance(entry, dict) and key in entry)]
    return named[:1] or [word]


def default_cache_dir() -> Path:
    """The user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "toolyard"


def long_values(names: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in names.items() if len(value) >= SHORTEST_SECRET}


def config_secrets(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The strings of a configuration whose keys say that they are secret."""
    match value:
        case dict():
            for key, item in value.items():
                if key not in ("plugins", "plugin_policy"):
                    yield from config_secrets(item, str(key))
        case list():
            for item in value:
                yield from config_secrets(item, name)
        case str() if len(value) >= SHORTEST_SECRET and looks_like_credential(name, value):
            yield name, value
