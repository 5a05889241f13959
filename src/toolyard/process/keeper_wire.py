"""How the application and its keeper talk: marshalled tuples behind a four-byte length."""

from __future__ import annotations

import marshal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HEADER = struct.Struct("!I")


def pack_message(message: tuple[Any, ...]) -> bytes:
    """A message as it goes over the socket."""
    payload = marshal.dumps(message)
    return HEADER.pack(len(payload)) + payload


def take_messages(inbox: bytearray) -> Iterator[tuple[Any, ...]]:
    """Cut complete messages off the front of what has come."""
    while len(inbox) >= HEADER.size:
        (size,) = HEADER.unpack_from(inbox)
        if len(inbox) < HEADER.size + size:
            return
        payload = bytes(inbox[HEADER.size : HEADER.size + size])
        del inbox[: HEADER.size + size]
        yield marshal.loads(payload)  # noqa: S302 - the other end is our own process, over a private socket
