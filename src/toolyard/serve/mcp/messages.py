"""JSON-RPC messages of both protocol eras, as a line-based wire carries them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard import __version__
from toolyard.core.tool import Json, JsonObject  # noqa: TC001 - of structs

if TYPE_CHECKING:
    from collections.abc import Mapping

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Of the era in which a connection begins with `initialize`."""
STATELESS_VERSION = "2026-07-28"
"""Of the era in which every request says for itself what its client is."""
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32021, -32022
NOT_CACHED = {"ttlMs": 0, "cacheScope": "private"}
"""Lists may change at any time, and clients that want to know hear of it."""
SERVER = {"name": "toolyard", "title": "Toolyard", "version": __version__}
INSTRUCTIONS = (
    "Tools of a Toolyard application. Each call is permitted, kept in a sandbox, limited and recorded there; "
    "a refusal says which rule it comes from and what to do instead."
)

MEMBER = re.compile(rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\]*"|-?\d+)')
LEADING_MEMBERS = re.compile(rb"\s*\{((?:\s*%s\s*,)*)" % MEMBER.pattern)
TRAILING_MEMBERS = re.compile(rb"((?:,\s*%s\s*)*)\}\s*\Z" % MEMBER.pattern)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever a client sends: a request, a notification, or the response to a request of ours."""

    jsonrpc: str | None = None
    id: str | int | float | msgspec.UnsetType | None = msgspec.UNSET
    method: str | None = None
    params: dict[str, Any] | None = None
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET

    @property
    def is_stateless(self) -> bool:
        """Whether it is of the era without a handshake."""
        return self.method != "initialize" and VERSION_KEY in self.meta

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta") if self.params else None
        return meta if isinstance(meta, dict) else {}


def request_id_from_ends(head: bytes, tail: bytes) -> str | int | None:
    """The id of a request of which only the ends are known; None where it is not in them, or it is no request.

    Some clients write it before the parameters, some after them. Members that hold no others, and touch the outermost
    brace, are the message's own: what is inside of the parameters is never taken for them.
    """
    first, last = LEADING_MEMBERS.match(head), TRAILING_MEMBERS.search(tail)
    members = dict(MEMBER.findall((first[1] if first else b"") + b"," + (last[1] if last else b"")))
    try:
        return msgspec.json.decode(members[b"id"], type=str | int) if b"method" in members else None
    except (KeyError, msgspec.MsgspecError):
        return None


class RpcFault(Exception):
    """A request that has an error as its answer."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


def check_envelope(meta: Mapping[str, Any]) -> None:
    """A stateless request says which version it is of, and what its client can do."""
    version = meta[VERSION_KEY]
    if CAPABILITIES_KEY not in meta or not isinstance(version, str):
        raise RpcFault(INVALID_PARAMS, f"params._meta needs {VERSION_KEY} and {CAPABILITIES_KEY}")
    if version != STATELESS_VERSION:
        supported = {"supported": [STATELESS_VERSION], "requested": version}
        raise RpcFault(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A `tools/call` or the like, of whichever protocol era and wire."""

    name: str
    arguments: JsonObject = msgspec.field(default_factory=dict)
    answers: Json = None
    """What the person answered to the question that the call before this one ended with."""
    state: str | None = None
    """Which question that was."""
    method: str = "tools/call"
    """What the client asked for: also reading a resource and the like are calls of tools."""
    uri: str = ""
    """The address of a resource, as the client knows it."""


def stateless(result: dict[str, Any]) -> dict[str, Any]:
    """A result with what every one of the newer era has."""
    return {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}, **result}


def call_request(params: Mapping[str, Any]) -> CallRequest:
    """The parameters of a `tools/call`; only their form is looked at, a tool's arguments are checked on their way."""
    name, arguments, state = params.get("name"), params.get("arguments"), params.get("requestState")
    if not isinstance(name, str) or not isinstance(arguments, dict | None) or not isinstance(state, str | None):
        raise RpcFault(INVALID_PARAMS, "tools/call needs a name, and arguments that are an object")
    return CallRequest(name=name, arguments=arguments or {}, answers=params.get("inputResponses"), state=state)
