"""An application from its opening to its end: loading, reloading, and what outlives both."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.config.configuration import Configuration, builtin_names, in_memory, read_configuration
from toolyard.config.document import NOT_ACCEPTED
from toolyard.config.placeholders import Names
from toolyard.core.problems import Position, Problem, sort_problems
from toolyard.errors import ApplicationClosed, UnknownPlugin
from toolyard.files.own.sessions_folder import SessionsFolder
from toolyard.files.user_folders import records
from toolyard.files.working_folder import working_folder
from toolyard.plugins.entries import read_entries, read_only, settings_of, stands_for
from toolyard.plugins.host import Caches, Host
from toolyard.plugins.loader import close_all
from toolyard.runtime.audit.log import NdjsonAudit
from toolyard.runtime.environment_overrides import EnvironmentOverrides
from toolyard.runtime.process_pools import ProcessPools
from toolyard.runtime.sandbox_policy import SandboxInputs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from logging import Logger

    from toolyard.config.settings import Preset
    from toolyard.plugins.acquire.refetch import RepositoryNow
    from toolyard.plugins.entries import Entries
    from toolyard.plugins.host import Processes
    from toolyard.plugins.kind import Source
    from toolyard.process.sandbox.network.proxy import HostAnswer, HostRule
    from toolyard.runtime.call_path import CallPath
    from toolyard.runtime.call_paths import CallPaths
    from toolyard.runtime.call_steps.conditions import CallSettings
    from toolyard.runtime.loaded import Loaded
    from toolyard.runtime.options import ApplicationOptions


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before anything that a configuration names is read, run or imported."""

    configuration: Configuration
    entries: Entries
    inputs: SandboxInputs
    processes: Processes


