"""The backend of a sandbox: the first that keeps most of what is wanted, by what the self-test saw it keep in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.core.sandbox_properties import PROPERTIES
from toolyard.process.sandbox.policy import BackendChoice
from toolyard.process.sandbox.self_test.cache import SelfTest

if TYPE_CHECKING:
    from toolyard.core.sandbox_properties import SandboxProperty
    from toolyard.process.sandbox.backends.confinement import SandboxSupport
    from toolyard.process.sandbox.policy import Backend, SandboxPolicy


class BackendChooser:
    """Chooses for one policy, and anew when what was chosen could not be started."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self._policy = policy
        self._test: SelfTest | None = None
        self.chosen: BackendChoice | None = None
        self.failed: dict[Backend, str] = {}
        """What passed the self-test and could not be started here, and why."""

    @property
    def support(self) -> SandboxSupport:
        """What the machine has."""
        return self._self_test().support

    def choice(self) -> BackendChoice:
        """The first backend that keeps most, or everything; the first time on a machine this takes a moment."""
        self.chosen = self.chosen or self._choose()
        return self.chosen

    def is_known(self) -> bool:
        """Whether it is chosen, or can be without running the self-test."""
        if self.chosen:
            return True
        for backend in self._policy.backends:
            if not self._self_test().knows(backend):
                return False
            if self.is_complete(self._held(backend)):
                return True
        return True

    def rule_out(self, backend: Backend, reason: str) -> None:
        """Go on with the next."""
        self.failed[backend] = reason
        self.chosen = None

    def is_complete(self, held: tuple[SandboxProperty, ...]) -> bool:
        """Whether nothing is missing but for what the configuration gives up."""
        return len(held) == len(PROPERTIES) - len(self._policy.given_up)

    def unmet(self) -> str | None:
        """What is required and nothing here keeps."""
        choice = self.choice()
        wanted = [name for name in self._policy.properties if name not in self._policy.given_up]
        if missing := [name for name in wanted if name not in choice.held]:
            reasons = "; ".join(f"{backend}: {reason}" for backend, reason in choice.passed_over.items())
            return f"no sandbox here keeps what is required: {', '.join(missing)} ({reasons})"
        return None

    def _choose(self) -> BackendChoice:
        best: Backend | None = None
        held: tuple[SandboxProperty, ...] = ()
        passed_over: dict[Backend, str] = {}
        for backend in self._policy.backends:
            found = self._held(backend)
            if len(found) > len(held):
                best, held = backend, found
            if self.is_complete(held):
                break
            passed_over[backend] = self._why_not(backend)
        reasons = {backend: reason for backend, reason in passed_over.items() if backend != best}
        return BackendChoice(backend=best, held=held, passed_over=reasons)

    def _held(self, backend: Backend) -> tuple[SandboxProperty, ...]:
        if backend in self.failed or self._self_test().support.lacking(backend):
            return ()
        return tuple(name for name in self._self_test().result(backend).held if name not in self._policy.given_up)

    def _why_not(self, backend: Backend) -> str:
        if reason := self.failed.get(backend) or self._self_test().support.lacking(backend):
            return reason
        tested = self._self_test().result(backend)
        return (
            tested.failure or f"it does not keep: {', '.join(name for name in PROPERTIES if name not in tested.held)}"
        )

    def _self_test(self) -> SelfTest:
        self._test = self._test or SelfTest()
        return self._test
