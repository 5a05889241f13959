"""The Node processes of one package: started on first use, shared by all its calls, replaced when they break."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.process.companion import CompanionRequest
from toolyard.process.json_rpc import JsonRpcClient, RpcAnswer, RpcLost, RpcResult
from toolyard.process.limits import Limits
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject
    from toolyard.kinds.node_module.package import NodePackage
    from toolyard.process.json_rpc import PendingRequest, Progress
    from toolyard.process.runner import Runner


log = logging.getLogger("toolyard.node")
PROGRAM = Path(__file__).with_name("host.mjs")
PARENTS_CHANNEL = (b"NODE_CHANNEL_FD", b"NODE_CHANNEL_SERIALIZATION_MODE")
"""Where an application was itself started by Node: the descriptor is not for its tools."""
SETTLE_PATIENCE = 2.0
"""How long a tool may take to end by itself after its call was given up."""
PONG_PATIENCE = 10.0
"""How long a host with other calls under way may take to show that it still answers."""


class TimedOut(msgspec.Struct, frozen=True, kw_only=True):
    """No answer came in time."""


HostReply: TypeAlias = RpcAnswer | TimedOut


class NodeProcess:
    """One process. All its calls have the same reach and the same working directory, of which a process has one."""

    __slots__ = ("busy", "cwd", "given_up", "link", "reach", "retiring")

    def __init__(self, link: JsonRpcClient, cwd: str, reach: Reach, *, retiring: bool) -> None:
        self.link = link
        self.cwd = cwd
        self.reach = reach
        self.busy = 0
        self.given_up = 0
        """How many of its calls nobody waits for any more."""
        self.retiring = retiring
        """Whether it ends when its calls have, and takes no more."""


class NodeHosts:
    """Usually one host for each reach; a second one while calls with different working directories run side by side."""

    def __init__(self, runner: Runner, node: str, package: NodePackage, *, timeout: float) -> None:
        self.package = package
        self.runner = runner
        self.node = node
        self.timeout = timeout
        self._hosts: list[NodeProcess] = []
        self._retired = False
        self._closed = False

    @property
    def running(self) -> int:
        return sum(not host.link.has_ended for host in self._hosts)

    async def ask(
        self,
        method: str,
        params: JsonObject,
        *,
        cwd: str,
        reach: Reach,
        on_progress: Progress | None = None,
        subject: str,
        timeout: float | None = None,
    ) -> HostReply:
        """One request with its time limit; what it leaves undone is ended before this returns, also when cancelled."""
        if self._closed:
            return RpcLost(reason="its package is not loaded any more")
        timeout = timeout or self.timeout
        host = self._host_for(cwd, reach)
        about = {**params.get("_meta", {}), "toolyard/cwd": cwd}
        question = host.link.ask(method, {**params, "_meta": about}, on_progress=on_progress)
        host.busy += 1
        try:
            answer = await question.answer(within=timeout)
            if answer is not None:
                return answer
            late = f"{subject} did not finish within {timeout:g} seconds and could not be stopped otherwise"
            await run_shielded(self._give_up(host, question, late))
            return TimedOut()
        except asyncio.CancelledError:
            unstoppable = f"{subject} was cancelled and could not be stopped otherwise"
            await run_shielded(self._give_up(host, question, unstoppable))
            raise
        finally:
            host.busy -= 1
            self._tidy(host)

    def retire(self) -> None:
        """End each host when its last call does; a call that comes late gets one that ends with it."""
        self._retired = True
        for host in self._hosts:
            host.retiring = True
            self._tidy(host)

    async def aclose(self) -> None:
        self._closed = True
        hosts, self._hosts = self._hosts, []
        await asyncio.gather(*(host.link.aclose() for host in hosts))

    def _host_for(self, cwd: str, reach: Reach) -> NodeProcess:
        """The host in that directory, else one that is free to go there, else a new one."""
        self._hosts = [host for host in self._hosts if not host.link.has_ended]
        free = [host for host in self._hosts if not host.retiring and host.reach == reach]
        host = next((host for host in free if host.cwd == cwd), None) or next(
            (host for host in free if not host.busy), None
        )
        if host is None:
            host = self._start(cwd, reach)
        host.cwd = cwd
        return host

    def _start(self, cwd: str, reach: Reach) -> NodeProcess:
        keeper = self.runner.children[reach].keeper
        link = JsonRpcClient(keeper, host_request(self.runner, self.node, self.package), log=log)
        declared = [msgspec.to_builtins(tool) for tool in self.package.tools]
        # Nothing is waited for: the first call follows at once, and is answered when the host has come up.
        link.ask("initialize", {"_meta": {"toolyard/root": self.package.root, "toolyard/tools": declared}})
        host = NodeProcess(link, cwd, reach, retiring=self._retired)
        self._hosts.append(host)
        return host

    async def _give_up(self, host: NodeProcess, question: PendingRequest, why: str) -> None:
        """Stop one call: by its signal if it minds that, else with its host.

        Others in the same host go on as long as it still answers; it then takes no more calls, and ends with the last.
        """
        host.link.tell("notifications/cancelled", {"requestId": question.id, "reason": why})
        host.given_up += 1
        try:
            if await question.answer(within=SETTLE_PATIENCE) is not None:
                return
            host.retiring = True
            if host.busy == host.given_up or not await answers(host.link):
                await host.link.aclose(f"it was ended because {why}")
        finally:
            host.given_up -= 1

    def _tidy(self, host: NodeProcess) -> None:
        """End a host that is not needed any more: one that retires, or one beside another that is free."""
        if host.busy:
            return
        spare = any(
            other is not host and other.reach == host.reach and not other.retiring and not other.link.has_ended
            for other in self._hosts
        )
        if host.retiring or spare:
            host.retiring = True
            host.link.kill("it was not needed any more")


async def answers(link: JsonRpcClient) -> bool:
    """Whether the program still minds what it is told."""
    return isinstance(await link.ask("ping", {}).answer(within=PONG_PATIENCE), RpcResult)


def host_request(runner: Runner, node: str, package: NodePackage) -> CompanionRequest:
    """How a host is started. Lines travel by descriptors of their own, so that tools may print as they like.

    Memory is limited by Node itself, which reserves more addresses than it ever uses; processor time is not, because a
    host serves many calls, and each of those has its time limit.
    """
    limits, memory = runner.limits, runner.limits.memory_bytes
    options = [] if memory is None else [f"--max-old-space-size={max(memory >> 20, 16)}"]
    env = {name: value for name, value in runner.environment.current().items() if name not in PARENTS_CHANNEL}
    return CompanionRequest(
        argv=[node, *options, str(PROGRAM), "3", "4"],
        cwd=package.root,
        env=env,
        limits=Limits(file_bytes=limits.file_bytes, open_files=limits.open_files, processes=limits.processes),
        private=True,
    )
