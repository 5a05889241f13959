"""The call paths of all agents, and what they share: rules, grants, questions, the audit log, secrets to redact."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.files.working_folder import working_folder
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.policy import RulePolicy
from toolyard.permissions.section import PRESETS, Sections
from toolyard.process.environment import SHORTEST_SECRET, looks_like_credential, process_secrets
from toolyard.runtime.call_path import CallPath, CallsUnderWay
from toolyard.runtime.call_steps.conditions import CallServices, CallSettings
from toolyard.runtime.output_folders import drop_old_outputs, has_reader, output_folder
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolyard.config.configuration import Configuration
    from toolyard.config.settings import Preset
    from toolyard.core.problems import Problem
    from toolyard.files.own.sessions_folder import SessionsFolder
    from toolyard.plugins.catalog import Catalog
    from toolyard.plugins.entries import Entries
    from toolyard.plugins.host import Host
    from toolyard.process.sandbox.network.proxy import HostAnswer, HostRule
    from toolyard.runtime.audit.log import NdjsonAudit
    from toolyard.runtime.host_questions import HostQuestions
    from toolyard.runtime.loaded import Loaded
    from toolyard.runtime.options import ApplicationOptions


class CallPaths:
    """Makes the call path of each agent; knows what was answered, whatever configuration is read meanwhile."""

    def __init__(self, options: ApplicationOptions, audit: NdjsonAudit, sessions: SessionsFolder) -> None:
        self._options = options
        self._audit = audit
        self._sessions = sessions
        self._grants = GrantStore(default_grants_file())
        self._rules: RulePolicy | None = None
        self._host_questions: HostQuestions | None = None
        self._redactor: Redactor | None = None
        """That of the configuration in use."""

    def maker(self, host: Host, entries: Entries, *, stays: bool) -> Callable[[Catalog, CallsUnderWay], CallPath]:
        """What makes the path of an agent. With `stays`, the configuration before this one stays in use."""
        configuration, options = host.configuration, self._options
        permissions = options.permissions or self._policy(configuration, stays=stays)
        redactor = self.redactor(configuration, entries)
        sandboxes = {reach: children.sandbox for reach, children in host.processes.children.items()}
        if not stays:
            self._audit.policy = configuration.audit
            self._redactor = redactor

        def make(catalog: Catalog, under_way: CallsUnderWay) -> CallPath:
            services = CallServices(
                tools=catalog,
                audit=self._audit,
                redactor=redactor,
                permissions=permissions,
                approver=options.approver,
                sandboxes=sandboxes,
            )
            return CallPath(services, under_way)

        return make

    def settings(
        self, configuration: Configuration, agent: str, session: str, cwd: str, *, in_turn: bool = False
    ) -> CallSettings:
        """The conditions of an agent's calls."""
        output = configuration.output_of(agent)
        is_kept = self._sessions.refusal is None
        tidy_outputs = partial(drop_old_outputs, self._sessions.path, output) if is_kept else nothing
        tidy_outputs()
        return CallSettings(
            session=session,
            agent=agent,
            cwd=Path(cwd),
            config=configuration.for_agent(agent),
            output_limit=output.limit_bytes,
            spill_folder=output_folder(self._sessions.path, cwd) if output.spill and is_kept else None,
            reads_on=has_reader(configuration, agent, in_turn=in_turn),
            tidy_outputs=tidy_outputs,
        )

    def set_preset(self, preset: Preset | None, session: str, configuration: Configuration) -> None:
        """Give a conversation another preset than the configuration does."""
        if preset is not None and preset not in PRESETS:
            raise ValueError(f"there is no preset '{preset}'; there are {', '.join(PRESETS)}")
        (self._rules or self._policy(configuration)).set_preset(session, preset)

    def session_preset(self, session: str) -> Preset | None:
        return self._rules.session_preset(session) if self._rules else None

    def end_session(self, session: str) -> None:
        if self._rules:
            self._rules.end_session(session)

    def problems(self, configuration: Configuration) -> list[Problem]:
        """What is wrong with rules and grants."""
        rules = self._rules
        return [*rules.problems(), *rules.sections.problems(configuration.agents())] if rules else []

    def hide(self, text: str) -> str:
        """What names a host, without the secrets that are known now."""
        return self._redactor.redact_in_host(text) if self._redactor else text

    async def ask_host(self, host: str, port: int, loaded: Loaded | None) -> HostAnswer:
        """Somebody in the sandbox wants to reach a host that is not named."""
        from toolyard.runtime.host_questions import nobody_to_ask

        return await self._questions_of(loaded).decide(host, port) if loaded else nobody_to_ask(host)

    def rule_for_host(self, host: str, port: int, loaded: Loaded | None) -> HostRule | None:
        """The rule that holds whatever hosts the configuration names."""
        return self._questions_of(loaded).rule_for(host, port) if loaded else None

    def _questions_of(self, loaded: Loaded) -> HostQuestions:
        from toolyard.runtime.host_questions import HostQuestions

        options = self._options
        if self._host_questions is None:
            self._host_questions = HostQuestions(
                self._rules or self._policy(loaded.configuration),
                options.approver,
                agent=loaded.default_agent(),
                session=options.session,
                workspace=Path(working_folder()),
                hide=self.hide,
            )
        return self._host_questions

    def redactor(self, configuration: Configuration, entries: Entries) -> Redactor:
        surroundings = dict(os.environ)  # as they are now: who finds the secrets among them may come later

        def find() -> Iterator[tuple[str, str]]:
            given = process_secrets(self._options.config_env)
            yield from (entries.secrets() | process_secrets(surroundings) | given).items()
            yield from config_secrets(configuration.value)

        return Redactor.late(find)

    def _policy(self, configuration: Configuration, *, stays: bool = False) -> RulePolicy:
        """The rules; one policy for all configurations that are read, since it knows what was answered meanwhile."""
        damage = () if configuration.readable else configuration.problems
        sections = Sections(configuration.value, configuration.document, damage)
        if self._rules is None:
            path = self._options.config
            self._rules = RulePolicy(sections, self._grants, protected=(str(path),) if isinstance(path, Path) else ())
        if not stays:
            self._rules.sections = sections
        return self._rules


def nothing() -> None:
    """Where no output is kept, none is dropped."""


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
        case str() if len(value.strip()) >= SHORTEST_SECRET and looks_like_credential(name, value):
            yield name, value
