"""What the children of a configuration's tools have in common: who runs them, their variables, their limits."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING

from toolyard.process.environment import ParentEnvironment, as_bytes, raw_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.core.reach import Reach
    from toolyard.process.child import Children
    from toolyard.process.limits import Limits
    from toolyard.process.sandbox.policy import SandboxPolicy


class Runner:
    """Handed to every tool that runs children."""

    def __init__(self, children: Mapping[Reach, Children], limits: Limits, passed: Sequence[str] = ()) -> None:
        self.children = children
        """Who runs them, by how far they may reach."""
        self.limits = limits
        self.environment = ParentEnvironment(passed=passed)
        self._passed = tuple(passed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runner) and self._conditions() == other._conditions()

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up

    @property
    def policy(self) -> SandboxPolicy | None:
        """What keeps children in that work; None when nothing shall."""
        sandbox = self.children["work"].sandbox
        return sandbox.policy if sandbox else None

    def passed_names(self) -> list[str]:
        """The variables that policy passes although they look like credentials, as far as they are set."""
        if not self._passed:
            return []
        current = self.environment.current()
        return sorted(name for name in self._passed if as_bytes(name) in current)

    def withheld(self) -> frozenset[str]:
        """The variables that are set here and do not reach tools."""
        current = self.environment.current()
        return frozenset(os.fsdecode(name) for name in raw_environment() if name not in current)

    def limited_to(self, limits: Limits) -> Runner:
        runner = copy.copy(self)
        runner.limits = limits
        return runner

    def _conditions(self) -> tuple[object, ...]:
        return (self.children, self.limits, self._passed)
