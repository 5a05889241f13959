"""What connects those inside with the outside while a sandbox lasts, and what of that was refused."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from toolyard.process.sandbox.network.proxy import AskHost, ConnectionAttempt, Proxy, RuleForHost
    from toolyard.process.sandbox.sockets.supervisor import ConnectSupervisor


MOST_REMEMBERED = 32
"""How many of the refused connections are told again."""


class Connections:
    """Those of one sandbox: a proxy where hosts are named, and sockets that are connected for those inside."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """`hosts` are those that may be reached."""
        self._hosts = hosts
        self._proxies: list[Proxy] = []
        self._supervisors: list[ConnectSupervisor] = []
        self._refused_sockets: deque[str] = deque(maxlen=MOST_REMEMBERED)
        self._refusals = 0
        self._refused: deque[ConnectionAttempt] = deque(maxlen=MOST_REMEMBERED)
        self.on_decision: Callable[[ConnectionAttempt], None] | None = None
        """Hears who was reached, or was not, where hosts are named."""
        self.ask_host: AskHost | None = None
        """Asks about a host that is not named; without it such a host is refused."""
        self.rule_for_host: RuleForHost | None = None
        """Tells of rules that hold also for hosts that are named."""

    def serve_proxy(self, listener: socket.socket) -> None:
        """Answer those inside who want to reach a host."""
        from toolyard.process.sandbox.network.hosts import AllowedHosts
        from toolyard.process.sandbox.network.proxy import Proxy

        self._proxies.append(Proxy(AllowedHosts(self._hosts), self._on_decision, self.ask_host, self.rule_for_host))
        self._proxies[-1].start(listener.dup())

    def supervise(self, listener: int, netlink: int) -> None:
        """Connect sockets of the inside for those inside."""
        from toolyard.process.sandbox.sockets.supervisor import ConnectSupervisor

        self._supervisors.append(ConnectSupervisor(listener, netlink, self._refused_sockets.append))

    def take_refused_sockets(self) -> list[str]:
        """The sockets of others that somebody inside wanted to reach since this was last asked."""
        return [self._refused_sockets.popleft() for _ in range(len(self._refused_sockets))]

    @property
    def refused_hosts(self) -> int:
        """How many connections to hosts were refused so far."""
        return self._refusals

    def refusals_since(self, count: int) -> list[ConnectionAttempt]:
        """The latest of them, after that many."""
        missing = self._refusals - count
        return list(self._refused)[-missing:] if missing > 0 else []

    async def aclose(self) -> None:
        """Nobody is inside any more."""
        supervisors, self._supervisors = self._supervisors, []
        for supervisor in supervisors:
            supervisor.close()
        proxies, self._proxies = self._proxies, []
        for proxy in proxies:
            await proxy.aclose()

    def _on_decision(self, attempt: ConnectionAttempt) -> None:
        if not attempt.allowed:
            self._refusals += 1
            self._refused.append(attempt)
        if self.on_decision:
            self.on_decision(attempt)
