"""The SDK's server over the same tools, for both protocol eras and all agents."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolRequestParams,
    CompleteRequestParams,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitResult,
    GetPromptRequestParams,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from toolyard.serve.mcp.calls import LEVELS, take_to_end
from toolyard.serve.mcp.http.conversations import LONGEST_IDLE, MOST_CONVERSATIONS
from toolyard.serve.mcp.messages import (
    INSTRUCTIONS,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    NOT_CACHED,
    SERVER,
    STATELESS_VERSION,
    RpcFault,
)
from toolyard.serve.mcp.results import result_for
from toolyard.serve.mcp.tool_server import LISTS, MOST_FOLLOWED, SUBSCRIBE, ListKind, Refused, Wants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession
    from mcp.types import SubscriptionsListenResult
    from starlette.types import ASGIApp

    from toolyard.core.tool import ClientRequest, Json, JsonObject
    from toolyard.serve.mcp.calls import ServedCall
    from toolyard.serve.mcp.http.conversations import Conversations
    from toolyard.serve.mcp.tool_server import ToolServer

    Context = ServerRequestContext[Any, Any]

MOST_LISTENERS = 256
CHANGED: dict[ListKind, Any] = {
    "tools": ToolsListChanged,
    "resources": ResourcesListChanged,
    "prompts": PromptsListChanged,
}
ASKED: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (ElicitRequest, ElicitResult),
    "sampling/createMessage": (CreateMessageRequest, CreateMessageResult),
    "roots/list": (ListRootsRequest, ListRootsResult),
}
"""Requests to clients, and what they answer."""
PARAMS_OF_CALLS: dict[str, type[RequestParams]] = {
    "tools/call": CallToolRequestParams,
    "resources/read": ReadResourceRequestParams,
    "resources/subscribe": SubscribeRequestParams,
    "prompts/get": GetPromptRequestParams,
    "completion/complete": CompleteRequestParams,
}


class SdkServer(Server[Any]):
    """The SDK's server, which says also to clients of the older era that lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class HttpTools:
    """Answers what comes over HTTP; the agent and the conversation are in the scope of each request."""

    def __init__(self, server: ToolServer, conversations: Conversations) -> None:
        self._server = server
        self._conversations = conversations
        self._buses: defaultdict[str, InMemorySubscriptionBus] = defaultdict(InMemorySubscriptionBus)
        self._listeners: dict[str, ListenHandler] = {}
        """By agent, as the buses are."""
        self._sessions: dict[str, tuple[str, ServerSession]] = {}
        """Clients of the older era by their session ids, with their agents; the last are those heard of last."""
        self._followers: dict[tuple[str, str], tuple[Callable[[], None], int]] = {}
        """Of resources that clients of the newer era listen for: what ends it, and how many they are."""
        self._tasks: set[asyncio.Task[None]] = set()
        """What is being told to clients."""
        self._log_levels: dict[str, str] = {}
        """Of messages that clients of the older era want to hear, by their conversations."""
        sdk = SdkServer(
            SERVER["name"],
            title=SERVER["title"],
            version=SERVER["version"],
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda _: (
                None
            ),  # no tool asks for arguments in headers, so no list is made for each call
        )
        for method in LISTS:
            sdk.add_request_handler(method, PaginatedRequestParams, self._lists(method))
        for method, params in PARAMS_OF_CALLS.items():
            sdk.add_request_handler(method, params, self._calls(method))
        sdk.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        sdk.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        sdk.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)

        async def remember(ctx: Context, call_next: CallNext) -> HandlerResult:
            self._remember(ctx)
            return await call_next(ctx)

        sdk.middleware[:] = [remember]  # without its spans for each request, which the call path has better ones of
        self._manager = StreamableHTTPSessionManager(
            sdk, session_idle_timeout=LONGEST_IDLE, max_sessions=MOST_CONVERSATIONS
        )

    @property
    def app(self) -> ASGIApp:
        return self._manager.handle_request

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within this, requests are answered, and clients hear of changes."""
        ready, ending = asyncio.Event(), asyncio.Event()
        managing = asyncio.create_task(self._manage(ready, ending))
        watching = [
            asyncio.create_task(self._conversations.end_old_ones()),
            asyncio.create_task(self._tell_changes()),
        ]
        await ready.wait()
        try:
            yield
        finally:
            ending.set()
            for task in watching:
                task.cancel()
            await asyncio.wait([managing, *watching])

    async def _manage(self, ready: asyncio.Event, ending: asyncio.Event) -> None:
        """Run the SDK's part in a task of its own: it puts whatever is raised within it into a group."""
        async with self._manager.run():
            ready.set()
            await ending.wait()

    def _lists(self, method: str) -> Any:
        async def give(context: Context, _: PaginatedRequestParams) -> HandlerResult:
            listed = await self._server.listing(agent_of(context), method) or {}
            if method == "tools/list":
                listed = {"tools": list(self._server.definitions(agent_of(context)).tools)}
            is_stateless = context.protocol_version == STATELESS_VERSION
            return {**listed, **({"resultType": "complete", **NOT_CACHED} if is_stateless else {})}

        return give

    def _calls(self, method: str) -> Any:
        async def call(context: Context, _: object) -> HandlerResult:
            try:
                return await self._call(context, method)
            except Refused as refusal:
                raise MCPError(INVALID_PARAMS, str(refusal)) from refusal
            except RpcFault as fault:
                raise MCPError(**fault.error) from fault

        return call

    async def _call(self, context: Context, method: str) -> HandlerResult:
        scope = context.request.scope if context.request else {}
        is_stateless = context.protocol_version == STATELESS_VERSION
        request = self._server.request(scope["agent"], method, context.params or {})
        used = self._conversations.begin_request(
            scope["conversation"], scope.get("client") and tuple(scope["client"]), is_session=not is_stateless
        )
        call: ServedCall | None = None
        try:
            capabilities, wants = capabilities_of(context), self._wants(context, scope["conversation"])
            call = used.conversation.begin(scope["agent"], request, capabilities=capabilities, wants=wants)
            if not is_stateless:
                result = result_for(request, await take_to_end(call, asker(context)))
                if method == SUBSCRIBE:
                    used.conversation.follow(scope["agent"], request.uri, self._teller(scope["conversation"]))
                return result
            await call.next()
            return {"resultType": "complete", **used.conversation.stateless_answer(scope["agent"], request, call)}
        except asyncio.CancelledError:
            if call:
                call.cancel()
            raise
        finally:
            self._conversations.end_request(used)

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> HandlerResult:
        scope = context.request.scope if context.request else {}
        if conversation := self._conversations.find(scope["conversation"]):
            conversation.unfollow(params.uri)
        return {}

    def _teller(self, session: str) -> Callable[[str], None]:
        """What tells a client of the older era of a resource that changed."""

        def tell_update(uri: str) -> None:
            _, client = self._sessions.get(session, (None, None))
            if client is not None:
                self._telling(client.send_resource_updated(uri))

        return tell_update

    def _telling(self, work: Coroutine[None, None, None]) -> None:
        """Tell somebody something, who may have gone."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _set_level(self, context: Context, params: SetLevelRequestParams) -> HandlerResult:
        scope = context.request.scope if context.request else {}
        self._log_levels[scope["conversation"]] = params.level
        if len(self._log_levels) > MOST_CONVERSATIONS:
            del self._log_levels[next(iter(self._log_levels))]
        return {}

    def _wants(self, context: Context, conversation: str) -> Wants:
        """What the client wants to hear while a call runs."""
        meta = (context.params or {}).get("_meta")
        level = meta.get(LOG_LEVEL_KEY) if isinstance(meta, dict) else None
        level = level or self._log_levels.get(conversation)

        async def log(message: JsonObject) -> None:
            params = LoggingMessageNotificationParams.model_validate(message)
            await context.session.send_notification(
                LoggingMessageNotification(params=params), related_request_id=context.request_id
            )

        return Wants(report=reporter(context), log=log if level in LEVELS else None, log_level=level)

    async def _listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        agent = agent_of(context) or self._server.default_agent()
        if agent not in self._listeners:
            self._listeners[agent] = ListenHandler(self._buses[agent], max_subscriptions=MOST_LISTENERS)
        uris = (params.notifications.resource_subscriptions or [])[:MOST_FOLLOWED]
        stops = [await self._followed(context, agent, uri) for uri in uris]
        try:
            return await self._listeners[agent](context, params)
        finally:
            for stop in stops:
                stop()

    async def _followed(self, context: Context, agent: str, uri: str) -> Callable[[], None]:
        """Have changes of a resource told to all who listen for an agent, once; what this gives ends it."""
        scope = context.request.scope if context.request else {}
        used = self._conversations.begin_request(
            scope["conversation"], scope.get("client") and tuple(scope["client"]), is_session=False
        )
        try:
            if not await used.conversation.follow_by_call(agent, uri):
                return lambda: None
        finally:
            self._conversations.end_request(used)
        bus, key = self._buses[agent], (agent, uri)
        if key not in self._followers:
            stop = self._server.offers(agent).listen(
                uri, lambda changed: self._telling(bus.publish(ResourceUpdated(uri=changed)))
            )
            self._followers[key] = (stop, 0)
        stop, count = self._followers[key]
        self._followers[key] = (stop, count + 1)
        return lambda: self._unfollow(key)

    def _unfollow(self, key: tuple[str, str]) -> None:
        stop, count = self._followers.pop(key)
        if count > 1:
            self._followers[key] = (stop, count - 1)
        else:
            stop()

    def _remember(self, context: Context) -> None:
        """Note who is there: a client of the older era hears of changes beside its requests."""
        session = context.request.headers.get("mcp-session-id") if context.request else None
        if session is not None:
            self._sessions.pop(session, None)
            self._sessions[session] = (agent_of(context) or self._server.default_agent(), context.session)
            if len(self._sessions) > MOST_CONVERSATIONS:
                del self._sessions[next(iter(self._sessions))]

    async def _tell_changes(self) -> None:
        async for agents in self._server.changes():
            for agent in agents.keys() & self._listeners.keys():
                for kind in agents[agent]:
                    await self._buses[agent].publish(CHANGED[kind]())
            told = [(id, session, agents[agent]) for id, (agent, session) in self._sessions.items() if agent in agents]
            sent = await asyncio.gather(*(tell(session, kinds) for _, session, kinds in told), return_exceptions=True)
            for (id, _, _), outcome in zip(told, sent, strict=True):
                if outcome is not None:  # it has gone
                    self._sessions.pop(id, None)


async def tell(session: ServerSession, kinds: Sequence[ListKind]) -> None:
    """Tell a client of the older era which lists changed."""
    send = {
        "tools": session.send_tool_list_changed,
        "resources": session.send_resource_list_changed,
        "prompts": session.send_prompt_list_changed,
    }
    for kind in kinds:
        await send[kind]()


def agent_of(context: Context) -> str | None:
    agent: str | None = context.request.scope["agent"] if context.request else None
    return agent


def capabilities_of(context: Context) -> Json:
    """What the client can be asked."""
    capabilities = context.session.client_capabilities
    return capabilities.model_dump(exclude_none=True) if capabilities else None


def asker(context: Context) -> Callable[[ClientRequest], Awaitable[Json]]:
    """What puts a question to a client of the older era, on the stream of the request that it is about."""

    async def ask(request: ClientRequest) -> Json:
        kind, result = ASKED[request.method]
        typed = kind.model_validate({"method": request.method, "params": dict(request.params)}, by_name=False)
        metadata = ServerMessageMetadata(related_request_id=context.request_id)
        try:
            answer = await context.session.send_request(typed, result, metadata=metadata)
        except (MCPError, ValueError):  # it will not say, or says something else
            return None
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    return ask


def reporter(context: Context) -> Callable[[int, str], Awaitable[None]] | None:
    """What tells a client of progress, if it wants to hear of it."""
    meta = (context.params or {}).get("_meta")
    if not isinstance(meta, dict) or meta.get("progressToken") is None:
        return None

    async def report(number: int, text: str) -> None:
        await context.session.report_progress(number, message=text)

    return report
