"""An application's tools for clients, whatever wire they come over: definitions, calls, questions, conversations."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from toolyard.core.tool import ClientRequest, ToolResult
from toolyard.permissions.verdict import Answer
from toolyard.serve.mcp.calls import Log, Notices, Report, ServedCall
from toolyard.serve.mcp.definitions import FITTED, definitions_of
from toolyard.serve.mcp.messages import NOT_CACHED, RpcFault, call_request
from toolyard.serve.mcp.offers import ClientOffers
from toolyard.serve.mcp.questions import (
    CANNOT_ASK,
    ELICITATION,
    ClientQuestion,
    answer_of,
    can_elicit,
    elicitation,
)
from toolyard.serve.mcp.results import result_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from toolyard.app import AgentApplication
    from toolyard.core.tool import Json, ToolSpec
    from toolyard.permissions.verdict import PermissionRequest, Verdict
    from toolyard.plugins.offers import PluginOffers
    from toolyard.serve.mcp.definitions import ToolDefinitions
    from toolyard.serve.mcp.messages import CallRequest


SUBSCRIBE = "resources/subscribe"
CALLS = frozenset({"tools/call", "resources/read", SUBSCRIBE, "prompts/get", "completion/complete"})
"""What takes the path of calls."""
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
ListKind: TypeAlias = Literal["tools", "resources", "prompts"]
MOST_FOLLOWED = 256
"""How many resources a conversation may hear of."""
MOST_CALLS = 64
"""How many calls of one conversation are under way at once."""
QUESTION = "allow"
"""The name of a question among those that a stateless client is asked."""


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants to hear while a call runs."""

    report: Report | None = None
    """Takes the number and the text of a notice of progress."""
    log: Log | None = None
    log_level: str | None = None


NOTHING = Wants()


class Refused(Exception):
    """A request that cannot be served, in words for the client."""


class ClientApprover:
    """Asks the person behind the client whose call it is."""

    def __init__(self) -> None:
        self.calls: dict[str, ServedCall] = {}
        """Those under way, by their ids; the newest last."""

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        from toolyard.permissions.approval import question_for

        call = self.calls.get(request.call_id) or self._newest_of(request.session)
        if call is None or not can_elicit(call.capabilities):
            return Answer(allowed=False, reason=CANNOT_ASK)
        question = ClientQuestion(asked=await question_for(request, verdict), form=request.form)
        answer = await call.put(QUESTION, ClientRequest(method=ELICITATION, params=elicitation(question)))
        return answer_of(answer, question)

    def client_of(self, call_id: str) -> ServedCall | None:
        """What a tool may ask and tell its client by."""
        return self.calls.get(call_id)

    def _newest_of(self, session: str) -> ServedCall | None:
        """A call of the conversation that a question about a host belongs to."""
        return next((call for id, call in reversed(self.calls.items()) if id.startswith(f"{session}.")), None)


class ClientConversation:
    """What one client does: its calls, the questions they wait with, and a session of its own for tools."""

    def __init__(self, server: ToolServer, id: str) -> None:
        self.id = id
        self._server = server
        self._number = 0
        self._under_way: dict[str, ServedCall] = {}
        self._followed: dict[str, Callable[[], None]] = {}
        """What ends hearing of a resource, by its address."""

    def follow(self, agent: str | None, uri: str, hear: Callable[[str], None]) -> None:
        """Hear of changes of a resource, which a call had told before."""
        if len(self._followed) >= MOST_FOLLOWED:
            raise Refused(f"{MOST_FOLLOWED} resources are followed already")
        if uri not in self._followed:
            self._followed[uri] = self._server.offers(agent).listen(uri, hear)

    def unfollow(self, uri: str) -> None:
        if stop := self._followed.pop(uri, None):
            stop()

    async def follow_by_call(self, agent: str | None, uri: str) -> bool:
        """Whether changes of a resource are told from now on; nobody can be asked about it."""
        try:
            request = self._server.request(agent, SUBSCRIBE, {"uri": uri})
            call = self.begin(agent, request, capabilities=None)
            await call.next()
            return call.is_over and call.result().ok
        except (RpcFault, Refused):
            return False

    def begin(
        self, agent: str | None, request: CallRequest, *, capabilities: Json, wants: Wants = NOTHING
    ) -> ServedCall:
        """Start a call, or go on with the one whose question the request answers."""
        if request.state is not None:
            return self._server.go_on(agent, request)
        if len(self._under_way) >= MOST_CALLS:
            raise Refused(f"{MOST_CALLS} calls are under way already: wait for one to end")
        self._number += 1
        id = f"{self.id}.{self._number}"
        notices = Notices(wants.report, wants.log) if wants.report or wants.log else None
        early = request.answers if isinstance(request.answers, dict) else None
        call = ServedCall(
            capabilities=capabilities, notices=notices, log_level=wants.log and wants.log_level, early=early
        )
        server = self._server
        name = server.own_name(agent, request.name) if request.method == "tools/call" else request.name

        def work() -> Coroutine[None, None, ToolResult]:
            hear = call.hear if wants.report else None
            return server.app.call_tool(
                name, request.arguments, agent=agent, call_id=id, session=self.id, on_event=hear
            )

        self._under_way[id] = server.approver.calls[id] = call
        call.start(work, lambda: self._forget(id, call))
        return call

    def stateless_answer(self, agent: str | None, request: CallRequest, call: ServedCall) -> dict[str, Any]:
        """What a call came to: its result, or questions, which the client's next request answers."""
        if call.is_over:
            kept = NOT_CACHED if request.method == "resources/read" else {}
            return {**kept, **result_for(request, call.result())}
        state = os.urandom(16).hex()
        self._server.asked[state] = (agent, request, call)
        asked = {name: {"method": one.method, "params": one.params} for name, one in call.asked.items()}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": state}

    async def end(self) -> None:
        """End what is under way, and what tools keep for the conversation."""
        for uri in list(self._followed):
            self.unfollow(uri)
        calls = list(self._under_way.values())
        for call in calls:
            call.cancel()
        if tasks := [call.task for call in calls if call.task]:
            await asyncio.wait(tasks)
        await self._server.app.end_session(self.id)

    def _forget(self, id: str, call: ServedCall) -> None:
        server = self._server
        del self._under_way[id], server.approver.calls[id]
        if server.asked:
            server.asked = {state: asked for state, asked in server.asked.items() if asked[2] is not call}


