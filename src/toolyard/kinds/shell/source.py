"""Bash itself as a source of tools: the one-shot shell, or a live session for each conversation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from toolyard.kinds.shell.command import ShellCommandTool
from toolyard.kinds.shell.reference import ShellCommand
from toolyard.plugins.plugin import Plugin
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Tool
    from toolyard.kinds.shell.reference import ShellSession
    from toolyard.kinds.shell.session_tools import LiveSessions
    from toolyard.plugins.host import Host


class ShellSource:
    """Tools that come from no file, and so never change."""

    problems: Sequence[Problem] = ()

    def __init__(self, reference: ShellCommand | ShellSession, host: Host) -> None:
        self.file = Path(reference.word)
        self._host = host
        self._sessions: LiveSessions | None = None
        kind = reference.word.replace(":", "_")
        self._plugins = [Plugin(id=reference.word, kind=kind, tools=self._make(reference))]

    @property
    def conditions(self) -> object:
        return (self._host.runner, self._host.interpreter("bash"))

    def plugins(self) -> Sequence[Plugin]:
        return self._plugins

    def is_current(self) -> bool:
        return True

    async def load(self, *, without_running: bool = False) -> bool:  # noqa: ARG002 - nothing is ever run
        return True

    def adopt(self, newer: ShellSource) -> None:
        """The sessions go on."""

    async def end_session(self, session: str) -> None:
        if self._sessions:
            await self._sessions.end(session)

    async def aclose(self) -> None:
        """End every session, with everything that it started."""
        if self._sessions:
            await self._sessions.end()

    def _make(self, reference: ShellCommand | ShellSession) -> list[Tool]:
        runner, own = self._host.runner, Limits(**structs.asdict(reference.options.limits))
        runner = runner.limited_to(runner.limits.replaced_by(own))
        if isinstance(reference, ShellCommand):
            return [ShellCommandTool(runner, self._host.required("bash").path)]
        # Only here: the one-shot shell, which `toolyard exec` waits for, needs nothing of a session.
        from toolyard.kinds.shell.session_tools import BashJobTool, BashTool, LiveSessions

        self._sessions = LiveSessions(runner, reference.options)
        return [BashTool(self._sessions), BashJobTool(self._sessions)]
