"""An application from its opening to its end: loading, reloading, and what outlives both.

The order of loading matters: what entries name is known first, then what of it tools must not write, then the sandbox
is built around that, and only then is anything read, run or imported.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import replace

from toolyard.config.configuration import builtin_names, in_memory, read_configuration
from toolyard.config.placeholders import Names
from toolyard.core.problems import Position, Problem, sort_problems
from toolyard.errors import ApplicationClosed
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import Sections
from toolyard.plugins.entries import Entries, read_entries, settings_of, stands_for
from toolyard.plugins.host import Caches, Host
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential, process_secrets
from toolyard.runtime.audit.log import NdjsonAudit
from toolyard.runtime.call import CallPath, CallSettings
from toolyard.runtime.loaded import Loaded
from toolyard.runtime.process_pools import ProcessPools
from toolyard.runtime.redaction import Redactor
from toolyard.runtime.sandbox_policy import SandboxInputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import JsonObject
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.plugins.catalog import Catalog
    from toolyard.plugins.entries import Entry
    from toolyard.plugins.kind import Kind
    from toolyard.runtime.loaded import AgentTools


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an application was made with."""

    config: Path | JsonObject
    folder: Path
    """Where relative paths of a configuration start that is no file."""
    sessions: Path
    cache: Path
    kinds: tuple[Kind, ...]
    env_overrides: Mapping[str, str]
    config_env: Mapping[str, str]
    session: str
    session_metadata: JsonObject
    permissions: PermissionPolicy | None = None
    approver: Approver | None = None
    only: str | None = None
    """The one entry to load, instead of all."""
    given: Sequence[Entry] = ()
    """Tools that come from no configuration; every agent has them."""


