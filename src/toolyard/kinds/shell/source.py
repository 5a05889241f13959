"""Bash itself as a source of tools: the one-shot shell, or a live session that ends with its source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from toolyard.kinds.shell.command import ShellCommandTool
from toolyard.kinds.shell.session_tools import BashJobTool, BashTool, LiveSession, SessionConditions
from toolyard.plugins.source import Plugin
from toolyard.plugins.spec import CommandOptions
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Tool
    from toolyard.kinds.bash_script.workshop import BashWorkshop
    from toolyard.plugins.spec import ShellCommand, ShellSession


class ShellSource:
    """Tools that come from no file, and so never change."""

    problems: Sequence[Problem] = ()

    def __init__(self, spec: ShellCommand | ShellSession, workshop: BashWorkshop) -> None:
        self.key = spec
        self.file = Path(spec.word)
        self.workshop = workshop
        self._live: LiveSession | None = None
        self._plugins = [Plugin(id=spec.word, kind=spec.word.replace(":", "_"), tools=self._make(spec))]

    @property
    def conditions(self) -> BashWorkshop:
        """Where the tools run."""
        return self.workshop

    def plugins(self) -> Sequence[Plugin]:
        """The same for ever."""
        return self._plugins

    def is_current(self) -> bool:
        """Nothing can have changed."""
        return True

    def load_known(self) -> bool:
        """There is nothing to read."""
        return True

    async def load(self) -> None:
        """There is nothing to read."""

    async def refresh(self) -> bool:
        """Nothing can have changed."""
        return False

    async def aclose(self) -> None:
        """End the session, with everything that it started."""
        if self._live:
            await self._live.aclose()

    def _make(self, spec: ShellCommand | ShellSession) -> list[Tool]:
        options, given = spec.options, self.workshop.conditions
        limits = given.limits.replaced_by(Limits(**structs.asdict(options.limits)))
        if isinstance(options, CommandOptions):
            return [ShellCommandTool(replace(self.workshop, conditions=structs.replace(given, limits=limits)))]
        conditions = SessionConditions(
            timeout=options.timeout_seconds,
            on_timeout=options.on_timeout,
            max_jobs=options.max_jobs,
            tty=options.tty,
            pass_env=tuple(given.pass_env),
            limits=limits,
        )
        self._live = LiveSession(self.workshop.children, conditions)
        return [BashTool(self._live), BashJobTool(self._live)]
