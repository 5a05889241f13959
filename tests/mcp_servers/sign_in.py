"""An authorization server for tests: whoever comes is let in, and tokens can be made to expire."""

from __future__ import annotations

import itertools
import socket
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.lowlevel.server import Server
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from mcp_servers.over_http import call_tool, list_tools, serve_in_thread


class LetsEverybodyIn:
    """Keeps all in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.valid: set[str] = set()
        """The access tokens that are taken now."""
        self._numbers = itertools.count(1)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: Any) -> str:
        code = f"code-{next(self._numbers)}"
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=2**40,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        return self._token()

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return RefreshToken(token=refresh_token, client_id=client.client_id, scopes=[])

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> OAuthToken:
        return self._token()

    async def load_access_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="x", scopes=[]) if token in self.valid else None

    async def revoke_token(self, token: Any) -> None:
        self.valid.discard(token.token)

    def _token(self) -> OAuthToken:
        token = f"secret-access-{next(self._numbers)}"
        self.valid.add(token)
        return OAuthToken(access_token=token, expires_in=3600, refresh_token="secret-refresh")


def guarded_server() -> tuple[str, LetsEverybodyIn]:
    """A server that wants to be signed in to, and who lets in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    people = LetsEverybodyIn()
    address = f"http://127.0.0.1:{port}"
    auth = AuthSettings(
        issuer_url=address,
        resource_server_url=f"{address}/mcp",
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    server: Server[Any] = Server("guarded", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    verifier = ProviderTokenVerifier(people)
    options = {"auth": auth, "auth_server_provider": people, "token_verifier": verifier}
    return serve_in_thread(server, port, **options), people
