"""What stands before the protocol: who may talk to the server, how much at once, and for which agent."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec
from starlette.responses import PlainTextResponse

from toolyard.serve.mcp.http.plain_requests import LARGEST_BODY
from toolyard.serve.mcp.messages import HANDSHAKE_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolyard.serve.mcp.http.conversations import Conversations
    from toolyard.serve.mcp.tool_server import ToolServer

Connection: TypeAlias = tuple[str, int]
Header: TypeAlias = tuple[bytes, bytes]
PATH = "/mcp"
COOKIE = "toolyard-conversation"
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


class CallOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call that was let in belongs."""

    agent: str | None
    conversation: str
    connection: Connection | None
    headers: tuple[Header, ...]
    """What its response has to carry."""


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

    def admits(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a request passes all that is looked at for every one; one that does not is to be refused in words."""
        try:
            self._check(headers)
            self._agent(path)
        except HttpRefusal:
            return False
        return True

    def origin_of(self, path: str, headers: Mapping[str, str], connection: Connection | None) -> CallOrigin | None:
        """Where a call belongs that was let in, and is answered on its connection; None if its agent is gone by now."""
        try:
            agent = self._agent(path)
        except HttpRefusal:
            return None
        id, cookie = self._conversation(headers, connection)
        told = (cookie,) if cookie else ()
        return CallOrigin(agent=agent, conversation=id, connection=connection, headers=told)

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
            connection = scope.get("client") and tuple(scope["client"])
            scope["conversation"], cookie = self._conversation(headers, connection)
            send = with_header(send, cookie) if cookie else send
        return await self._app(scope, replayed(body, receive), send)

    def _conversation(self, headers: Mapping[str, str], connection: Connection | None) -> tuple[str, Header | None]:
        """The conversation of a stateless request, and the header that tells its client which it is."""
        known = cookie_of(headers) if "cookie" in headers else None
        own = None if any(name in headers for name in FORWARDED) else connection
        id = self._conversations.id_for(known, own)
        if id == known:
            return id, None
        return id, (b"set-cookie", f"{COOKIE}={id}; Path={PATH}; HttpOnly; SameSite=Strict".encode())


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


def with_header(send: Send, header: Header) -> Send:
    async def send_with_header(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), header]
        await send(message)

    return send_with_header
