"""An application from its opening to its end: loading, reloading, and what outlives both."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import replace

from toolyard.config.configuration import Configuration, builtin_names, in_memory, read_configuration
from toolyard.config.document import Document
from toolyard.config.placeholders import Names
from toolyard.core.problems import Position, Problem, sort_problems
from toolyard.errors import ApplicationClosed, UnknownPlugin
from toolyard.files.accepted import digest_of, how_to_accept, why_not_obeyed
from toolyard.files.working_folder import working_folder
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import PRESETS, Sections
from toolyard.plugins.entries import read_entries, read_only, settings_of, stands_for
from toolyard.plugins.host import Caches, Host
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential, process_secrets
from toolyard.runtime.audit.log import NdjsonAudit
from toolyard.runtime.call import CallPath, CallSettings
from toolyard.runtime.loaded import Loaded
from toolyard.runtime.process_pools import ProcessPools
from toolyard.runtime.redaction import Redactor
from toolyard.runtime.sandbox_policy import SandboxInputs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.catalog import Catalog
    from toolyard.plugins.entries import Entries, Entry
    from toolyard.plugins.kind import Kind
    from toolyard.process.sandbox.proxy import HostAnswer
    from toolyard.runtime.host_questions import HostQuestions

log = logging.getLogger("toolyard.audit")


class ApplicationOptions(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self, options: ApplicationOptions) -> None:
        self.options = options
        self.loaded: Loaded | None = None
        self._apart: Loaded | None = None
        self._problems: list[Problem] = []
        """Of the sandbox, beside those of what is loaded."""
        self._caches = Caches(options.cache)
        self._grants = GrantStore(default_grants_file())
        self._rules: RulePolicy | None = None
        self._host_questions: HostQuestions | None = None
        self._reloading = asyncio.Lock()
        self._audit = NdjsonAudit(options.sessions / "audit", on_failure=log.error)
        self._pools = self._new_pools()
        self._environment = EnvironmentOverrides(options.env_overrides)

    async def open(self) -> None:
        """Load everything; from now on the process has the variables that were asked for."""
        self._environment.install()
        try:
            self.loaded = await self._load()
        except BaseException:  # whoever enters in vain never leaves
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End every process, and leave the environment as it was found, whatever fails on the way."""
        loaded, self.loaded = self.loaded, None
        async with AsyncExitStack() as last_first:
            last_first.callback(self._environment.restore)
            last_first.callback(self._audit.close)
            last_first.push_async_callback(self._pools.aclose)
            if loaded:
                last_first.push_async_callback(loaded.aclose)

    async def current(self) -> Loaded:
        """What is loaded, after a reload if something changed that asks for one."""
        if self._opened().is_stale():
            # All that notice an edit at the same time wait here; the first of them reloads, for the others too.
            async with self._reloading:
                if self._opened().is_stale():
                    await self._reload()
        loaded = self._opened()
        await loaded.host.children("work").choose_sandbox()
        return loaded

    def known(self) -> Loaded:
        """What is loaded; without an open application, what a first look finds."""
        return self.loaded or self._load_apart()

    async def reload(self) -> None:
        """Read the configuration again: what is unchanged keeps its state, and an unreadable one changes nothing."""
        async with self._reloading:
            await self._reload()

    async def refetch(self, names: Collection[str]) -> list[RepositoryNow]:
        """Fetch git repositories again, all or those of these names or plugins, and load what changed."""
        from toolyard.plugins.acquire.refetch import fetch_again, repositories_of

        loaded = await self.current()
        repositories = repositories_of((one.reference, one.source) for one in loaded.sources())
        known = {name for repository in repositories for name in repository.names}
        if unknown := [name for name in names if name not in known]:
            raise UnknownPlugin(f"no repository is called or has '{unknown[0]}'; known: {', '.join(sorted(known))}")
        wanted = [one for one in repositories if not names or set(names).intersection(one.names)]
        found = [await fetch_again(repository, loaded.host.fetcher) for repository in wanted]
        await self.reload()
        return found

    def problems(self) -> list[Problem]:
        """Every problem known now, sorted, without secrets."""
        loaded, rules = self.known(), self._rules
        permitting = [*rules.problems(), *rules.sections.problems(loaded.configuration.agents())] if rules else []
        problems = loaded.problems()
        places = {problem.where for problem in problems if problem.code == "permissions_rule"}
        problems += [*self._problems, *self._audit_problems()]
        problems += [problem for problem in permitting if problem.where not in places]
        redact = self._redactor(loaded.configuration).redact
        return [
            replace(one, message=redact(one.message), hint=one.hint and redact(one.hint))
            for one in sort_problems(problems)
        ]

    async def for_call(self, agent: str | None, session: str | None = None) -> tuple[CallPath, CallSettings]:
        """The path of an agent's calls, and their conditions, made anew only when the working directory has changed."""
        loaded, options = await self.current(), self.options
        tools = loaded.agent(agent)
        key = (working_folder(), session or options.session)
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
        return tools.calls, made

    def set_preset(self, preset: Preset | None, session: str | None) -> None:
        """Give a conversation another preset than the configuration does."""
        if preset is not None and preset not in PRESETS:
            raise ValueError(f"there is no preset '{preset}'; there are {', '.join(PRESETS)}")
        if self._rules is None:
            self._rules = self._policy(self.known().configuration)
        self._rules.set_preset(session or self.options.session, preset)

    async def end_session(self, session: str) -> None:
        if self._rules:
            self._rules.end_session(session)
        if self.loaded:
            await self.loaded.end_session(session)

    async def _reload(self) -> None:
        before = self._opened()
        after = await self._load(before)
        if self._stays_despite(after.configuration):
            before.keep_despite(after)
        else:
            # New calls find the new sources from here on; only then are those closed that nobody took over.
            self.loaded = after
            await before.aclose(except_for=after)
        # At last the processes, which calls under way and sources that were just closed still needed.
        await self._pools.retire(except_for=self._opened().host.processes)

    def _opened(self) -> Loaded:
        if self.loaded is None:
            raise ApplicationClosed("the application is not open: use it with `async with`")
        return self.loaded

    async def _load(self, before: Loaded | None = None) -> Loaded:
        """Read the configuration and all that it names.

        The order matters: what entries name is known first, then what of it tools must not write, then the sandbox is
        built around that, and only then is anything read, run or imported.
        """
        options = self.options
        self._pools.note_rest()
        configuration = self._read(before)
        named = read_entries(configuration, options.kinds)
        # Also where only one entry is loaded, tools must not write what all others name: it is obeyed another time.
        inputs = self._sandbox_inputs(configuration, named)
        entries = read_only(options.only, configuration, options.kinds) if options.only else named
        for agent in entries.by_agent.values():
            agent.extend(options.given)
        processes = self._pools.open(inputs, before.host.processes if before else None)
        if options.only and not before:
            # Its one tool is about to be used: let the keeper start while the rest is imported and read.
            processes.children[likely_reach(configuration)].start()
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
        try:
            await loaded.refresh()
        except BaseException:  # cancelled: what was opened on the way has no other owner
            await loaded.aclose(except_for=before)
            raise
        self._caches.save()
        self._problems = list(self._pools.problems(inputs, processes))
        return loaded

    def _read(self, before: Loaded | None) -> Configuration:
        """The configuration; one that tools may have written is not obeyed until a person accepts it."""
        options, settings = self.options, settings_of(self.options.kinds)
        if not isinstance(options.config, Path):
            path = options.folder / "<configuration>"
            return in_memory(options.config, path, self._names(path), settings)
        read = read_configuration(options.config, self._names(options.config), settings, stands_for(options.kinds))
        text = (read.written or read.document).text
        why = why_not_obeyed(str(options.config), digest_of(text.encode())) if read.readable else None
        if why is None:
            return read
        hint = how_to_accept(str(options.config))
        problem = Problem(code="config_not_accepted", message=why, hint=hint, where=Position(file=options.config))
        if before and before.configuration.readable:
            return unchanged_but_for(before.configuration, problem)
        nothing = Document(options.config, "{}", {})
        return Configuration(document=nothing, value={}, policy=settings.policy(), problems=(problem,), readable=False)

    def _sandbox_inputs(self, configuration: Configuration, named: Entries) -> SandboxInputs:
        options = self.options
        plugin_cache = configuration.plugin_cache(options.cache)
        policy, folder = configuration.policy, configuration.document.folder
        own = [store for kind in options.kinds for store in kind.stores(policy, plugin_cache, folder)]
        return SandboxInputs(
            configuration=configuration,
            references=named.references(),
            guessed=named.guessed,
            sessions=options.sessions,
            stores=[str(options.cache), str(plugin_cache), *own],
            cwd=working_folder(),
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
        return ProcessPools(audit=self._audit, session=self.options.session, ask_host=self._ask_host)

    async def _ask_host(self, host: str, port: int) -> HostAnswer:
        """Somebody in the sandbox wants to reach a host that is not named."""
        from toolyard.runtime.host_questions import HostQuestions, nobody_to_ask

        options, loaded = self.options, self.loaded
        if options.approver is None or loaded is None:
            return nobody_to_ask()
        if self._host_questions is None:
            self._host_questions = HostQuestions(
                self._rules or self._policy(loaded.configuration),
                options.approver,
                agent=loaded.default_agent(),
                session=options.session,
                workspace=Path(working_folder()),
            )
        return await self._host_questions.decide(host, port)

    def _redactor(self, configuration: Configuration) -> Redactor:
        given = process_secrets(self.options.config_env)
        return Redactor(process_secrets() | given | dict(config_secrets(configuration.value)))

    def _path_maker(self, host: Host) -> Callable[[Catalog], CallPath]:
        """What makes the call path of each agent, with all that they share."""
        configuration, options = host.configuration, self.options
        permissions = options.permissions or self._policy(configuration)
        redactor = self._redactor(configuration)
        sandboxes = {reach: children.sandbox for reach, children in host.processes.children.items()}
        if not self._stays_despite(configuration):
            self._audit.policy = configuration.audit

        def make(catalog: Catalog) -> CallPath:
            return CallPath(
                tools=catalog,
                audit=self._audit,
                redactor=redactor,
                permissions=permissions,
                approver=options.approver,
                sandboxes=sandboxes,
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

    def _audit_problems(self) -> Iterator[Problem]:
        """That calls cannot be recorded, as long as they cannot."""
        if self._audit.trouble:
            where = Position(file=self._audit.folder)
            hint = "free space or mend the folder's permissions"
            yield Problem(code="audit_unwritable", message=self._audit.trouble, hint=hint, where=where)

    def _names(self, path: Path) -> Names:
        return Names(
            config_env=self.options.config_env,
            overrides=self.options.env_overrides,
            builtin=builtin_names(path, Path(working_folder())),
            process=os.environ,
        )


class EnvironmentOverrides:
    """Variables that the process has while an application is open.

    Applications may overlap in time and end in any order, so each knows what its variables stand in front of, and hands
    that on to the one that stands in front of it.
    """

    _lock = threading.Lock()
    _in_order: ClassVar[list[EnvironmentOverrides]] = []
    """All that are installed in this process, the latest last."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._before: dict[str, str | None] = {}

    def install(self) -> None:
        """Set them, and remember what was there."""
        with self._lock:
            if self not in self._in_order:
                self._in_order.append(self)
                self._before = {name: os.environ.get(name) for name in self._values}
                os.environ.update(self._values)

    def restore(self) -> None:
        """Put back what was there, or what others want that are still open; what somebody else has set since stays."""
        with self._lock:
            if self not in self._in_order:
                return
            later = self._in_order[self._in_order.index(self) + 1 :]
            self._in_order.remove(self)
            for name, own in self._values.items():
                in_front = next((one._before for one in later if name in one._values), None)
                if in_front is None and os.environ.get(name) == own:
                    set_variable(name, self._before[name])
                elif in_front is not None and in_front[name] == own:
                    in_front[name] = self._before[name]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The same for a moment; for nobody, if they are installed already."""
        already = self in self._in_order
        self.install()
        try:
            yield
        finally:
            if not already:
                self.restore()


def unchanged_but_for(before: Configuration, problem: Problem) -> Configuration:
    """The configuration that was in use, with the reason why it still is."""
    others = [one for one in before.problems if one.code != problem.code]
    message = f"{problem.message}; the last good configuration stays in use"
    return replace(before, problems=(*others, replace(problem, message=message)))


def set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def likely_reach(configuration: Configuration) -> Reach:
    """How far most calls of the configuration will reach."""
    section = configuration.value.get("permissions")
    return "look" if isinstance(section, dict) and section.get("preset") == "read-only" else "work"


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
