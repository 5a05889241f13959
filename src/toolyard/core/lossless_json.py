"""JSON that keeps what is no text: bytes of a file's name that are not UTF-8, half a UTF-16 character of a model's.

Both are half a surrogate pair to Python. JSON can hold that as an escape, but msgspec neither writes nor reads it.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")
HALF = (b"\\ud", b"\\uD")
"""How such an escape begins, and many a whole pair."""


def encode_json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value)).encode("ascii")


def decode_json(data: bytes, type: type[Kind]) -> Kind:
    """What it says; msgspec's error when it is not JSON, or not of that type."""
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError:
        if not any(half in data for half in HALF):
            raise
    import json

    try:
        value = json.loads(data)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None
    return msgspec.convert(value, type)