class Lifecycle:
    """Keeps what is loaded up to date, and ends everything at the end."""

    def __init__(self, options: ApplicationOptions) -> None:
        self.options = options
        self.loaded: Loaded | None = None
        self._begun: Begun | None = None
        self._apart: Loaded | None = None
        self._last_begun: Begun | None = None
        self._sandbox_problems: list[Problem] | None = None
        """Those of the sandbox that was begun last, once somebody asked for them: to lay it out takes a while."""
        self._logged: set[Problem] = set()
        """Those of the last loading, which are not logged again by the next."""
        self._leaving: set[asyncio.Future[None]] = set()
        """What closes the sources of configurations before this one."""
        self._caches = Caches(options.cache)
        self.sessions = SessionsFolder(options.sessions)
        self._audit = NdjsonAudit(options.sessions / "audit", on_failure=self._log_audit, begin=self.sessions.use)
        self._pools = self._new_pools()
        self._environment = EnvironmentOverrides(options.env_overrides)

    def begin(self) -> None:
        """Do all of opening that needs no event loop, so that the caller can import one while the keeper starts."""
        self._environment.install()
        self._begun = self._begin()

    async def open(self) -> None:
        """Load everything; from now on the process has the variables that were asked for."""
        self._environment.install()
        begun, self._begun = self._begun, None
        try:
            self.loaded = await self._load(begun or self._begin())
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
            last_first.push_async_callback(self._end_leaving)

    async def current(self) -> Loaded:
        """What is loaded, after a reload if something changed that asks for one."""
        loaded = self._opened()
        if loaded.is_stale():
            # All that notice an edit at the same time wait here; the first of them reloads, for the others too.
            async with self._reloading:
                if self._opened().is_stale():
                    await self._reload()
            loaded = self._opened()
        children = loaded.host.children("work")
        if not children.is_sandbox_chosen:
            await children.choose_sandbox()
        return loaded

    def known(self) -> Loaded:
        """What is loaded; without an open application, what a first look finds."""
        return self.loaded or self._load_apart()

    @cached_property
    def _reloading(self) -> asyncio.Lock:
        return asyncio.Lock()

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
            raise UnknownPlugin(
                f"no repository is called or has '{unknown[0]}'; known: {', '.join(sorted(known)) or 'none'}"
            )
        wanted = [one for one in repositories if not names or set(names).intersection(one.names)]
        found = [await fetch_again(repository, loaded.host.fetcher) for repository in wanted]
        await self.reload()
        return found

    def problems(self, also: Sequence[Problem] = ()) -> list[Problem]:
        """Every problem known now, sorted, without secrets; `also` are those that others found."""
        loaded = self.known()
        permitting = self._paths.problems(loaded.configuration)
        problems = loaded.problems()
        places = {problem.where for problem in problems if problem.code == "permissions_rule"}
        problems += [*also, *self._problems_of_sandbox(), *self._audit_problems()]
        problems += filter(None, [self.sessions.problem()])
        problems += [problem for problem in permitting if problem.where not in places]
        redact = self._paths.redactor(loaded.configuration, loaded.entries).redact_cut
        return [
            replace(one, message=redact(one.message), hint=one.hint and redact(one.hint))
            for one in sort_problems(problems)
        ]

    async def for_call(
        self,
        agent: str | None,
        session: str | None = None,
        chosen: tuple[str, ...] | None = None,
        *,
        in_turn: bool = False,
    ) -> tuple[CallPath, CallSettings]:
        """The path of an agent's calls, and their conditions, made anew only when the working directory has changed.

        In a turn of ours a model has tools of the application beside its own.
        """
        loaded = await self.current()
        tools = loaded.agent(agent, chosen)
        key = (loaded.cwd, session or self.options.session, in_turn)
        if (made := tools.settings.get(key)) is None:
            agent = agent or loaded.default_agent()
            made = tools.settings[key] = self._paths.settings(
                loaded.configuration, agent, key[1], key[0], in_turn=in_turn
            )
        return tools.calls, made

    def set_preset(self, preset: Preset | None, session: str | None) -> None:
        """Give a conversation another preset than the configuration does."""
        self._paths.set_preset(preset, session or self.options.session, self.known().configuration)

    def session_preset(self, session: str | None) -> Preset | None:
        return self._paths.session_preset(session or self.options.session)

    async def end_session(self, session: str) -> None:
        self._paths.end_session(session)
        if self.loaded:
            await self.loaded.end_session(session)

    @cached_property
    def _paths(self) -> CallPaths:
        from toolyard.runtime.call_paths import CallPaths

        return CallPaths(self.options, self._audit, self.sessions)

    async def _reload(self) -> None:
        before = self._opened()
        after = await self._load(self._begin(before), before)
        if self._stays_despite(after.configuration):
            before.keep_despite(after)
        else:
            # New calls find the new sources from here on; those that nobody took over end when their calls have.
            self.loaded = after
            leaving = before.without(after)
            if leaving and before.calls_under_way.there_are_some:
                self._leaving.add(leave := asyncio.ensure_future(self._leave(before, leaving)))
                leave.add_done_callback(self._leaving.discard)
                return
            await close_all(leaving)
        # At last the processes, which calls under way and sources that were just closed still needed.
        await self._pools.retire(except_for=self._opened().host.processes)

    async def _end_leaving(self) -> None:
        """Close what still waited for the end of calls."""
        leaving = list(self._leaving)
        for one in leaving:
            one.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    async def _leave(self, before: Loaded, sources: Sequence[Source]) -> None:
        """Close sources that nobody gets any more when the last call has ended that may be theirs, or with us."""
        try:
            await before.calls_under_way.over()
        finally:
            await close_all(sources)
        await self._pools.retire(except_for=self._opened().host.processes)

    def _opened(self) -> Loaded:
        if self.loaded is None:
            raise ApplicationClosed("the application is not open: use it with `async with`")
        return self.loaded

    def _begin(self, before: Loaded | None = None) -> Begun:
        """Read the configuration and what its entries name, and lay out the sandbox.

        The order matters: what entries name is known first, then what of it tools must not write, then the sandbox is
        built around that, and only then is anything read, run or imported.
        """
        options = self.options
        self._pools.note_rest()
        configuration = self._read(before)
        named = read_entries(configuration, options.kinds)
        # Also where only one entry is loaded, tools must not write what all others name: it is obeyed another time.
        inputs = self._sandbox_inputs(configuration, named)
        self.sessions.look(inputs.writable())
        entries = read_only(options.only, configuration, options.kinds) if options.only else named
        for agent in entries.by_agent.values():
            agent.extend(options.given)
        processes = self._pools.open(inputs, before.host.processes if before else None)
        if options.only and configuration.readable and not before:
            # Its one tool is about to be used: let the keeper start while the rest is imported and read.
            processes.children[configuration.usual_reach].start()
        return Begun(configuration=configuration, entries=entries, inputs=inputs, processes=processes)

    async def _load(self, begun: Begun, before: Loaded | None = None) -> Loaded:
        """Read, run and import all that the configuration names."""
        from toolyard.runtime.loaded import Loaded

        options = self.options
        host = Host(begun.configuration, begun.processes, self._caches, kinds=options.kinds)
        loaded = Loaded(
            begun.entries,
            host,
            self._paths.maker(host, begun.entries, stays=self._stays_despite(begun.configuration)),
            kept=before.kept() if before else None,
            session=options.session,
            metadata=options.session_metadata,
            only_some=options.only is not None,
            more_tools=None if options.only else options.more_tools,
        )
        try:
            await loaded.refresh()
        except BaseException:  # cancelled: what was opened on the way has no other owner
            await loaded.aclose(except_for=before)
            raise
        self._caches.save()
        self._last_begun, self._sandbox_problems = begun, None
        if not options.only:  # the command line alone wants only one, and shows what is wrong by itself
            self._log(loaded)
        return loaded

    def _problems_of_sandbox(self) -> list[Problem]:
        begun = self._last_begun
        if self._sandbox_problems is None:
            self._sandbox_problems = list(self._pools.problems(begun.inputs, begun.processes)) if begun else []
        return self._sandbox_problems

    def _log(self, loaded: Loaded) -> None:
        """Tell whoever reads the log what this loading found and the one before did not."""
        import logging

        log = logging.getLogger("toolyard.problems")
        if not is_heard(log):
            return
        refused = filter(None, [self.sessions.problem()])
        known, self._logged = self._logged, {*loaded.faults(), *self._problems_of_sandbox(), *refused}
        if new := sort_problems(self._logged - known):
            redact = self._paths.redactor(loaded.configuration, loaded.entries).redact_cut
            for problem in new:
                level = logging.ERROR if problem.severity == "error" else logging.WARNING
                log.log(level, "%s: %s", problem.code, redact(str(problem)))

    def _read(self, before: Loaded | None) -> Configuration:
        """The configuration; one that tools may have written is not obeyed until a person accepts it."""
        if before is None and records():  # what a killed application left running may write what is read here
            from toolyard.process.sandbox.cleanup import clean_up_abandoned

            clean_up_abandoned()
        options, settings = self.options, settings_of(self.options.kinds)
        if not isinstance(options.config, Path):
            path = options.folder / "<configuration>"
            return in_memory(options.config, path, self._names(path), settings)
        read = read_configuration(options.config, self._names(options.config), settings, stands_for(options.kinds))
        refused = next((problem for problem in read.problems if problem.code == NOT_ACCEPTED), None)
        if refused and before and before.configuration.readable:
            return unchanged_but_for(before.configuration, refused)
        return read

    def _sandbox_inputs(self, configuration: Configuration, named: Entries) -> SandboxInputs:
        options = self.options
        plugin_cache = configuration.plugin_cache(options.cache)
        policy, folder = configuration.policy, configuration.document.folder
        own = [store for kind in options.kinds for store in kind.stores(policy, plugin_cache, folder)]
        return SandboxInputs(
            configuration=configuration,
            references=named.references(),
            guessed=named.guessed,
            sessions=self.sessions,
            stores=[str(options.cache), str(plugin_cache), *own],
            cwd=working_folder(),
        )

    def _load_apart(self) -> Loaded:
        """Load without an open application: in a loop and with processes of its own, ended before this returns."""
        if self._apart is not None:
            return self._apart

        from concurrent.futures import ThreadPoolExecutor

        async def load() -> Loaded:
            try:
                loaded = await self._load(self._begin())
                self._problems_of_sandbox()  # as long as there is one
                return loaded
            finally:
                await self._pools.aclose()
                self._pools = self._new_pools()

        # A thread, because the caller may be inside a running event loop.
        with self._environment.installed(), ThreadPoolExecutor(1) as thread:
            self._apart = thread.submit(asyncio.run, load()).result()
        return self._apart

    def _new_pools(self) -> ProcessPools:
        return ProcessPools(
            audit=self._audit,
            session=self.options.session,
            hide=self._paths.hide,
            ask_host=self._ask_host,
            rule_for_host=self._rule_for_host,
        )

    async def _ask_host(self, host: str, port: int) -> HostAnswer:
        return await self._paths.ask_host(host, port, self.loaded)

    def _rule_for_host(self, host: str, port: int) -> HostRule | None:
        return self._paths.rule_for_host(host, port, self.loaded)

    def _stays_despite(self, configuration: Configuration) -> bool:
        """Whether what is in use stays in use, with its rules, since what was read is nothing to go by."""
        return self.loaded is not None and self.loaded.configuration.readable and not configuration.readable

    def _audit_problems(self) -> Iterator[Problem]:
        """That calls cannot be recorded, as long as they cannot, or soon may not be."""
        where = Position(file=self._audit.folder)
        if self._audit.trouble:
            hint = "free space or mend the folder's permissions"
            yield Problem(code="audit_unwritable", message=self._audit.trouble, hint=hint, where=where)
        elif self._audit.shortage:
            message = self._audit.shortage
            yield Problem(code="audit_room", message=message, hint="free space", where=where, severity="warning")

    def _log_audit(self, message: str) -> None:
        import logging

        logging.getLogger("toolyard.problems").error("audit: %s", message)

    def _names(self, path: Path) -> Names:
        return Names(
            config_env=self.options.config_env,
            overrides=self.options.env_overrides,
            builtin=builtin_names(path, Path(working_folder())),
            process=os.environ,
        )


def is_heard(log: Logger | None) -> bool:
    """Whether somebody reads a log: a command line that shows problems itself has one that takes nothing."""
    from logging import NullHandler

    handlers = []
    while log:
        handlers += log.handlers
        log = log.parent if log.propagate else None
    return not handlers or not all(isinstance(one, NullHandler) for one in handlers)


def unchanged_but_for(before: Configuration, problem: Problem) -> Configuration:
    """The configuration that was in use, with the reason why it still is."""
    others = [one for one in before.problems if one.code != problem.code]
    message = f"{problem.message}; the last good configuration stays in use"
    return replace(before, problems=(*others, replace(problem, message=message)))
