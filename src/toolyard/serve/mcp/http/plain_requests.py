"""The one form of request that is read without h11: a call of the newer protocol era, written as everybody writes it.

Only what leaves no doubt is read here. Whatever has another form, by a single byte, is left to h11 untouched, so that
there is nothing that the two could understand in different ways.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.serve.mcp.messages import CAPABILITIES_KEY, LOG_LEVEL_KEY, STATELESS_VERSION, VERSION_KEY, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_HEAD = 16_384
LARGEST_BODY = 4 << 20
HEAD = re.compile(
    rb"POST ([A-Za-z0-9/_.-]+) HTTP/1\.1\r\n((?:[A-Za-z0-9-]+: ?[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?\r\n)+)\r\n"
)
"""Names, one space at most, and values of printable ASCII; no empty value, no line that goes on in the next."""
LENGTH = re.compile(r"[0-9]{1,8}")
UNUSUAL = frozenset({"transfer-encoding", "content-encoding", "expect", "upgrade", "te", "trailer", "connection"})
"""Headers that change how a request is read or a connection goes on; `Connection: keep-alive` changes nothing."""
OF_PARAMETERS = "mcp-param-"
"""How headers begin that repeat arguments."""
WANTS_MORE = {"progressToken", LOG_LEVEL_KEY}
"""What asks for notifications before the answer."""


class PlainHead(msgspec.Struct, frozen=True):
    """The head of a request that is about a call."""

    path: str
    headers: Mapping[str, str]
    begins: int
    """Where the body begins."""
    ends: int
    """Where the request ends."""


def plain_head(data: bytes) -> PlainHead | None:
    """The head of the request that some bytes begin with; None when anything about it is unusual."""
    found = HEAD.match(data, 0, LARGEST_HEAD)
    if found is None:
        return None
    lines = found[2].decode("ascii").split("\r\n")
    lines.pop()
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.lstrip(" ")
    if len(headers) != len(lines) or not is_plain_head(headers):
        return None
    begins = found.end()
    return PlainHead(found[1].decode("ascii"), headers, begins, begins + int(headers["content-length"]))


def is_plain_head(headers: Mapping[str, str]) -> bool:
    accepts, length = headers.get("accept", ""), headers.get("content-length", "")
    return (
        headers.get("mcp-method") == "tools/call"
        and headers.get("mcp-protocol-version") == STATELESS_VERSION
        and headers.get("content-type") == "application/json"
        and "application/json" in accepts
        and "text/event-stream" in accepts
        and LENGTH.fullmatch(length) is not None
        and int(length) <= LARGEST_BODY
        and (UNUSUAL.isdisjoint(headers) or only_keeps_alive(headers))
        and not any(name.startswith(OF_PARAMETERS) for name in headers)
    )


def only_keeps_alive(headers: Mapping[str, str]) -> bool:
    return UNUSUAL.intersection(headers) == {"connection"} and headers["connection"].lower() == "keep-alive"


def plain_call(headers: Mapping[str, str], body: bytes) -> Message | None:
    """The call that a request is about; None when it is something else, or anything about it is unusual."""
    try:
        message = decode_json(body, Message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    params, meta = message.params or {}, message.meta
    is_plain = (
        message.jsonrpc == "2.0"
        and isinstance(message.id, str | int)
        and message.method == "tools/call"
        and meta.get(VERSION_KEY) == STATELESS_VERSION
        and isinstance(params.get("name"), str)
        and headers.get("mcp-name") == params["name"]
        and isinstance(meta.get(CAPABILITIES_KEY), dict)
        and meta.keys().isdisjoint(WANTS_MORE)
    )
    return message if is_plain else None