class ToolServer:
    """What all wires share."""

    def __init__(self, app: AgentApplication, approver: ClientApprover, *, agent: str | None = None) -> None:
        self.app = app
        self.agent = agent
        """The agent of whoever names none."""
        self.approver = approver
        self.asked: dict[str, tuple[str | None, CallRequest, ServedCall]] = {}
        """Calls of stateless clients that wait for an answer, by the state that the client sends back."""
        self._definitions: dict[str | None, tuple[list[ToolSpec], ToolDefinitions]] = {}
        self._offers: dict[str | None, tuple[list[tuple[str, PluginOffers]], ClientOffers]] = {}

    def go_on(self, agent: str | None, request: CallRequest) -> ServedCall:
        """The call that waits for this answer, which must be for the very same call.

        It goes on in the conversation that it began in, wherever the answer comes from: nobody can guess the state.
        """
        asked_of, asked, call = self.asked.pop(request.state or "", (None, None, None))
        if asked is None or call is None:
            raise Refused("the question is not open any more: call the tool again")
        if (asked_of, asked.name, asked.arguments) != (agent, request.name, request.arguments):
            call.answer(dict.fromkeys(call.asked))
            raise Refused("the answer was sent with another call than the question was about")
        call.answer(request.answers if isinstance(request.answers, dict) else {})
        return call

    def conversation(self, id: str | None = None) -> ClientConversation:
        return ClientConversation(self, id or os.urandom(16).hex())

    def definitions(self, agent: str | None) -> ToolDefinitions:
        """An agent's tools as they are now; made again only when one changed."""
        specs = self.app.tool_specs(agent)
        made_of, made = self._definitions.get(agent, (None, None))
        if made is None or made_of is None or len(specs) != len(made_of) or any(map(is_other, specs, made_of)):
            made = definitions_of(specs)
            self._definitions[agent] = (specs, made)
        return made

    def offers(self, agent: str | None) -> ClientOffers:
        """What an agent's plugins offer beside tools; made again only when something changed."""
        found = self.app.offers(agent)
        made_of, made = self._offers.get(agent, (None, None))
        if made is None or found != made_of:
            made = ClientOffers(found)
            self._offers[agent] = (found, made)
        return made

    def request(self, agent: str | None, method: str, params: Mapping[str, Any]) -> CallRequest:
        """The call that a request stands for; `method` is one of `CALLS`."""
        if method == "tools/call":
            return call_request(params)
        match method:
            case "resources/read":
                return self.offers(agent).reading(params)
            case "resources/subscribe":
                return self.offers(agent).following(params)
            case "prompts/get":
                return self.offers(agent).prompting(params)
        return self.offers(agent).completing(params)

    async def listing(self, agent: str | None, method: str) -> dict[str, Any] | None:
        """What a request for a list gives, after a look at all files; None for what is no such request."""
        if method not in LISTS:
            return None
        await self.app.refresh()
        offers = self.offers(agent)
        match method:
            case "resources/list":
                return {"resources": offers.resources}
            case "resources/templates/list":
                return {"resourceTemplates": offers.templates}
            case "prompts/list":
                return {"prompts": offers.prompts}
        return {"tools": self.definitions(agent).encoded}

    def capabilities(self, agent: str | None) -> dict[str, Any]:
        return {"tools": {"listChanged": True}, **self.offers(agent).capabilities()}

    def own_name(self, agent: str | None, name: str) -> str:
        """A tool's own name, by the one that clients know; only one that was changed has to be looked up."""
        is_fitted = name[-9:-8] == "_" and FITTED.search(name)
        return self.definitions(agent).names.get(name, name) if is_fitted else name

    def default_agent(self) -> str:
        """The agent of whoever names none."""
        agents = self.app.agents()
        return self.agent or ("default" if "default" in agents else agents[0])

    async def changes(self) -> AsyncIterator[dict[str, list[ListKind]]]:
        """Which lists of which agents changed, each time that some did."""
        before = self._all_lists()
        async for _ in self.app.watch():
            now = self._all_lists()
            changed = {agent: changed_kinds(before.get(agent, {}), lists) for agent, lists in now.items()}
            if any(changed.values()):
                yield {agent: kinds for agent, kinds in changed.items() if kinds}
            before = now

    def _all_lists(self) -> dict[str, dict[ListKind, object]]:
        return {agent: self._lists_of(agent) for agent in self.app.agents()}

    def _lists_of(self, agent: str) -> dict[ListKind, object]:
        offers = self.offers(agent)
        return {
            "tools": bytes(self.definitions(agent).encoded),
            "resources": (offers.resources, offers.templates),
            "prompts": offers.prompts,
        }


def changed_kinds(before: Mapping[ListKind, object], now: Mapping[ListKind, object]) -> list[ListKind]:
    return [kind for kind, one in now.items() if one != before.get(kind)]


def is_other(spec: ToolSpec, other: ToolSpec) -> bool:
    return spec is not other
