"""Signing in to servers over HTTP: by OAuth, with what that gives kept in the user's own folder.

A call never opens a browser: where a server wants a person to sign in, it fails and says which command does that.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
import msgspec

from toolyard.files.atomic import replace_file
from toolyard.files.door import Door
from toolyard.files.user_folders import user_folder
from toolyard.kinds.mcp.health import ServerLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

    from toolyard.core.tool import JsonObject
    from toolyard.kinds.mcp.reference import McpAddress

LARGEST = 1 << 20
PATIENCE = 300.0
"""How many seconds a person may take to sign in."""
DONE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis page can be closed.\n"


class LoginStore:
    """The tokens of one server, and what it knows us by: one file that only its owner can read."""

    def __init__(self, file: Path, known: JsonObject | None = None) -> None:
        self.file = file
        self._known = known
        """What the server knows us by where that was agreed beforehand."""

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        kept = self._read().get("tokens")
        return OAuthToken.model_validate(kept) if kept else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        kept = self._known or self._read().get("client")
        return OAuthClientInformationFull.model_validate(kept) if kept else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write("client", client_info)

    def forget(self) -> bool:
        """Take it all back; whether there was something."""
        try:
            self.file.unlink()
        except FileNotFoundError:
            return False
        return True

    def _read(self) -> dict[str, Any]:
        try:
            read = Door().read(self.file, largest=LARGEST)
            ours = read.facts.st_uid == os.geteuid() and not read.facts.st_mode & 0o077
            return msgspec.json.decode(read.data, type=dict[str, Any]) if ours else {}
        except (OSError, ValueError):
            return {}

    def _write(self, what: str, value: Any) -> None:
        kept = self._read() | {what: value.model_dump(mode="json", exclude_none=True)}
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self.file, json.dumps(kept).encode(), durable=True)


def login_store(server: McpAddress, callback_url: str = "") -> LoginStore:
    oauth = server.oauth
    how = {"client_secret": oauth.client_secret, "token_endpoint_auth_method": "client_secret_basic"}
    secret = how if oauth.client_secret else {}
    known = {"client_id": oauth.client_id, "redirect_uris": [callback_url], **secret} if oauth.client_id else None
    name = hashlib.sha256(server.url.encode()).hexdigest()[:32]
    return LoginStore(user_folder("state") / "mcp" / "logins" / f"{name}.json", known if callback_url else None)


class StoredLogin(httpx2.Auth):
    """Signs requests with the token that is kept, and asks for a new one when the server refuses it.

    The SDK's own way holds a lock from each request to its answer, so that no two calls would run side by side.
    """

    requires_response_body = True

    def __init__(self, server: McpAddress) -> None:
        self._server = server
        self._store = login_store(server)
        self._renewing = provider(server, "http://127.0.0.1/callback", redirect=self._refuse, answer=self._refuse)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        tokens = await self._store.get_tokens()
        if tokens:
            request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        response = yield request
        if response.status_code == HTTPStatus.FORBIDDEN and (wanted := further_scope(response)):
            more = f'add "oauth": {{"scope": "{wanted}"}} to its entry'
            raise ServerLost(f"it wants further rights: {more}, then: toolyard plugins login {self._server.name}")
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return
        if tokens is None or not tokens.refresh_token:
            await self._refuse()
        self._renewing.context.token_expiry_time = 1.0  # long past: the server does not take it any more
        flow = self._renewing.async_auth_flow(request)
        with contextlib.suppress(StopAsyncIteration):
            step = await anext(flow)
            while True:
                step = await flow.asend((yield step))

    async def _refuse(self, _: str = "") -> NoReturn:
        raise ServerLost(f"it wants you to sign in: toolyard plugins login {self._server.name}")


def further_scope(response: httpx2.Response) -> str:
    """The rights that a refusal asks for; empty when it is about something else."""
    told = response.headers.get("www-authenticate", "")
    found = re.search(r'scope="([^"]*)"', told)
    return found[1] if found and "insufficient_scope" in told else ""


def stored_login(server: McpAddress) -> StoredLogin | None:
    """What signs requests to a server; None for one whose headers say all."""
    return None if any(name.lower() == "authorization" for name, _ in server.headers) else StoredLogin(server)


def provider(server: McpAddress, callback_url: str, *, redirect: Any, answer: Any = None) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    about = {"client_name": "Toolyard", "redirect_uris": [callback_url], "scope": server.oauth.scope}
    store = login_store(server, callback_url)
    return OAuthClientProvider(
        server.url,
        OAuthClientMetadata.model_validate(about),
        store,
        redirect,
        answer,
        client_metadata_url=server.oauth.client_metadata_url,
    )


async def login(server: McpAddress, show_address: Callable[[str], None]) -> None:
    """Let a person sign in: they open an address, and their browser comes back to us. Raises what goes wrong."""
    from mcp import Client

    from toolyard.kinds.mcp.connection import in_words
    from toolyard.kinds.mcp.streams import HttpStreams

    coming: list[asyncio.Future[AuthorizationCodeResult]] = []
    """What browsers bring; a server may send a person to another place after the first."""
    listener = await asyncio.start_server(partial(hear, coming), "127.0.0.1", server.oauth.callback_port)
    port = listener.sockets[0].getsockname()[1]

    async def show(address: str) -> None:
        coming.append(asyncio.get_running_loop().create_future())
        show_address(with_scope(address, server.oauth.scope or ""))

    async def answer() -> AuthorizationCodeResult:
        return await coming[-1]

    auth = provider(server, f"http://127.0.0.1:{port}/callback", redirect=show, answer=answer)
    login_store(server).forget()  # the address that we are known by has another port each time
    try:
        async with listener, asyncio.timeout(PATIENCE), Client(HttpStreams(server, auth), cache=None) as client:
            await client.list_tools()
    except TimeoutError:
        raise ServerLost(f"nobody signed in within {PATIENCE:g} seconds") from None
    except (Exception, BaseExceptionGroup) as error:
        raise ServerLost(in_words(error)) from error


def with_scope(address: str, scope: str) -> str:
    """An address to sign in at that asks also for the rights of a server's entry; the server names only some."""
    parts = urlsplit(address)
    asked = dict(parse_qsl(parts.query))
    wanted = dict.fromkeys(f"{asked.get('scope', '')} {scope}".split())
    return urlunsplit(parts._replace(query=urlencode({**asked, "scope": " ".join(wanted)}))) if scope else address


async def hear(
    coming: Sequence[asyncio.Future[AuthorizationCodeResult]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Take the code that a browser brings."""
    from mcp.shared.auth import AuthorizationCodeResult

    try:
        async with asyncio.timeout(30):
            line = await reader.readline()
        given = parse_qs(urlsplit(line.split(b" ")[1].decode()).query)
        came_back = coming[-1]
        if "error" in given and not came_back.done():
            came_back.set_exception(ServerLost(f"signing in was refused: {given['error'][0]}"))
        elif "code" in given and not came_back.done():
            told = {name: given[name][0] for name in ("code", "state", "iss") if name in given}
            came_back.set_result(AuthorizationCodeResult(**told))
        writer.write(DONE)
        await writer.drain()
    except (TimeoutError, IndexError, ValueError, OSError):
        pass  # not what we wait for
    finally:
        writer.close()
