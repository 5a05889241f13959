"""What stands before the protocol: who may talk to the server, how much at once, and for which agent."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec
from starlette.responses import PlainTextResponse

from toolyard.serve.mcp.http.direct_calls import DirectCalls, plain_call
from toolyard.serve.mcp.messages import HANDSHAKE_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolyard.serve.mcp.http.conversations import Conversations
    from toolyard.serve.mcp.tool_server import ToolServer

PATH = "/mcp"
COOKIE = "toolyard-conversation"
LARGEST_BODY = 4 << 20
BODY_WITHIN = 30.0
"""How many seconds a client has for sending a request."""
KEEP_ALIVE = 600
"""How many seconds a connection without a request stays open; a conversation may hang on it."""
FORWARDED = ("forwarded", "via", "x-forwarded-for")
"""Headers of proxies, whose connections are shared by clients."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may talk to the server."""

    token: str | None
    names: frozenset[str]
    """The host names and addresses under which it is known."""
    any_address: bool = False
    """Whether any address is right, since the server listens on all; a name that somebody else gave it is not."""

    def allows_host(self, host: str | None) -> bool:
        try:
            parts = urlsplit(f"//{host}") if host else None
            name = parts.hostname if parts and parts.port != 0 else None  # a port that is none raises
        except ValueError:
            return False
        return name is not None and (name in self.names or (self.any_address and is_address(name)))

    def allows_origin(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of this origin may call; programs other than browsers send none.

        Where no token is asked for, only a page of this very server, and none of another port.
        """
        scheme, found, own = (origin or "").partition("://")
        is_known = bool(found) and scheme in ("http", "https") and self.allows_host(own)
        return origin is None or (is_known and (self.token is not None or own == host))

    def allows_token(self, header: str | None) -> bool:
        if self.token is None:
            return True
        scheme, _, given = (header or "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


class HttpRefusal(Exception):
    """A request that ends here."""

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.response = PlainTextResponse(text + "\n", status, headers)


class HttpGuard:
    """Lets through what is allowed, with the agent and the conversation of each request in its scope."""

    def __init__(self, app: ASGIApp, server: ToolServer, conversations: Conversations, access: Access) -> None:
        self._app = app
        self._server = server
        self._conversations = conversations
        self._access = access
        self._calls = DirectCalls(conversations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            headers = headers_of(scope)
            self._check(headers)
            scope["agent"] = self._agent(scope["path"])
            body = await read_body(receive)
        except HttpRefusal as refusal:
            await refusal.response(scope, receive, send)
            return
        await self._pass_on(scope, headers, body, receive, send)

    def _check(self, headers: Mapping[str, str]) -> None:
        if not self._access.allows_host(headers.get("host")):
            raise HttpRefusal(421, "this server is not known under that name")
        if not self._access.allows_origin(headers.get("origin"), headers.get("host")):
            raise HttpRefusal(403, "pages of that origin may not use this server")
        if not self._access.allows_token(headers.get("authorization")):
            need = {"WWW-Authenticate": 'Bearer realm="toolyard"'}
            raise HttpRefusal(401, "send the token that `toolyard serve` showed, as Authorization: Bearer TOKEN", need)

    def _agent(self, path: str) -> str | None:
        if path.rstrip("/") == PATH:
            return self._server.agent
        known = self._server.app.agents()
        agent = unquote(path.removeprefix(f"{PATH}/").rstrip("/"))
        if not path.startswith(f"{PATH}/") or agent not in known:
            raise HttpRefusal(404, f"there is {PATH}, and {PATH}/AGENT for each of: {', '.join(known)}")
        return agent

    async def _pass_on(
        self, scope: Scope, headers: Mapping[str, str], body: bytes, receive: Receive, send: Send
    ) -> None:
        is_stateless = headers.get("mcp-protocol-version", HANDSHAKE_VERSIONS[0]) not in HANDSHAKE_VERSIONS
        session = headers.get("mcp-session-id")
        if session is not None and not is_stateless:  # it would open any conversation
            scope["conversation"] = session
            await self._app(scope, replayed(body, receive), send)
            if scope["method"] == "DELETE":
                await self._conversations.end(session)
            return None
        if is_stateless:
            known = cookie_of(headers)
            connection = scope.get("client") and tuple(scope["client"])
            own = None if any(name in headers for name in FORWARDED) else connection
            id = scope["conversation"] = self._conversations.id_for(known, own)
            send = send if id == known else with_cookie(send, id)
            if message := plain_call(scope, headers, body):
                return await self._calls.answer(message, scope, receive, send)
        return await self._app(scope, replayed(body, receive), send)


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers by their names; of one that comes again, the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def read_body(receive: Receive) -> bytes:
    """The whole body of a request, within its limits."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpRefusal(400, "the request ended before its body did")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > LARGEST_BODY:
                    raise HttpRefusal(413, f"a request has at most {LARGEST_BODY} bytes", {"Connection": "close"})
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise HttpRefusal(
            408, f"the request was not sent within {BODY_WITHIN:g} seconds", {"Connection": "close"}
        ) from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read already, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def cookie_of(headers: Mapping[str, str]) -> str | None:
    for cookie in headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def with_cookie(send: Send, id: str) -> Send:
    """What tells a client which conversation it is in."""

    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            cookie = f"{COOKIE}={id}; Path={PATH}; HttpOnly; SameSite=Strict"
            message["headers"] = [*message.get("headers", ()), (b"set-cookie", cookie.encode())]
        await send(message)

    return send_with_cookie
