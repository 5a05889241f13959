"""AgentApplication: one configuration, its tools, and the one path to call them."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from toolyard.config.configuration import Configuration, builtin_names, read_configuration
from toolyard.config.placeholders import Names
from toolyard.config.problems import ConfigProblem, Position, sort_problems
from toolyard.core.formats import export
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.errors import ApplicationClosed
from toolyard.kinds.bash_schema_cache import SchemaCache
from toolyard.kinds.bash_workshop import BashConditions, BashWorkshop, find_bash
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import Sections
from toolyard.plugins.bash_source import stamp_of
from toolyard.plugins.catalog import Catalog
from toolyard.plugins.loader import Loader
from toolyard.process.child import Children
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential, process_secrets
from toolyard.process.limits import Limits
from toolyard.runtime.audit import NdjsonAudit
from toolyard.runtime.invoke import CallSettings, Invoker
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from toolyard.core.events import Observer
    from toolyard.core.tool import Json, JsonObject, Tool, ToolSpec, WireFormat
    from toolyard.permissions.verdict import Approver, PermissionPolicy

__all__ = ["AgentApplication"]


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
        self._cache = SchemaCache(Path(cache_dir or default_cache_dir()) / "bash-schemas.json")
        self._numbers = itertools.count(1)
        self._said: list[ConfigProblem] = []
        self._loaded: Loaded | None = None
        self._apart: Loaded | None = None
        self._children: Children | None = None
        self._reloading = asyncio.Lock()
        self._audit = NdjsonAudit(self._sessions_dir / "audit", on_failure=self._say_audit)
        os.environ.update(self._overrides)

    async def __aenter__(self) -> AgentApplication:
        self._children = Children()
        self._loaded = await self._load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loaded, self._loaded = self._loaded, None
        children, self._children = self._children, None
        if loaded:
            await loaded.aclose()
        if children:
            await children.aclose()
        self._audit.close()

    def get_config_errors(self) -> list[dict[str, str | int | None]]:
        """Every problem known now: type, detail, file, line, column, hint and severity."""
        return [problem.as_mapping() for problem in self.problems()]

    def problems(self) -> list[ConfigProblem]:
        """Every problem known now, sorted."""
        loaded = self._loaded or self._load_apart()
        return sort_problems([*loaded.problems(), *self._said, *(self._rules.problems() if self._rules else ())])

    def agents(self) -> list[str]:
        """The names of the configured agents."""
        return (self._loaded or self._load_apart()).configuration.agents()

    @overload
    def tool_specs(self, agent: str = ..., *, format: None = ...) -> list[ToolSpec]: ...
    @overload
    def tool_specs(self, agent: str = ..., *, format: WireFormat) -> list[JsonObject]: ...
    def tool_specs(
        self, agent: str = "default", *, format: WireFormat | None = None
    ) -> list[ToolSpec] | list[JsonObject]:
        """What an agent has, as specs or in a wire format."""
        specs = [tool.spec for tool in self.tools(agent)]
        return specs if format is None else list(export(specs, format).tools)

    def tools(self, agent: str = "default") -> Sequence[Tool]:  # noqa: ARG002 - every agent has the same tools here
        """The tools of an agent, in the order of the configuration."""
        return (self._loaded or self._load_apart()).catalog.tools()

    def origin(self, name: str) -> str:
        """The file that a tool comes from."""
        return (self._loaded or self._load_apart()).catalog.file_of(name)

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | str,
        *,
        agent: str = "default",
        call_id: str | None = None,
        on_event: Observer | None = None,
    ) -> ToolResult:
        """Call a tool along the whole path; `on_event` hears of everything that happens on it."""
        loaded = await self._current()
        call = ToolCall(id=call_id or self._new_call_id(), name=name, arguments=arguments)
        return await loaded.invoker.call(call, self._settings(loaded, agent), on_event)

    async def call_tools(
        self,
        calls: Iterable[ToolCall],
        *,
        agent: str = "default",
        on_event: Observer | None = None,
        cancelled: asyncio.Event | None = None,
    ) -> dict[str, ToolResult]:
        """Take the calls of one model turn; one result for each call id, in the order of the calls."""
        loaded = await self._current()
        return await loaded.invoker.call_all(calls, self._settings(loaded, agent), on_event, cancelled=cancelled)

    async def preview_tool(self, name: str, arguments: JsonObject | str, *, agent: str = "default") -> str | ToolResult:
        """What a call would do, in a line; a result instead when the call could not even begin."""
        loaded = await self._current()
        call = ToolCall(id=self._new_call_id(), name=name, arguments=arguments)
        return await loaded.invoker.preview(call, self._settings(loaded, agent))

    async def reload(self) -> None:
        """Read the configuration again; one that cannot be read keeps the running one and is reported."""
        if self._loaded is None:
            raise ApplicationClosed("the application is not open")
        before = self._loaded
        after = await self._load(before)
        if not after.configuration.readable and before.configuration.readable:
            before.take_over_stamps(after)
        else:
            self._loaded = after
            await before.aclose(except_for=after)

    async def refresh(self) -> None:
        """Look at the configuration and every tool file again."""
        loaded = await self._current()
        await loaded.catalog.refresh()

    async def _current(self) -> Loaded:
        if self._loaded is None:
            raise ApplicationClosed("the application is not open: use it with `async with`")
        if self._loaded.is_stale():
            async with self._reloading:
                if self._loaded and self._loaded.is_stale():
                    await self.reload()
        return self._loaded

    async def _load(self, before: Loaded | None = None) -> Loaded:
        configuration = read_configuration(self._config_path, self._names())
        workshop = self._workshop(configuration)
        if workshop and self._cache.is_empty and configuration.loads_bash_tools:
            workshop.children.start()  # every schema will have to be read: let it start while we look for them
        loader = Loader(configuration.policy, workshop)
        kept = before.catalog.sources() if before else ()
        entries = configuration.value.get("plugins")
        if self._only:
            entries = shell_entries(entries, self._only)
        catalog = Catalog(loader.sources(entries, configuration.document, kept))
        await catalog.refresh()
        self._cache.save()
        return Loaded(configuration, loader, catalog, self._invoker(configuration, catalog))

    def _load_apart(self) -> Loaded:
        """Load without an open application: in a loop and with processes of its own, ended before this returns."""
        if self._apart is not None:
            return self._apart

        async def load() -> Loaded:
            self._children = Children()
            try:
                return await self._load()
            finally:
                await self._children.aclose()
                self._children = None

        # A thread, because the caller may be inside a running event loop.
        with ThreadPoolExecutor(1) as thread:
            self._apart = thread.submit(asyncio.run, load()).result()
        return self._apart

    def _workshop(self, configuration: Configuration) -> BashWorkshop | None:
        bash = find_bash()
        if bash is None or self._children is None:
            return None
        policy, limits = configuration.policy, configuration.limits
        conditions = BashConditions(
            timeout=policy.bash_timeout_seconds,
            error_timeout=policy.bash_error_timeout_seconds,
            stream_stderr=policy.bash_stream_stderr,
            pass_env=tuple(policy.pass_env),
            limits=Limits(
                cpu_seconds=limits.cpu_seconds,
                memory_bytes=limits.memory_bytes,
                file_bytes=limits.file_bytes,
                open_files=limits.open_files,
                processes=limits.processes,
                output_bytes=limits.output_bytes,
            ),
        )
        return BashWorkshop(bash=bash, children=self._children, conditions=conditions, cache=self._cache)

    def _invoker(self, configuration: Configuration, catalog: Catalog) -> Invoker:
        self._audit.policy = configuration.audit
        secrets = process_secrets() | long_values(self._config_env) | dict(config_secrets(configuration.value))
        return Invoker(
            tools=catalog,
            audit=self._audit,
            redactor=Redactor(secrets),
            permissions=self._permissions or self._policy(configuration),
            approver=self._approver,
        )

    def _policy(self, configuration: Configuration) -> RulePolicy:
        """The rules; one policy for all configurations that are read, since it knows what was answered meanwhile."""
        sections = Sections(configuration.value, configuration.document)
        if self._rules is None:
            self._rules = RulePolicy(sections, self._grants, protected=(str(self._config_path),))
        self._rules.sections = sections
        return self._rules

    def _say_audit(self, message: str) -> None:
        hint = "free space or mend the folder's permissions"
        self._said.append(
            ConfigProblem(
                code="audit_unwritable", message=message, hint=hint, where=Position(file=self._sessions_dir / "audit")
            )
        )

    def _settings(self, loaded: Loaded, agent: str) -> CallSettings:
        """The conditions of a call, made anew only when the working directory has changed."""
        here = os.getcwd()
        known = loaded.settings.get(agent)
        if known is None or known[0] != here:
            output = loaded.configuration.output
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
            known = loaded.settings[agent] = (here, settings)
        return known[1]

    def _new_call_id(self) -> str:
        return f"call_{self._session}_{next(self._numbers)}"

    def _names(self) -> Names:
        return Names(
            config_env=self._config_env,
            overrides=self._overrides,
            builtin=builtin_names(self._config_path, Path.cwd()),
            process=os.environ,
        )


class Loaded:
    """A configuration with everything that came of it."""

    def __init__(self, configuration: Configuration, loader: Loader, catalog: Catalog, invoker: Invoker) -> None:
        self.configuration = configuration
        self.catalog = catalog
        self.invoker = invoker
        self._loader = loader
        self._broken_edit: tuple[ConfigProblem, ...] = ()
        config = str(configuration.document.path)
        self._stamps = {config: stamp_of(config), **loader.watched}
        self.settings: dict[str, tuple[str, CallSettings]] = {}
        """For each agent the settings of its calls, with the working directory they were made for."""

    def problems(self) -> list[ConfigProblem]:
        """What is wrong with the configuration and with what it names."""
        permissions = Sections(self.configuration.value, self.configuration.document)
        return [
            *self.configuration.problems,
            *self._broken_edit,
            *permissions.problems(self.configuration.agents()),
            *self._loader.problems,
            *self.catalog.problems,
        ]

    def is_stale(self) -> bool:
        """Whether the configuration or a descriptor was written since."""
        for path, stamp in self._stamps.items():  # noqa: SIM110 - asked at every call, and a generator costs more
            if stamp_of(path) != stamp:
                return True
        return False

    def take_over_stamps(self, broken: Loaded) -> None:
        """An edit broke the configuration: go on with this one, and say so, until the next edit."""
        self._stamps |= broken._stamps
        self._broken_edit = tuple(
            ConfigProblem(
                code=problem.code,
                message=f"{problem.message}; the last good configuration stays in use",
                hint=problem.hint,
                where=problem.where,
            )
            for problem in broken.configuration.problems
        )

    async def aclose(self, *, except_for: Loaded | None = None) -> None:
        """Close the sources that nobody uses any more."""
        kept = except_for.catalog.sources() if except_for else ()
        for source in self.catalog.sources():
            if source not in kept:
                await source.aclose()


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