class Lifecycle:
    """Keeps what is loaded up to date, and ends everything at the end."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.loaded: Loaded | None = None
        self._apart: Loaded | None = None
        self._problems: list[Problem] = []
        """Of the audit log and the sandbox, beside those of what is loaded."""
        self._caches = Caches(options.cache)
        self._grants = GrantStore(default_grants_file())
        self._rules: RulePolicy | None = None
        self._reloading = asyncio.Lock()
        self._audit = NdjsonAudit(options.sessions / "audit", on_failure=self._say_audit)
        self._pools = self._new_pools()
        self._environment = EnvironmentOverrides(options.env_overrides)

    async def open(self) -> None:
        """Load everything; from now on the process has the variables that were asked for."""
        self._environment.install()
        try:
            self.loaded = await self._load()
        except BaseException:  # nobody leaves what was never entered
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End every process, and leave the environment as it was found."""
        loaded, self.loaded = self.loaded, None
        try:
            if loaded:
                await loaded.aclose()
            await self._pools.aclose()
            self._audit.close()
        finally:
            self._environment.restore()

    async def current(self) -> Loaded:
        """What is loaded, after a reload if something changed that asks for one."""
        if self.loaded is None:
            raise ApplicationClosed("the application is not open: use it with `async with`")
        if self.loaded.is_stale():
            async with self._reloading:
                if self.loaded and self.loaded.is_stale():
                    await self._reload()
        await self.loaded.host.children().choose_sandbox()
        if self.loaded is None:
            raise ApplicationClosed("the application was closed meanwhile")
        return self.loaded

    def known(self) -> Loaded:
        """What is loaded; without an open application, what a first look finds."""
        return self.loaded or self._load_apart()

    async def reload(self) -> None:
        """Read the configuration again: what is unchanged keeps its state, and an unreadable one changes nothing."""
        async with self._reloading:
            await self._reload()

    def problems(self) -> list[Problem]:
        """Every problem known now, sorted, without secrets."""
        loaded, rules = self.known(), self._rules
        permitting = [*rules.problems(), *rules.sections.problems(loaded.configuration.agents())] if rules else []
        told = loaded.problems()
        places = {problem.where for problem in told if problem.code == "permissions_rule"}
        untold = [problem for problem in permitting if problem.where not in places]
        redact = self._redactor(loaded.configuration).redact
        found = sort_problems([*told, *self._problems, *untold])
        return [replace(one, message=redact(one.message), hint=one.hint and redact(one.hint)) for one in found]

    async def call_settings(self, agent: str | None, session: str | None) -> tuple[AgentTools, CallSettings]:
        """The agent's tools, and the conditions of its calls, made anew only when the working directory has changed."""
        loaded, options = await self.current(), self.options
        tools = loaded.agent(agent)
        key = (os.getcwd(), session or options.session)
        if (made := tools.settings.get(key)) is None:
            agent = agent or loaded.default_agent()
            output = loaded.configuration.output_of(agent)
            made = tools.settings[key] = CallSettings(
                session=key[1],
                agent=agent,
                cwd=Path(key[0]),
                config=loaded.configuration.for_agent(agent),
                output_limit=output.limit_bytes,
                spill_folder=options.sessions / "outputs" if output.spill else None,
            )
        return tools, made

    async def end_session(self, session: str) -> None:
        """End what is kept for a conversation."""
        if self.loaded:
            await self.loaded.end_session(session)

    async def _reload(self) -> None:
        if self.loaded is None:
            raise ApplicationClosed("the application is not open")
        before = self.loaded
        after = await self._load(before)
        if self._stays_despite(after.configuration):
            before.keep_despite(after)
        else:
            self.loaded = after
            await before.aclose(except_for=after)
        await self._pools.retire(except_for=self.loaded.host.processes)

    async def _load(self, before: Loaded | None = None) -> Loaded:
        options = self.options
        configuration = self._read()
        entries = read_entries(configuration, options.kinds, options.only)
        self._add_given(entries)
        inputs = self._sandbox_inputs(configuration, entries)
        processes = self._pools.open(inputs, before.host.processes if before else None)
        host = Host(configuration, processes, self._caches)
        loaded = Loaded(
            entries,
            host,
            self._path_maker(host),
            kept=before.kept() if before else None,
            session=options.session,
            metadata=options.session_metadata,
            only_some=options.only is not None,
        )
        await loaded.refresh()
        self._caches.save()
        kept = [problem for problem in self._problems if not problem.code.startswith("sandbox_")]
        self._problems = [*kept, *self._pools.problems(inputs, processes)]
        return loaded

    def _read(self) -> Configuration:
        options, settings = self.options, settings_of(self.options.kinds)
        if not isinstance(options.config, Path):
            path = options.folder / "<configuration>"
            return in_memory(options.config, path, self._names(path), settings)
        return read_configuration(options.config, self._names(options.config), settings, stands_for(options.kinds))

    def _add_given(self, entries: Entries) -> None:
        for named in entries.by_agent.values():
            named.extend(self.options.given)

    def _sandbox_inputs(self, configuration: Configuration, entries: Entries) -> SandboxInputs:
        options = self.options
        plugin_cache = configuration.plugin_cache(options.cache)
        own = [store for kind in options.kinds for store in kind.stores(configuration.policy, plugin_cache)]
        return SandboxInputs(
            configuration=configuration,
            references=entries.references(),
            sessions=options.sessions,
            stores=[str(options.cache), str(plugin_cache), *own],
            cwd=os.getcwd(),
        )

    def _load_apart(self) -> Loaded:
        """Load without an open application: in a loop and with processes of its own, ended before this returns."""
        if self._apart is not None:
            return self._apart

        async def load() -> Loaded:
            try:
                return await self._load()
            finally:
                await self._pools.aclose()
                self._pools = self._new_pools()

        # A thread, because the caller may be inside a running event loop.
        with self._environment.installed(), ThreadPoolExecutor(1) as thread:
            self._apart = thread.submit(asyncio.run, load()).result()
        return self._apart

    def _new_pools(self) -> ProcessPools:
        return ProcessPools(audit=self._audit, session=self.options.session)

    def _redactor(self, configuration: Configuration) -> Redactor:
        given = {name: value for name, value in self.options.config_env.items() if len(value) >= SHORTEST_SECRET}
        return Redactor(process_secrets() | given | dict(config_secrets(configuration.value)))

    def _path_maker(self, host: Host) -> Any:
        """What makes the call path of each agent, with all that they share."""
        configuration, options = host.configuration, self.options
        permissions = options.permissions or self._policy(configuration)
        redactor, sandbox = self._redactor(configuration), host.children().sandbox
        if not self._stays_despite(configuration):
            self._audit.policy = configuration.audit

        def make(catalog: Catalog) -> CallPath:
            return CallPath(
                tools=catalog,
                audit=self._audit,
                redactor=redactor,
                permissions=permissions,
                approver=options.approver,
                sandbox=sandbox,
            )

        return make

    def _policy(self, configuration: Configuration) -> RulePolicy:
        """The rules; one policy for all configurations that are read, since it knows what was answered meanwhile."""
        damage = () if configuration.readable else configuration.problems
        sections = Sections(configuration.value, configuration.document, damage)
        if self._rules is None:
            path = self.options.config
            self._rules = RulePolicy(sections, self._grants, protected=(str(path),) if isinstance(path, Path) else ())
        if not self._stays_despite(configuration):
            self._rules.sections = sections
        return self._rules

    def _stays_despite(self, configuration: Configuration) -> bool:
        """Whether what is in use stays in use, with its rules, since what was read is nothing to go by."""
        return self.loaded is not None and self.loaded.configuration.readable and not configuration.readable

    def _say_audit(self, message: str) -> None:
        where = Position(file=self.options.sessions / "audit")
        hint = "free space or mend the folder's permissions"
        self._problems.append(Problem(code="audit_unwritable", message=message, hint=hint, where=where))

    def _names(self, path: Path) -> Names:
        return Names(
            config_env=self.options.config_env,
            overrides=self.options.env_overrides,
            builtin=builtin_names(path, Path.cwd()),
            process=os.environ,
        )


class EnvironmentOverrides:
    """Variables that the process has while an application is open. Others may open and close in any order meanwhile."""

    _lock = threading.Lock()
    _values: ClassVar[dict[str, list[tuple[EnvironmentOverrides | None, str | None]]]] = {}
    """Of each variable: what it was before, and what those that are open made it, the last one last."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._own = values
        self._is_installed = False

    def install(self) -> None:
        """Set them, and remember what was there."""
        with self._lock:
            if self._is_installed:
                return
            self._is_installed = True
            for name, value in self._own.items():
                self._values.setdefault(name, [(None, os.environ.get(name))]).append((self, value))
                os.environ[name] = value

    def restore(self) -> None:
        """Put back what was there, or what others want that are still open; what somebody else has set since stays."""
        with self._lock:
            for name, value in self._own.items() if self._is_installed else ():
                held = self._values[name]
                was_last = held[-1][0] is self
                held.remove((self, value))
                if was_last and os.environ.get(name) == value:
                    put_back(name, held[-1][1])
                if len(held) == 1:
                    del self._values[name]
            self._is_installed = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The same for a moment; for nobody, if they are installed already."""
        already = self._is_installed
        self.install()
        try:
            yield
        finally:
            if not already:
                self.restore()


def put_back(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


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
